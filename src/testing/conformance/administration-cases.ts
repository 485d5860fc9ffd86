// What an administrator does to a topic, as its publishers and subscriptions see it: termination, growth, expiry,
// deduplication.
import type { EncodedMessage } from '../../core/message.js';
import { compareMessageIds } from '../../core/message-id.js';
import type { MessageId } from '../../core/message-id.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { expectEqual, expectRefused, expectTrue, textsOf } from './expectations.js';
import type { TestSubscription } from './test-subscription.js';

/** Clients look for new partitions once a minute, a tenth more at most. */
const GROWTH_SEEN_MS = 70_000;
const encoder = new TextEncoder();
const message = (text: string): EncodedMessage => ({ payload: encoder.encode(text), properties: {} });

const termination: readonly ConformanceCase[] = [
  {
    title: 'a terminated topic takes nothing more, for good, and says its last id however often it is asked',
    rules: ['G-13: termination may be repeated and gives the last id; after one failed send all later ones fail'],
    needs: ['terminate'],
    async run(world) {
      const topic = await world.newTopic();
      const [, last] = await world.publish(topic, 'a', 'b');
      for (const ended of [await world.terminate(topic), await world.terminate(topic)]) {
        expectEqual([ended.ledgerId, ended.entryId], [last?.ledgerId, last?.entryId], 'the last id');
      }
      const transport = await world.newTransport();
      for (let i = 0; i < 3; i++) {
        await expectRefused(world.publish(topic, 'late'), 'TOPIC_TERMINATED', `publish ${i} after the end`);
      }
      const opening = transport.publisher(topic).then((late) => late.publish(message('late'), late.nextSequenceId()));
      const error = await expectRefused(world.until(opening, 'the refusal'), 'TOPIC_TERMINATED', 'a new publisher');
      expectTrue('retriable' in error && error.retriable === false, 'a terminated topic stays terminated');
    },
  },
  {
    title: 'what a terminated topic holds is delivered, asked back and acknowledged as before',
    rules: ['G-13: the end comes only after the last acknowledgement'],
    needs: ['terminate', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const before = await world.subscribe(topic);
      await world.terminate(topic);
      const [a, b] = await before.expectTexts('a', 'b');
      await before.redeliver(b);
      await before.acknowledge(a, ...(await before.expectTexts('b')));
      await world.eventually(async () => (await world.figures(topic)).backlog === 0, 'the backlog is 0');
      const after = await world.subscribe(topic, { subscription: 'after' });
      await after.expectTexts('a', 'b');
      await after.expectQuiet();
    },
  },
];

const growth: readonly ConformanceCase[] = [
  {
    title: 'messages of partitions that a topic gets later arrive, from the first one on',
    rules: ['S-43: more partitions of a topic are found within a minute'],
    needs: ['grow'],
    realTime: { only: 'campaign', reason: 'clients look for new partitions once a minute' },
    async run(world) {
      const topic = await world.newTopic(1);
      const subscription = await world.subscribe(topic, { initialPosition: 'latest' });
      await world.publish(topic, 'before');
      await subscription.acknowledge(...(await subscription.expectTexts('before')));
      await world.grow(topic, 3);
      // A client that is new knows all partitions at once, and publishes to those that the old one does not know yet.
      const transport = await world.newTransport();
      const publisher = await transport.publisher(topic);
      const texts = ['0', '1', '2'];
      for (const text of texts)
        await world.until(publisher.publish(message(text), publisher.nextSequenceId()), 'a receipt');
      await world.elapse(GROWTH_SEEN_MS);
      const came = await subscription.take(3);
      expectEqual(textsOf(came).sort(), texts, 'what came');
      const partitions = came.map(({ id }) => id.partition);
      expectEqual(partitions.sort(), [0, 1, 2], 'the partitions that it came from');
      await subscription.acknowledge(...came);
      await subscription.expectQuiet();
    },
  },
];

/** Of a subscription that is nearly caught up brokers take nothing before one and a half times the whole seconds they are told. */
const TIME_TO_LIVE_MS = 1_000;
const EXPIRED_MS = 1_200;

const expiry: readonly ConformanceCase[] = [
  {
    title: 'what has expired is gone for the subscription, held or not, and cannot be asked back',
    rules: [
      'S-29: the time to live takes what was published before it, acknowledged or not, and tells no consumer',
      'A-17: the count grows only of what is after the mark-delete position',
    ],
    needs: ['expire', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 1 });
      const other = await world.subscribe(topic, { subscription: 'other' });
      await world.publish(topic, 'a', 'b', 'c', 'd');
      const a = await subscription.takeOne();
      await world.elapse(EXPIRED_MS);
      await world.expire(topic, TIME_TO_LIVE_MS);
      await world.eventually(async () => (await world.figures(topic)).backlog === 0, 'the backlog is 0');
      await subscription.redeliver(a);
      await world.publish(topic, 'new');
      const came = textsOf(await subscription.takeThrough('new'));
      expectTrue(!came.includes('a'), 'what has expired came again when it was asked for');
      await other.expectTexts('a', 'b', 'c', 'd', 'new');
    },
  },
  ...forTypes(['shared', 'key-shared'], (type): ConformanceCase => ({
    title: `${type}: what consumers hold of what has expired is nothing any more: asked back or acknowledged, it changes nothing`,
    rules: ['S-26: what is waiting or held at or before the mark-delete position is dropped at the next read'],
    needs: ['expire', 'statistics', 'redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await world.publish(topic, 'a', 'b', 'c');
      const [a, b] = await subscription.take(3);
      await subscription.redeliver(b);
      await subscription.expectTexts('b');
      await world.elapse(EXPIRED_MS);
      await world.expire(topic, TIME_TO_LIVE_MS);
      await world.eventually(async () => (await world.figures(topic)).backlog === 0, 'the backlog is 0');
      await world.publish(topic, 'new');
      const [fresh] = await subscription.expectTexts('new');
      await subscription.redeliver(a, b);
      await subscription.acknowledge(a, b, fresh);
      await subscription.expectQuiet();
      expectEqual((await world.figures(topic)).backlog, 0, 'the backlog');
    },
  })),
  {
    title: 'a message that waits for its time expires by its publish time',
    rules: ['Y-09: the time to live counts from publishing and takes what waits for its time too'],
    needs: ['expire', 'statistics', 'delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const deliverAtMs = world.clock.now() + 3_000;
      await world.publish(topic, { ...message('late'), deliverAtMs }, 'now');
      await subscription.acknowledge(...(await subscription.expectTexts('now')));
      await world.elapse(EXPIRED_MS);
      await world.expire(topic, TIME_TO_LIVE_MS);
      await world.eventually(async () => (await world.figures(topic)).backlog === 0, 'the backlog is 0');
      await subscription.expectQuiet(2_000);
    },
  },
];

