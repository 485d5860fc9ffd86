// A topic is unloaded and loaded again, as brokers do when they balance their load or restart: what a subscription sees,
// and that the runtime handles each message once whatever state it was in.
import { fixedBackoff } from '../../core/backoff.js';
import type { HandlerOptions } from '../../core/handler-definition.js';
import { retry, success } from '../../core/outcome.js';
import type { SubscriptionType } from '../../core/subscription-spec.js';
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { SubscriptionState } from '../../ports/transport.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { countsOf, expectEqual, expectTrue, textsOf } from './expectations.js';
import { WatchedCalls } from './watched-calls.js';
import { SUBSCRIPTION, WatchedHandler, expectSettled, gate, json } from './watched-handler.js';

const ports: readonly ConformanceCase[] = forTypes(SUBSCRIPTION_TYPES, (type) => ({
  title: `${type}: after an unload what is unacknowledged comes again, uncounted, and what is acknowledged does not`,
  rules: [
    'A-18: a lost connection does not count as a redelivery',
    'S-24: a consumer that leaves acknowledges nothing by that',
  ],
  needs: ['unload'],
  async run(world) {
    const topic = await world.newTopic();
    const subscription = await world.subscribe(topic, { type });
    const states: SubscriptionState[] = [];
    subscription.port.onState((state) => void states.push(state));
    await world.publish(topic, 'a', 'b', 'c');
    const [, b] = await subscription.take(3);
    await subscription.acknowledge(b);
    await world.unload(topic);
    const again = await subscription.expectTexts('a', 'c');
    expectEqual(countsOf(again), [0, 0], 'redelivery counts');
    await subscription.expectQuiet();
    const lost = states.findIndex(({ state }) => state === 'lost');
    const before = states[lost - 1]?.connection ?? Infinity;
    expectTrue(lost > 0, 'the subscription did not say that it lost its connection');
    for (const { connection } of again) expectTrue(connection > before, 'what came again bears the old connection');
    await world.publish(topic, 'd');
    await subscription.expectTexts('d');
  },
}));

