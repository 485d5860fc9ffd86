// Delayed delivery by the client, for types and brokers that deliver at once whatever the message says: never early,
// no attempt spent, nothing lost when the process that waits goes away.
import { retry, success } from '../../core/outcome.js';
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { SubscriptionType } from '../../core/subscription-spec.js';
import type { EncodedMessage } from '../../core/message.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { expectEqual, expectTrue } from './expectations.js';
import { WatchedHandler, expectSettled, json } from './watched-handler.js';

const DELAY_MS = 1_500;

/** A message that the broker hands out at once and this client must keep: the time travels as a property. */
function delayed(text: string, deliverAtMs: number, key = text): Partial<EncodedMessage> {
  return json(text, { key, properties: { 'pulsework-deliver-at': String(deliverAtMs) } });
}

const options = (type: SubscriptionType) => ({ type, delayedDelivery: 'client', concurrency: 4 }) as const;

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `runtime, ${type}: the client keeps a message until its time, which spends no attempt`,
    rules: [
      'Y-20: a message that is not due yet is not handed on before its time',
      'Y-22: waiting for a time uses up no attempt, so a limit of 1 does not give it up unseen',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const limited = { ...options(type), redelivery: { maxDeliveries: 1 } };
      const handler = await WatchedHandler.start(world, topic, limited);
      const deliverAtMs = world.clock.now() + DELAY_MS;
      await world.publish(topic, delayed('late', deliverAtMs));
      await handler.until('late1');
      await handler.drain();
      handler.expectRuns('late1');
      const earlyMs = deliverAtMs - handler.atMs('late1');
      expectTrue(earlyMs <= 0, `it ran ${earlyMs} ms early`);
      expectEqual(await world.readDeadLetters(topic, 'billing'), [], 'the dead letters');
      await expectSettled(world, topic, { type });
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a failure after a delay by the client is the first one`,
    rules: ['Y-22: requests that were made for a delay are taken off the count'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, options(type), ({ attempt }) =>
        attempt === 1 ? retry() : success(),
      );
      await world.publish(topic, delayed('late', world.clock.now() + 500));
      await handler.until('late2');
      await handler.drain();
      handler.expectRuns('late1', 'late2');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: messages with smaller delays by the client, or none, pass`,
    rules: [
      'Y-26: a message that waits gives its permit back, so that others keep coming',
      'Y-23: what waits holds back nothing, of its own key either',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, { ...options(type), prefetch: 1 });
      // Opening a publisher takes a while on a busy machine: not of the time that is looked at.
      await world.publish(topic, json('first', { key: 'other' }));
      await handler.until('first1');
      const now = world.clock.now();
      await world.publish(
        topic,
        delayed('late', now + 3_000, 'same'),
        delayed('soon', now + 1_500, 'same'),
        json('now', { key: 'same' }),
      );
      await handler.until('late1');
      await handler.drain();
      expectEqual(handler.names, ['first1', 'now1', 'soon1', 'late1'], 'the order of the runs');
      await expectSettled(world, topic, { type });
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a message that the client keeps goes to the next consumer at once, and waits there`,
    rules: ['Y-24: what waits returns to the broker when its client goes; the next one waits again, and is not early'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await WatchedHandler.start(world, topic, options(type));
      const deliverAtMs = world.clock.now() + 3_000;
      await world.publish(topic, delayed('late', deliverAtMs));
      await world.eventually(() => first.waiting === 1, 'it waits');
      await first.drain();
      const second = await WatchedHandler.start(world, topic, options(type));
      await second.until('late1');
      await second.drain();
      first.expectRuns();
      second.expectRuns('late1');
      const earlyMs = deliverAtMs - second.atMs('late1');
      expectTrue(earlyMs <= 0, `it ran ${earlyMs} ms early`);
      await expectSettled(world, topic, { type });
    },
  }),
);

const onSingleActive: readonly ConformanceCase[] = forTypes(['exclusive', 'failover'], (type) => ({
  title: `runtime, ${type}: a delivery time that the broker does not honour is kept by the client without being asked`,
  rules: ['Y-02: only Shared and Key_Shared honour it', 'Y-23: on Exclusive and Failover it waits in place'],
  async run(world) {
    const topic = await world.newTopic();
    const handler = await WatchedHandler.start(world, topic, { type });
    const deliverAtMs = world.clock.now() + DELAY_MS;
    await world.publish(topic, json('late', { deliverAtMs }), json('now'));
    await handler.until('now1', 'late1');
    await handler.drain();
    expectEqual(handler.names, ['now1', 'late1'], 'the order of the runs');
    const earlyMs = deliverAtMs - handler.atMs('late1');
    expectTrue(earlyMs <= 0, `it ran ${earlyMs} ms early`);
    expectEqual(handler.runs[1]?.delivery.redeliveryCount, 0, "the broker's count: nothing was asked for");
    await expectSettled(world, topic, { type });
  },
}));

export const clientDelayCases: readonly ConformanceCase[] = [...forEachType, ...onSingleActive];
