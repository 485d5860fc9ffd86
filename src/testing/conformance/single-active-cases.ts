// Exclusive and Failover: redelivery is a rewind, nothing is counted, and on Failover others stand by.
import type { SubscriptionState } from '../../ports/transport.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { countsOf, expectEqual, textsOf } from './expectations.js';
import type { TestSubscription } from './test-subscription.js';
import { takeFromAny } from './test-subscription.js';

const rewinds: readonly ConformanceCase[] = forTypes(
  ['exclusive', 'failover'],
  (type) => ({
    title: `${type}: asking for one message sends everything unacknowledged again, in order and uncounted`,
    rules: [
      'N-31: on Exclusive and Failover a request for redelivery sends everything unacknowledged again',
      'A-16: on Exclusive and Failover counts are always 0',
    ],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type });
      const [, , c] = await subscription.take(3);
      await subscription.redeliver(c);
      expectEqual(countsOf(await subscription.expectTexts('a', 'b', 'c')), [0, 0, 0], 'redelivery counts');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: a rewind passes over what was acknowledged one by one`,
    rules: ['S-23: on Exclusive and Failover redelivery rewinds; entries acknowledged one by one are not sent again'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c', 'd');
      const subscription = await world.subscribe(topic, { type });
      const [a, b, c] = await subscription.take(4);
      await subscription.acknowledge(a, c);
      // A rewind that meets a read under way is not what is looked at here.
      await world.elapse(200);
      await subscription.redeliver(b);
      await subscription.expectTexts('b', 'd');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: a rewind begins after what was acknowledged cumulatively`,
    rules: ['S-23: redelivery begins after the mark-delete position'],
    needs: ['cumulative-ack'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c', 'd');
      const subscription = await world.subscribe(topic, { type });
      const [, b, c] = await subscription.take(4);
      await subscription.acknowledgeCumulative(b);
      // A rewind that meets a read under way is not what is looked at here.
      await world.elapse(200);
      await subscription.redeliver(c);
      await subscription.expectTexts('c', 'd');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: what lay in the client before a rewind comes once, in its place`,
    rules: ['N-33: copies that lie in the client leave it before the request is made', 'G-12: dropped permits return'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type, prefetch: 10 });
      await world.publish(topic, ...Array.from({ length: 10 }, (_, i) => String(i)));
      const taken = await subscription.take(4);
      // A rewind that meets a read under way is not what is looked at here.
      await world.elapse(200);
      await subscription.redeliver(taken[0]);
      await subscription.expectTexts('0', '1', '2', '3', '4', '5', '6', '7', '8', '9');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: rewinds in quick succession keep order and lose nothing`,
    rules: ['S-23: the epoch filters messages sent before'],
    realTime: {
      only: 'never',
      reason: 'Pulsar 4.0.7 passes over entries when a rewind meets a read under way; they come at the next rewind',
    },
    async run(world) {
      const topic = await world.newTopic();
      const texts = Array.from({ length: 30 }, (_, i) => String(i));
      await world.publish(topic, ...texts);
      const subscription = await world.subscribe(topic, { type, prefetch: 7 });
      const first = await subscription.takeOne();
      await Promise.all([1, 2, 3].map(() => subscription.redeliver(first)));
      await subscription.take(5);
      await subscription.redeliver(first);
      await subscription.expectTexts(...texts);
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: messages come in the order in which they were published`,
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const texts = Array.from({ length: 300 }, (_, i) => String(i));
      const subscription = await world.subscribe(topic, { type, prefetch: 16 });
      const publisher = await world.publisher(topic);
      const payloads = texts.map((text) => ({ payload: new TextEncoder().encode(text), properties: {} }));
      const receipts = payloads.map((message) => publisher.publish(message, publisher.nextSequenceId()));
      await world.until(Promise.all(receipts), 'the receipts');
      await subscription.expectTexts(...texts);
    },
  }),
);

/** The subscription that gets what is published now, and the others. */
async function activeOf(world: ConformanceWorld, topic: string, all: readonly TestSubscription[]): Promise<number> {
  await world.publish(topic, 'who is active');
  const taken = await takeFromAny(world, all, 1);
  const index = taken.findIndex((messages) => messages.length === 1);
  await all[index]?.acknowledge(taken[index]?.[0]);
  return index;
}

/** Two Failover consumers on clients of their own, `active` first. */
async function failoverPair(
  world: ConformanceWorld,
  topic: string,
): Promise<{ active: TestSubscription; standby: TestSubscription }> {
  const open = async (): Promise<TestSubscription> =>
    world.subscribe(topic, { type: 'failover', transport: await world.newTransport() });
  const [one, two] = [await open(), await open()];
  // The second may take over; that takes a second.
  await world.elapse(1_500);
  return (await activeOf(world, topic, [one, two])) === 0
    ? { active: one, standby: two }
    : { active: two, standby: one };
}

const failover: readonly ConformanceCase[] = [
  {
    title: 'failover: only the active consumer gets messages',
    rules: ['S-02: Failover chooses the active consumer, others stand by'],
    async run(world) {
      const topic = await world.newTopic();
      const { active, standby } = await failoverPair(world, topic);
      await world.publish(topic, 'a', 'b', 'c');
      await active.expectTexts('a', 'b', 'c');
      await standby.expectQuiet();
    },
  },
  {
    title: 'failover: when the active consumer leaves, the next one gets what was not acknowledged, uncounted',
    rules: ['S-03: when the active consumer changes, delivery begins again after what is acknowledged'],
    async run(world) {
      const topic = await world.newTopic();
      const { active, standby } = await failoverPair(world, topic);
      await world.publish(topic, 'a', 'b', 'c');
      const [a] = await active.take(3);
      await active.acknowledge(a);
      await active.close();
      expectEqual(countsOf(await standby.expectTexts('b', 'c')), [0, 0], 'redelivery counts');
      await world.publish(topic, 'd');
      await standby.expectTexts('d');
    },
  },
  {
    title: 'failover: a request of a consumer that stands by changes nothing',
    rules: ['S-23: only the active consumer may ask'],
    async run(world) {
      const topic = await world.newTopic();
      const { active, standby } = await failoverPair(world, topic);
      await world.publish(topic, 'a', 'b');
      const [a] = await active.take(2);
      await standby.redeliver(a);
      await active.expectQuiet();
      await standby.expectQuiet();
    },
  },
  {
    title: 'failover: the reported state says who is active',
    rules: ['S-02: Failover chooses the active consumer, others stand by'],
    async run(world) {
      const topic = await world.newTopic();
      const { active, standby } = await failoverPair(world, topic);
      const states: SubscriptionState['state'][] = [];
      active.port.onState(({ state }) => states.splice(0, 1, state));
      standby.port.onState(({ state }) => states.splice(1, 1, state));
      await world.eventually(() => states[0] === 'active' && states[1] === 'standby', 'states active and standby');
      await active.close();
      await world.eventually(() => states[1] === 'active', 'the one that stood by is active');
    },
  },
  {
    title: 'failover: partitions are spread over the consumers by name and number',
    rules: ["S-02: Failover chooses the active consumer by the partition's number"],
    async run(world) {
      const topic = await world.newTopic(4);
      const open = async (consumerName: string): Promise<TestSubscription> =>
        world.subscribe(topic, { type: 'failover', consumerName, transport: await world.newTransport() });
      const b = await open('b');
      const a = await open('a');
      await world.elapse(1_500);
      // Java's hash of a one-letter key is its code: `d` goes to partition 0, `a` to 1, `b` to 2, `c` to 3.
      await world.publish(topic, ...['d', 'a', 'b', 'c'].map((key) => ({ key })));
      const [ofA = [], ofB = []] = await takeFromAny(world, [a, b], 4);
      const partitions = [ofA, ofB].map((messages) => messages.map(({ id }) => id.partition).sort());
      expectEqual(
        partitions,
        [
          [0, 2],
          [1, 3],
        ],
        'partitions of consumer a and of consumer b',
      );
    },
  },
  {
    title: 'failover: a consumer that joins and takes over gets everything unacknowledged once',
    rules: ['S-03: when the active consumer changes, delivery begins again after what is acknowledged'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const first = await world.subscribe(topic, { type: 'failover', consumerName: 'z' });
      const [a] = await first.take(3);
      await first.acknowledge(a);
      const second = await world.subscribe(topic, {
        type: 'failover',
        consumerName: 'a',
        transport: await world.newTransport(),
      });
      await world.elapse(1_500);
      await world.publish(topic, 'd');
      const ofFirst = await first.takeUntilQuiet();
      const ofSecond = await second.takeUntilQuiet();
      // Which of the two is active hangs on the name of the topic; both ways are right.
      const [toFirst, toSecond] = ofSecond.length === 0 ? [['d'], []] : [[], ['b', 'c', 'd']];
      expectEqual(
        [textsOf(ofFirst), textsOf(ofSecond)],
        [toFirst, toSecond],
        'messages of the first and of the second',
      );
    },
  },
];

export const singleActiveCases: readonly ConformanceCase[] = [...rewinds, ...failover];