const others: readonly ConformanceCase[] = [
  ...forTypes(['shared', 'key-shared'], (type) => ({
    title: `${type}: an unload resets the counts`,
    rules: ['A-19: an unload loses all counts'],
    needs: ['unload', 'redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic, { type });
      await subscription.redeliver(await subscription.takeOne());
      expectEqual(countsOf(await subscription.expectTexts('a')), [1], 'the count before');
      await world.unload(topic);
      const [a] = await subscription.expectTexts('a');
      expectEqual(a?.redeliveryCount, 0, 'the count after');
      await subscription.redeliver(a);
      expectEqual(countsOf(await subscription.expectTexts('a')), [1], 'the count of the next request');
    },
  })),
  {
    title: 'a publisher goes on over an unload, in a new ledger',
    rules: [],
    needs: ['unload'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const [before] = await world.publish(topic, 'a');
      await world.unload(topic);
      const [after] = await world.publish(topic, 'b');
      expectTrue((after?.ledgerId ?? 0) > (before?.ledgerId ?? Infinity), 'the ledger is the one of before');
      const came = [...(await subscription.takeThrough('b')), ...(await subscription.takeUntilQuiet())];
      expectEqual([...new Set(textsOf(came))].sort(), ['a', 'b'], 'the messages that came');
    },
  },
  {
    title: 'an unload of a partitioned topic reaches each partition',
    rules: ['S-42: a subscription on several topics gets them all'],
    needs: ['unload'],
    async run(world) {
      const topic = await world.newTopic(3);
      const subscription = await world.subscribe(topic);
      const sent = Array.from({ length: 12 }, (_, i) => ({ key: `k${i}` }));
      await world.publish(topic, ...sent);
      await subscription.take(12);
      await world.unload(topic);
      const again = await subscription.take(12);
      expectEqual(countsOf(again), new Array<number>(12).fill(0), 'redelivery counts');
      await subscription.acknowledge(...again);
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a delayed message is not early after an unload',
    rules: ['Y-08: what is parked lives in memory', 'Y-01: the delivery time is absolute'],
    needs: ['unload', 'delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const deliverAtMs = world.clock.now() + 2_000;
      await world.publish(topic, { deliverAtMs });
      await world.elapse(100);
      await world.unload(topic);
      await subscription.takeOne();
      expectTrue(world.clock.now() >= deliverAtMs, `it came ${deliverAtMs - world.clock.now()} ms early`);
      await subscription.expectQuiet();
    },
  },
  {
    title: 'after an unload a batch that was acknowledged in part comes again, and goes when it is acknowledged whole',
    rules: ['A-11: an entry goes when none of its messages is left; brokers may forget the parts in an unload'],
    needs: ['unload', 'producer-batches', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      await world.publishBatch(topic, 'a', 'b', 'c');
      const [a, , c] = await subscription.take(3);
      await subscription.acknowledge(a, c);
      await world.unload(topic);
      const again = [...(await subscription.takeThrough('b')), ...(await subscription.takeUntilQuiet())];
      await subscription.acknowledge(...again);
      await world.eventually(async () => (await world.figures(topic)).backlog === 0, 'the backlog is 0');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'runtime: messages of a batch that are done are not handled again after an unload',
    rules: ['A-11: brokers may forget in an unload what was acknowledged of a batch; the process that did it knows'],
    needs: ['unload', 'producer-batches', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const options = { redelivery: { maxDeliveries: 5, backoff: fixedBackoff(2_000) } };
      const handler = await WatchedHandler.start(world, topic, options, ({ payload, attempt }) =>
        payload === 'b' && attempt === 1 ? retry() : success(),
      );
      await world.publishBatch(topic, json('a'), json('b'), json('c'));
      await handler.until('a1', 'b1', 'c1');
      await world.eventually(() => handler.waiting === 1, 'one of them waits');
      await unloadAndGoOn(world, topic, handler);
      await handler.until('b2');
      await expectNothingLeft(world, topic, handler, 'shared');
      handler.expectRuns('a1', 'b1', 'c1', 'after1', 'b2');
    },
  },
];

/** All of the messages are handled and acknowledged at the broker. */
async function expectNothingLeft(
  world: ConformanceWorld,
  topic: string,
  handler: WatchedHandler,
  type: SubscriptionType,
) {
  const isEmpty = async (): Promise<boolean> => (await world.figures(topic, SUBSCRIPTION)).backlog === 0;
  await world.eventually(isEmpty, 'the backlog is 0');
  await handler.drain();
  await expectSettled(world, topic, { type });
}

/** Unloads the topic and waits until the handler has run something that was published after it. */
async function unloadAndGoOn(world: ConformanceWorld, topic: string, handler: WatchedHandler): Promise<void> {
  await world.unload(topic);
  await world.publish(topic, json('after', { key: 'other' }));
  await handler.until('after1');
}

/** Order by key where the type allows it: then messages wait in lanes, and order can be seen. */
const orderingOf = (type: SubscriptionType): Pick<HandlerOptions, 'ordering'> =>
  type === 'shared' ? {} : { ordering: 'key' };

const registry: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `runtime, ${type}: a delivery that runs while its topic is unloaded is handled once`,
    rules: ['N-29: what a lost connection does not change: the broker sends everything unacknowledged again'],
    needs: ['unload', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const { opened, open } = gate();
      const handler = await WatchedHandler.start(world, topic, { type, concurrency: 4 }, async ({ payload }) => {
        if (payload === 'a') await opened;
        return success();
      });
      await world.publish(topic, json('a', { key: 'a' }));
      await handler.until('a1');
      await unloadAndGoOn(world, topic, handler);
      open();
      await expectNothingLeft(world, topic, handler, type);
      handler.expectRuns('a1', 'after1');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a delivery that fails after its topic was unloaded waits and runs again once`,
    rules: ['N-32: a negative acknowledgement over a connection that is lost asks for nothing and loses nothing'],
    needs: ['unload', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const { opened, open } = gate();
      const redelivery = { maxDeliveries: 5, backoff: fixedBackoff(400) };
      const options = { type, concurrency: 4, redelivery };
      const handler = await WatchedHandler.start(world, topic, options, async ({ payload, attempt }) => {
        if (payload !== 'a' || attempt > 1) return success();
        await opened;
        return retry();
      });
      await world.publish(topic, json('a', { key: 'a' }));
      await handler.until('a1');
      await unloadAndGoOn(world, topic, handler);
      open();
      await handler.until('a2');
      await expectNothingLeft(world, topic, handler, type);
      handler.expectRuns('a1', 'after1', 'a2');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a delivery that is held while its topic is unloaded keeps due time and attempt`,
    rules: ['N-29: after a lost connection the owner decides: nothing is asked for before the copy has come'],
    needs: ['unload', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const redelivery = { maxDeliveries: 5, backoff: fixedBackoff(2_000) };
      const options = { type, concurrency: 4, redelivery };
      const handler = await WatchedHandler.start(world, topic, options, ({ payload, attempt }) =>
        payload === 'a' && attempt < 3 ? retry() : success(),
      );
      await world.publish(topic, json('a', { key: 'a' }));
      await handler.until('a1');
      await world.eventually(() => handler.waiting === 1, 'it waits');
      await unloadAndGoOn(world, topic, handler);
      await handler.until('a3');
      await expectNothingLeft(world, topic, handler, type);
      handler.expectRuns('a1', 'after1', 'a2', 'a3');
      const waitedMs = handler.atMs('a2') - handler.atMs('a1');
      expectTrue(waitedMs >= 2_000, `it ran again after ${waitedMs} ms, before its 2,000 ms`);
    },
  }),
  (type) => ({
    title: `runtime, ${type}: deliveries that wait behind another one while their topic is unloaded are handled once`,
    rules: ['S-20: what must be delivered again comes in the order of its positions'],
    needs: ['unload', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const { opened, open } = gate();
      const options = { type, concurrency: type === 'shared' ? 2 : 4, prefetch: 10, ...orderingOf(type) };
      const handler = await WatchedHandler.start(world, topic, options, async ({ payload }) => {
        if (payload === 'a') await opened;
        return success();
      });
      await world.publish(topic, ...['a', 'b', 'c'].map((text) => json(text, { key: 'same' })));
      await handler.until('a1');
      await unloadAndGoOn(world, topic, handler);
      open();
      await handler.until('b1', 'c1');
      await expectNothingLeft(world, topic, handler, type);
      handler.expectRuns('a1', 'b1', 'c1', 'after1');
      const ofKey = handler.names.filter((name) => name !== 'after1');
      if (type !== 'shared') expectEqual(ofKey, ['a1', 'b1', 'c1'], 'the order of the key');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: a copy of what was just acknowledged is acknowledged again and not handled again`,
    rules: ['A-15: acknowledging again is no error', 'A-18: a lost connection does not count as a redelivery'],
    needs: ['unload', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const watched = new WatchedCalls(await world.newTransport(), topic);
      watched.losing = true;
      const options = { type, concurrency: 4, transport: watched.transport };
      const handler = await WatchedHandler.start(world, topic, options);
      await world.publish(topic, json('a', { key: 'a' }));
      await world.eventually(() => watched.calls.includes('acknowledged'), 'the acknowledgement that gets lost');
      watched.losing = false;
      await unloadAndGoOn(world, topic, handler);
      await expectNothingLeft(world, topic, handler, type);
      handler.expectRuns('a1', 'after1');
    },
  }),
  (type) => ({
    title: `runtime, ${type}: what is acknowledged while its topic is unloaded is not handled again`,
    rules: ['A-15: acknowledging again is no error', 'A-18: a lost connection does not count as a redelivery'],
    needs: ['unload', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      let unloading: Promise<void> | undefined;
      // What is published while the topic goes may be stored twice: that is not what is looked at here.
      const { opened: stored, open: allStored } = gate();
      const handler = await WatchedHandler.start(world, topic, { type, concurrency: 4 }, ({ payload }) => {
        if (payload === 5) unloading = stored.then(() => world.unload(topic));
        return success();
      });
      const sent = Array.from({ length: 10 }, (_, i) => json(i, { key: `k${i}` }));
      await world.publish(topic, ...sent);
      allStored();
      await handler.until('51');
      await unloading;
      await world.publish(topic, json('after', { key: 'other' }));
      await handler.until('after1');
      await expectNothingLeft(world, topic, handler, type);
      handler.expectRuns('after1', ...Array.from({ length: 10 }, (_, i) => `${i}1`));
    },
  }),
);

export const unloadCases: readonly ConformanceCase[] = [...ports, ...others, ...registry];
