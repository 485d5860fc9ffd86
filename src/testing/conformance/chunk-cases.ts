// Messages that their producer cut into chunks: one message to whoever takes it, several entries to the broker.
import { fixedBackoff } from '../../core/backoff.js';
import type { EncodedMessage } from '../../core/message.js';
import { sameMessageId } from '../../core/message-id.js';
import type { MessageId } from '../../core/message-id.js';
import { poison, retry, success } from '../../core/outcome.js';
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { SubscriptionType } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { countsOf, expectEqual, expectTrue, textOf, textsOf } from './expectations.js';
import { takeFromAny } from './test-subscription.js';
import { SUBSCRIPTION, WatchedHandler, expectSettled } from './watched-handler.js';

const MAX_CHUNK_BYTES = 2_000;

/** A text of three chunks that is nowhere the same. */
function largeText(seed: number): string {
  const numbers = Array.from({ length: 1_000 }, (_, index) => 10_000 + ((seed * 7_919 + index * 31) % 90_000));
  return numbers.join('');
}

const LARGE = largeText(1);
const CHUNKS = Math.ceil(LARGE.length / MAX_CHUNK_BYTES);

function publishChunked(
  world: ConformanceWorld,
  topic: string,
  text: string,
  more: Partial<EncodedMessage> = {},
): Promise<MessageId> {
  return world.publishChunked(topic, { payload: new TextEncoder().encode(text), ...more }, MAX_CHUNK_BYTES);
}