async function publishWith(
  world: ConformanceWorld,
  topic: string,
  sequenceIds: readonly number[],
): Promise<MessageId[]> {
  const publisher = await world.publisher(topic);
  const publishing = sequenceIds.map((sequenceId) => publisher.publish(message(String(sequenceId)), sequenceId));
  return world.until(Promise.all(publishing), 'the receipts');
}

/** A topic that deduplicates, who gets what is published from now on, and the first sequence id of a publisher. */
async function deduplicating(
  world: ConformanceWorld,
): Promise<{ topic: string; subscription: TestSubscription; start: number }> {
  const topic = await world.newTopic();
  await world.deduplicate(topic);
  const subscription = await world.subscribe(topic, { initialPosition: 'latest' });
  const start = (await world.publisher(topic)).nextSequenceId();
  return { topic, subscription, start };
}

const repetitions: readonly ConformanceCase[] = [
  {
    title: 'a topic that does not deduplicate stores a repeated sequence id again',
    rules: ['S-45: without deduplication a repeated sequence id is stored twice'],
    async run(world) {
      const topic = await world.newTopic();
      const start = (await world.publisher(topic)).nextSequenceId();
      const [first] = await publishWith(world, topic, [start]);
      const [second] = await publishWith(world, topic, [start]);
      const text = String(start);
      await (await world.subscribe(topic)).expectTexts(text, text);
      expectTrue(
        first !== undefined && second !== undefined && compareMessageIds(first, second) < 0,
        'the second receipt names a later message',
      );
    },
  },
  {
    title: 'a topic that deduplicates confirms a repetition and does not store it; gaps are fine',
    rules: [
      'S-44: a sequence id at or below the highest stored one of its producer is confirmed with the id -1:-1, and not stored',
    ],
    needs: ['deduplicate'],
    async run(world) {
      const { topic, subscription, start } = await deduplicating(world);
      const stored: string[] = [];
      for (const offset of [0, 1, 1, 0, 5, 3, 5, 6]) {
        const [receipt] = await publishWith(world, topic, [start + offset]);
        if (receipt?.ledgerId !== -1) stored.push(String(start + offset));
        else expectEqual(receipt.entryId, -1, 'the entry that the receipt of a repetition names');
      }
      const wanted = [0, 1, 5, 6].map((offset) => String(start + offset));
      expectEqual(stored, wanted, 'what was confirmed as stored');
      await subscription.expectTexts(...wanted);
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a repetition that is published among fresh messages takes none of them with it',
    rules: [
      'G-01: a repetition never shares a batch with fresh messages, which a broker that deduplicates would drop with it',
      'S-44: deduplication compares with the highest sequence id of its producer',
    ],
    needs: ['deduplicate'],
    async run(world) {
      const { topic, subscription, start } = await deduplicating(world);
      await publishWith(
        world,
        topic,
        [0, 1, 2].map((offset) => start + offset),
      );
      await publishWith(
        world,
        topic,
        [2, 3, 1, 4, 5].map((offset) => start + offset),
      );
      await subscription.expectTexts(...[0, 1, 2, 3, 4, 5].map((offset) => String(start + offset)));
      await subscription.expectQuiet();
    },
  },
];

const deletion: readonly ConformanceCase[] = [
  {
    title: 'a subscription with a consumer is not deleted; without one it is, and begins anew',
    rules: ['S-30: a subscription is not taken away from others that are connected to it'],
    needs: ['delete-subscription'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const first = await world.subscribe(topic);
      const [a] = await first.expectTexts('a', 'b');
      await first.acknowledge(a);
      expectEqual(await world.deleteSubscription(topic), false, 'whether it was deleted with a consumer');
      await world.publish(topic, 'c');
      await first.expectTexts('c');
      await first.close();
      expectEqual(await world.deleteSubscription(topic), true, 'whether it was deleted without consumers');
      const second = await world.subscribe(topic);
      await second.expectTexts('a', 'b', 'c');
    },
  },
  {
    title: 'a topic that is deleted under its publisher and consumer comes again with them, empty',
    rules: [],
    needs: ['delete-topic'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      await world.publish(topic, 'a', 'b');
      await subscription.expectTexts('a', 'b');
      await world.deleteTopic(topic);
      await world.eventually(() => subscription.port.acknowledge([]).then(...isConnected), 'the next connection');
      await world.publish(topic, 'c');
      await subscription.expectTexts('c');
      await subscription.expectQuiet();
    },
  },
];

/** Of a call that fails while the connection is lost. */
const isConnected = [() => true, () => false] as const;

export const administrationCases: readonly ConformanceCase[] = [
  ...termination,
  ...growth,
  ...expiry,
  ...repetitions,
  ...deletion,
];
