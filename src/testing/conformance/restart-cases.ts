// The broker itself stops and comes back with what it has stored: all of its topics at once.
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase, RealTimeLimit } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectEqual, expectTrue, textsOf } from './expectations.js';

const realTime: RealTimeLimit = { only: 'campaign', reason: 'stops the broker that all cases of the gate share' };
/** Longer than a broker takes to start. */
const LATE_MS = 40_000;

const subscriptions: readonly ConformanceCase[] = forTypes(SUBSCRIPTION_TYPES, (type) => ({
  title: `${type}: after a restart of the broker what is unacknowledged comes again, uncounted, on each topic`,
  rules: [
    'A-18: a lost connection does not count as a redelivery',
    'S-24: a consumer that leaves acknowledges nothing by that',
  ],
  needs: ['restart'],
  realTime,
  async run(world) {
    const topics = [await world.newTopic(), await world.newTopic()];
    for (const topic of topics) await world.publish(topic, 'a', 'b', 'c');
    const subscriptions = [];
    for (const topic of topics) {
      const subscription = await world.subscribe(topic, { type });
      const [, , c] = await subscription.take(3);
      await subscription.acknowledge(c);
      subscriptions.push(subscription);
    }
    await world.restart();
    for (const subscription of subscriptions) {
      const again = await subscription.take(2);
      expectEqual(textsOf(again), ['a', 'b'], 'what came again');
      expectEqual(countsOf(again), [0, 0], 'redelivery counts');
      await subscription.expectQuiet();
    }
  },
}));

const others: readonly ConformanceCase[] = [
  {
    title: 'a restart of the broker resets the counts',
    rules: ['A-19: an unload loses all counts'],
    needs: ['restart', 'redelivery-count'],
    realTime,
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic);
      await subscription.redeliver(await subscription.takeOne());
      expectEqual(countsOf(await subscription.expectTexts('a')), [1], 'the count before');
      await world.restart();
      expectEqual(countsOf(await subscription.expectTexts('a')), [0], 'the count after');
    },
  },
  {
    title: 'a publisher goes on over a restart of the broker, in a new ledger',
    rules: [],
    needs: ['restart'],
    realTime,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const [before] = await world.publish(topic, 'a');
      await world.restart();
      const [after] = await world.publish(topic, 'b');
      expectTrue((after?.ledgerId ?? 0) > (before?.ledgerId ?? Infinity), 'the ledger is the one of before');
      const came = [...(await subscription.takeThrough('b')), ...(await subscription.takeUntilQuiet())];
      expectEqual([...new Set(textsOf(came))].sort(), ['a', 'b'], 'the messages that came');
    },
  },
  {
    title: 'a delayed message is not early after a restart of the broker',
    rules: ['Y-08: what is parked lives in memory', 'Y-01: the delivery time is absolute'],
    needs: ['restart', 'delayed-delivery'],
    realTime,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const deliverAtMs = world.clock.now() + LATE_MS;
      await world.publish(topic, { deliverAtMs });
      await world.restart();
      await world.elapse(Math.max(0, deliverAtMs - world.clock.now() - 5_000));
      await subscription.takeOne();
      expectTrue(world.clock.now() >= deliverAtMs, `it came ${deliverAtMs - world.clock.now()} ms early`);
      await subscription.expectQuiet();
    },
  },
  {
    title: 'over a restart of the broker who has a topic for itself keeps it',
    rules: ['G-14: who has a topic for itself keeps it over an unload'],
    needs: ['restart', 'access-modes'],
    realTime,
    async run(world) {
      const topic = await world.newTopic();
      const owner = await world.publisherAs(topic, 'exclusive');
      await world.restart();
      const message = { payload: new Uint8Array(1), properties: {} };
      await world.until(owner.publish(message, owner.nextSequenceId()), 'the receipt after the restart');
    },
  },
];

export const restartCases: readonly ConformanceCase[] = [...subscriptions, ...others];