async function backlogIs(world: ConformanceWorld, topic: string, entries: number, subscription?: string) {
  const isSo = async (): Promise<boolean> => (await world.figures(topic, subscription)).backlog === entries;
  await world.eventually(isSo, `the backlog is ${entries}`);
}

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `${type}: a message in chunks arrives as one, with the id of its last one`,
    rules: [],
    needs: ['producer-chunks', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const content = { key: 'k', properties: { a: 'b' }, eventTimeMs: 5 };
      const id = await publishChunked(world, topic, LARGE, content);
      await world.publish(topic, 'next');
      const [large] = await subscription.expectTexts(LARGE, 'next');
      expectTrue(large !== undefined && sameMessageId(large.id, id), 'the id is not that of the receipt');
      expectEqual([large.key, large.properties, large.eventTimeMs], Object.values(content), 'what came with it');
      await backlogIs(world, topic, CHUNKS + 1);
    },
  }),
  (type) => ({
    title: `${type}: acknowledging a message in chunks acknowledges every one of them`,
    rules: [],
    needs: ['producer-chunks', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await publishChunked(world, topic, LARGE);
      await world.publish(topic, 'next');
      const [large] = await subscription.expectTexts(LARGE, 'next');
      await subscription.acknowledge(large);
      await backlogIs(world, topic, 1);
      await subscription.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('next');
      await second.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: after an unload a message in chunks comes again as one, and is acknowledged as one`,
    rules: ['A-18: a lost connection does not count as a redelivery'],
    needs: ['producer-chunks', 'unload', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await publishChunked(world, topic, LARGE);
      const first = await subscription.takeOne();
      await world.unload(topic);
      const again = await subscription.expectTexts(LARGE);
      expectEqual(countsOf(again), [0], 'redelivery counts');
      expectEqual(again[0]?.id, first.id, 'its id');
      await subscription.acknowledge(...again);
      await backlogIs(world, topic, 0);
    },
  }),
  (type) => ({
    title: `${type}: a seek to a message in chunks begins with its first one`,
    rules: ['S-28: the sought message is the first that the broker sends'],
    needs: ['producer-chunks'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await world.publish(topic, 'before');
      const id = await publishChunked(world, topic, LARGE);
      await world.publish(topic, 'after');
      await subscription.acknowledge(...(await subscription.expectTexts('before', LARGE, 'after')));
      await subscription.seek(id);
      await subscription.expectTexts(LARGE, 'after');
      await subscription.expectQuiet();
    },
  }),
);

const redelivery: readonly ConformanceCase[] = [
  ...forTypes(['shared', 'key-shared'], (type) => ({
    title: `${type}: a message in chunks is asked back as one, and counts one redelivery`,
    rules: ['A-17: the count of an entry grows by one per redelivery request'],
    needs: ['producer-chunks', 'redelivery-count', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await publishChunked(world, topic, LARGE);
      await subscription.redeliver(await subscription.takeOne());
      const again = await subscription.expectTexts(LARGE);
      expectEqual(countsOf(again), [1], 'redelivery counts');
      await subscription.expectQuiet();
      await subscription.acknowledge(...again);
      await backlogIs(world, topic, 0);
    },
  })),
  ...forTypes(['exclusive', 'failover'], (type) => ({
    title: `${type}: a message in chunks comes again as one when everything is asked back`,
    rules: ['S-23: on Exclusive and Failover everything that is unacknowledged is sent again'],
    needs: ['producer-chunks'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await publishChunked(world, topic, LARGE);
      await world.publish(topic, 'next');
      const [large] = await subscription.expectTexts(LARGE, 'next');
      await subscription.redeliver(large);
      await subscription.expectTexts(LARGE, 'next');
      await subscription.expectQuiet();
    },
  })),
  ...forTypes(['exclusive', 'failover'], (type) => ({
    title: `${type}: a cumulative acknowledgement of a message in chunks covers every one of them`,
    rules: [],
    needs: ['producer-chunks', 'cumulative-ack', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      await world.publish(topic, 'before');
      await publishChunked(world, topic, LARGE);
      await world.publish(topic, 'after');
      const [, large] = await subscription.take(3);
      await subscription.acknowledgeCumulative(large);
      await backlogIs(world, topic, 1);
    },
  })),
];

const shared: readonly ConformanceCase[] = [
  {
    title: 'the id of a message in chunks says where it begins, and so does its receipt',
    rules: [],
    needs: ['producer-chunks'],
    async run(world) {
      const topic = await world.newTopic();
      const id = await publishChunked(world, topic, LARGE);
      const { firstChunk, ledgerId, entryId, partition } = (await (await world.subscribe(topic)).takeOne()).id;
      expectEqual(firstChunk, { ledgerId, partition, entryId: entryId - CHUNKS + 1 }, 'the first chunk');
      expectEqual(id.firstChunk, firstChunk, 'the first chunk of the receipt');
    },
  },
  ...forTypes(['shared', 'key-shared'], (type) => ({
    title: `${type}: of two consumers one gets all chunks of a message, and each message comes once`,
    rules: ['G-10: all chunks of a message go to one consumer'],
    needs: ['producer-chunks', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const consumers = [await world.subscribe(topic, { type }), await world.subscribe(topic, { type })];
      const texts = Array.from({ length: 20 }, (_, index) => largeText(index));
      await Promise.all(texts.map((text, index) => publishChunked(world, topic, text, { key: `k${index}` })));
      const taken = await takeFromAny(world, consumers, texts.length);
      expectEqual(textsOf(taken.flat()).sort(), [...texts].sort(), 'the messages that came');
      for (const [index, consumer] of consumers.entries()) await consumer.acknowledge(...(taken[index] ?? []));
      await backlogIs(world, topic, 0);
    },
  })),
  {
    title: 'shared: a chunk waits for the consumer that has the first one, and what is new waits behind it',
    rules: [
      'G-10: chunks for which their consumer has no permits are sent to it later, not to another one',
      'S-20: nothing new is read while something waits to be delivered again',
    ],
    needs: ['producer-chunks', 'flow-pause', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await withTwoChunks(world, topic, 'shared');
      const second = await world.subscribe(topic);
      await world.publish(topic, 'next');
      await second.expectQuiet();
      first.port.resume();
      const [toFirst = []] = await takeFromAny(world, [first, second], 2);
      expectTrue(textsOf(toFirst).includes(LARGE), 'its consumer did not get the message in chunks');
    },
  },
  {
    title:
      'key-shared: a message in chunks whose key moves between them waits until the consumer with the first leaves',
    rules: ['K-10: what is new of a hash that moved waits until its holder holds nothing of it'],
    needs: ['producer-chunks', 'flow-pause', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await withTwoChunks(world, topic, 'key-shared');
      const others = await Promise.all(Array.from({ length: 6 }, () => world.subscribe(topic, { type: 'key-shared' })));
      first.port.resume();
      await Promise.all([first, ...others].map((consumer) => consumer.expectQuiet()));
      await first.close();
      const taken = await takeFromAny(world, others, 1);
      expectEqual(textsOf(taken.flat()), [LARGE], 'what comes once it has left');
    },
  },
  {
    title: 'shared: a message in chunks that a consumer leaves behind comes to another one as a whole',
    rules: ['S-24: what a consumer holds goes back when it leaves, uncounted'],
    needs: ['producer-chunks'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await world.subscribe(topic);
      await publishChunked(world, topic, LARGE);
      await first.takeOne();
      const second = await world.subscribe(topic);
      await first.close();
      expectEqual(countsOf(await second.expectTexts(LARGE)), [0], 'redelivery counts');
    },
  },
];

/** A consumer that has the first two chunks of a message with the key `k`, and no room for more until it is resumed. */
async function withTwoChunks(world: ConformanceWorld, topic: string, type: SubscriptionType) {
  const first = await world.subscribe(topic, { type, prefetch: 2, consumerName: 'first' });
  const permitsAre = (count: number) => async (): Promise<boolean> =>
    (await world.figures(topic)).permits['first'] === count;
  await world.eventually(permitsAre(2), 'the first consumer has two permits');
  first.port.pause();
  await publishChunked(world, topic, LARGE, { key: 'k' });
  await world.eventually(permitsAre(0), 'two chunks have come');
  return first;
}

const runtimes: readonly ConformanceCase[] = [
  ...forTypes(SUBSCRIPTION_TYPES, (type) => ({
    title: `${type}: runtime: a message in chunks is one delivery, run again as one, and settled with all of them`,
    rules: [],
    needs: ['producer-chunks', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(
        world,
        topic,
        { type, redelivery: { maxDeliveries: 3, backoff: fixedBackoff(50) } },
        ({ attempt }) => (attempt < 3 ? retry('again') : success()),
      );
      await publishChunked(world, topic, JSON.stringify(LARGE));
      await handler.until(`${LARGE}3`);
      await backlogIs(world, topic, 0, SUBSCRIPTION);
      await handler.drain();
      handler.expectRuns(`${LARGE}1`, `${LARGE}2`, `${LARGE}3`);
      await expectSettled(world, topic, { type });
    },
  })),
  {
    title: 'runtime: the dead letter of a message in chunks is one message',
    rules: [],
    needs: ['producer-chunks', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const handler = await WatchedHandler.start(world, topic, {}, () => poison('burnt'));
      await publishChunked(world, topic, JSON.stringify(LARGE));
      await handler.until(`${LARGE}1`);
      await backlogIs(world, topic, 0, SUBSCRIPTION);
      await handler.drain();
      const letters = await world.readDeadLetters(topic, SUBSCRIPTION);
      expectEqual(letters.map(textOf), [JSON.stringify(LARGE)], 'the dead letters');
      expectEqual(letters[0]?.id.firstChunk, undefined, 'the first chunk of the dead letter');
    },
  },
];

export const chunkCases: readonly ConformanceCase[] = [...forEachType, ...redelivery, ...shared, ...runtimes];
