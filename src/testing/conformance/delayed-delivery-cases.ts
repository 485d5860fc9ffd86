// Delayed delivery by the broker.
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectEqual, expectTrue, textOf } from './expectations.js';

/** Long enough to be told from the time that a busy machine needs for anything. */
const DELAY_MS = 1_500;

const onMulti: readonly ConformanceCase[] = forTypes(
  ['shared', 'key-shared'],
  (type) => ({
    title: `${type}: a delayed message is not delivered before its time, and its count stays 0`,
    rules: ['Y-01: the delivery time is absolute', 'A-18: delayed delivery does not count'],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const deliverAtMs = world.clock.now() + DELAY_MS;
      await world.publish(topic, { payload: new TextEncoder().encode('late'), deliverAtMs });
      const [message] = await subscription.expectTexts('late');
      const early = deliverAtMs - world.clock.now();
      expectTrue(early <= 0, `it came ${early} ms early`);
      expectEqual([message?.redeliveryCount, message?.deliverAtMs], [0, deliverAtMs], 'count and delivery time');
    },
  }),
  (type) => ({
    title: `${type}: other messages pass a delayed one, which uses no permit`,
    rules: ['Y-05: a parked message uses no permit'],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type, prefetch: 1 });
      // Opening takes a while on a busy machine: not of the time that is looked at.
      await world.publish(topic, 'first');
      await subscription.expectTexts('first');
      const deliverAtMs = world.clock.now() + DELAY_MS;
      const delayed = { key: 'k', payload: new TextEncoder().encode('late'), deliverAtMs };
      await world.publish(topic, delayed, 'a', 'b', 'c');
      await subscription.expectTexts('a', 'b', 'c', 'late');
    },
  }),
  (type) => ({
    title: `${type}: delayed messages come by their times, not by their places`,
    rules: ['Y-01: the delivery time is absolute'],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const at = (text: string, ms: number) => ({
        payload: new TextEncoder().encode(text),
        deliverAtMs: world.clock.now() + ms,
      });
      await world.publish(topic, at('third', 2_500), at('first', 500), at('second', 1_500));
      await subscription.expectTexts('first', 'second', 'third');
    },
  }),
  (type) => ({
    title: `${type}: a delivery time in the past means at once`,
    rules: ['Y-06: a delivery time in the past means at once'],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const begunMs = world.clock.now();
      await world.publish(topic, { deliverAtMs: begunMs - 60_000 });
      await subscription.takeOne();
    },
  }),
  (type) => ({
    title: `${type}: a message that was due once is not delayed again`,
    rules: ['Y-06: an entry that was due once is not delayed again'],
    needs: ['delayed-delivery', 'redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await world.publish(topic, { deliverAtMs: world.clock.now() + DELAY_MS });
      await subscription.redeliver(await subscription.takeOne());
      const begunMs = world.clock.now();
      const again = await subscription.takeOne();
      expectEqual(countsOf([again]), [1], 'the redelivery count');
      expectTrue(world.clock.now() - begunMs < DELAY_MS, 'it was delayed again');
    },
  }),
  (type) => ({
    title: `${type}: the delay holds when the subscription is opened again`,
    rules: ['Y-08: what is parked belongs to one subscription and lives in memory'],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await world.subscribe(topic, { type });
      const deliverAtMs = world.clock.now() + DELAY_MS;
      await world.publish(topic, { deliverAtMs });
      await world.elapse(200);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.takeOne();
      expectTrue(world.clock.now() >= deliverAtMs, `it came ${deliverAtMs - world.clock.now()} ms early`);
      await second.expectQuiet();
    },
  }),
);

const onSingleActive: readonly ConformanceCase[] = forTypes(['exclusive', 'failover'], (type) => ({
  title: `${type}: a delivery time is not honoured`,
  rules: ['Y-02: only Shared and Key_Shared honour it'],
  needs: ['delayed-delivery'],
  async run(world) {
    const topic = await world.newTopic();
    const subscription = await world.subscribe(topic, { type });
    const deliverAtMs = world.clock.now() + 60_000;
    await world.publish(topic, { payload: new TextEncoder().encode('a'), deliverAtMs }, 'b');
    const [message] = await subscription.expectTexts('a', 'b');
    expectEqual(message?.deliverAtMs, deliverAtMs, 'the delivery time, for who wants to wait');
  },
}));

const others: readonly ConformanceCase[] = [
  ...forTypes(['shared', 'key-shared'], (type) => ({
    title: `${type}: messages that are due at the same time come in the order in which they were published`,
    rules: [
      'Y-05: released messages go out in position order',
      'G-08: an earlier due time does not wait for a later one',
    ],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const publisher = await world.publisher(topic);
      const nowMs = world.clock.now();
      const publish = (text: string, deliverAtMs: number) =>
        publisher.publish(
          { payload: new TextEncoder().encode(text), properties: {}, deliverAtMs },
          publisher.nextSequenceId(),
        );
      const texts = Array.from({ length: 10 }, (_, i) => String(i));
      const publishing = [publish('last', nowMs + 2_800), ...texts.map((text) => publish(text, nowMs + 1_500))];
      await world.until(Promise.all(publishing), 'the receipts');
      await subscription.expectTexts(...texts, 'last');
    },
  })),
  {
    title: 'a delayed message is in the backlog and unacknowledged for nobody',
    rules: ['Y-05: a parked message uses no permit and counts as unacknowledged for nobody'],
    needs: ['delayed-delivery', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 10, consumerName: 'c' });
      await world.publish(topic, { deliverAtMs: world.clock.now() + 60_000 }, 'now');
      await subscription.acknowledge(await subscription.takeOne());
      const { backlog, unacknowledged } = await world.figures(topic);
      expectEqual([backlog, unacknowledged], [1, 0], 'backlog and unacknowledged');
    },
  },
  {
    title: 'a delay holds back a message on one subscription while another one has it',
    rules: ['Y-08: what is parked belongs to one subscription', 'Y-02: only Shared and Key_Shared honour it'],
    needs: ['delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const exclusive = await world.subscribe(topic, { subscription: 'exclusive', type: 'exclusive' });
      const shared = await world.subscribe(topic, { subscription: 'shared' });
      const deliverAtMs = world.clock.now() + DELAY_MS;
      await world.publish(topic, { payload: new TextEncoder().encode('a'), deliverAtMs });
      await exclusive.expectTexts('a');
      expectEqual(textOf(await shared.takeOne()), 'a', 'the message of the shared subscription');
      expectTrue(world.clock.now() >= deliverAtMs, 'the shared subscription got it early');
    },
  },
];

export const delayedDeliveryCases: readonly ConformanceCase[] = [...onMulti, ...onSingleActive, ...others];
