// Key_Shared: one consumer per key at a time, in order, also while consumers come and go.
import type { ReceivedMessage } from '../../core/message.js';
import type { ConformanceCase } from './conformance-case.js';
import type { ConformanceWorld } from './conformance-world.js';
import { countsOf, expectEqual, expectTrue, textOf, textsOf } from './expectations.js';
import type { TestSubscription } from './test-subscription.js';
import { takeFromAny } from './test-subscription.js';

const keys = (count: number): string[] => Array.from({ length: count }, (_, i) => `key-${i}`);

export async function openKeyShared(
  world: ConformanceWorld,
  topic: string,
  consumerName: string,
): Promise<TestSubscription> {
  return world.subscribe(topic, { type: 'key-shared', consumerName, transport: await world.newTransport() });
}

/** Publishes `key:round` for each key, rounds one after the other, so that no two of a key share an entry. */
export async function publishRounds(
  world: ConformanceWorld,
  topic: string,
  allKeys: readonly string[],
  rounds: readonly number[],
): Promise<void> {
  const publisher = await world.publisher(topic);
  for (const round of rounds) {
    const publishing = allKeys.map((key) => {
      const message = { payload: new TextEncoder().encode(`${key}:${round}`), key, properties: {} };
      return publisher.publish(message, publisher.nextSequenceId());
    });
    await world.until(Promise.all(publishing), 'the receipts');
  }
}

function keysOf(messages: readonly ReceivedMessage[]): string[] {
  return [...new Set(messages.map(({ key }) => String(key)))].sort();
}

/** Checks that no key is in both lists. */
function expectApart(one: readonly ReceivedMessage[], two: readonly ReceivedMessage[], when: string): void {
  const shared = keysOf(one).filter((key) => keysOf(two).includes(key));
  expectEqual(shared, [], `keys that two consumers got ${when}`);
}

/** Checks that the rounds of each key rise. */
function expectInOrder(messages: readonly ReceivedMessage[]): void {
  const last = new Map<string, number>();
  for (const message of messages) {
    const [key = '', round = ''] = textOf(message).split(':');
    const before = last.get(key) ?? -1;
    expectTrue(Number(round) > before, `${key}: message ${round} came after message ${before}`);
    last.set(key, Number(round));
  }
}

const steady: readonly ConformanceCase[] = [
  {
    title: 'key-shared: each key goes to one consumer, in order, and every message arrives',
    rules: ['K-08: messages of one key are unacknowledged at one consumer only'],
    async run(world) {
      const topic = await world.newTopic();
      const all = [
        await openKeyShared(world, topic, 'c1'),
        await openKeyShared(world, topic, 'c2'),
        await openKeyShared(world, topic, 'c3'),
      ];
      await publishRounds(world, topic, keys(20), [0, 1, 2, 3, 4]);
      const taken = await takeFromAny(world, all, 100);
      taken.forEach(expectInOrder);
      const [one = [], two = [], three = []] = taken;
      expectApart(one, two, 'without any change');
      expectApart(two, three, 'without any change');
      expectApart(one, three, 'without any change');
    },
  },
  {
    title: 'key-shared: known keys go to the consumer that the ring of hashes names',
    rules: [
      'K-05: each consumer has 100 points on the ring, placed by its name; a slot belongs to the next point at or above it',
      'K-02: keys are hashed by Murmur3',
      'K-03: the consistent ring has the slots 1 to 65,535',
      'K-04: slots of known keys',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      const c2 = await openKeyShared(world, topic, 'c2');
      const known = ['A', 'C', 'key1', 'key02', 'B', 'k1', 'k2', 'key2', 'key01'];
      await publishRounds(world, topic, known, [0]);
      const [ofC1 = [], ofC2 = []] = await takeFromAny(world, [c1, c2], known.length);
      expectEqual(keysOf(ofC1), ['C', 'key02', 'key1'], 'keys of c1');
      expectEqual(keysOf(ofC2), ['A', 'B', 'k1', 'k2', 'key01', 'key2'], 'keys of c2');
    },
  },
  {
    title: 'key-shared: the ordering key decides before the key',
    rules: ['K-01: the key that decides is the ordering key, else the key'],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      const c2 = await openKeyShared(world, topic, 'c2');
      // `C` belongs to c1, `A` to c2.
      const orderingKey = new TextEncoder().encode('C');
      await world.publish(topic, ...keys(20).map((key) => ({ key, orderingKey })));
      expectEqual((await c1.take(20)).length, 20, 'messages of the owner of the ordering key');
      await c2.expectQuiet();
    },
  },
  {
    title: 'key-shared: a key in bytes belongs to the same consumer as the text of these bytes',
    rules: ['K-01: the key that decides is the ordering key, else the key'],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      const c2 = await openKeyShared(world, topic, 'c2');
      const bytes = (key: string): Uint8Array => new TextEncoder().encode(key);
      await world.publish(topic, { key: bytes('A') }, { key: 'A' }, { key: bytes('C') }, { key: 'C' });
      const [ofC1 = [], ofC2 = []] = await takeFromAny(world, [c1, c2], 4);
      expectEqual([ofC1.length, ofC2.length], [2, 2], 'messages of c1, owner of C, and c2, owner of A');
    },
  },
  {
    title: 'key-shared: messages without a key are spread and none is lost',
    rules: ['K-01: without a key the producer and the sequence id decide'],
    async run(world) {
      const topic = await world.newTopic();
      const all = [await openKeyShared(world, topic, 'c1'), await openKeyShared(world, topic, 'c2')];
      const texts = Array.from({ length: 60 }, (_, i) => String(i).padStart(2, '0'));
      await world.publish(topic, ...texts);
      const taken = await takeFromAny(world, all, 60);
      expectEqual(textsOf(taken.flat()).sort(), texts, 'what both got');
      expectTrue(
        taken.every((messages) => messages.length > 0),
        'each consumer gets some of 60 messages without a key',
      );
    },
  },
  {
    title: 'key-shared: what was asked back returns to the consumer of its key',
    rules: ['K-08: messages of one key are unacknowledged at one consumer only'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      const c2 = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, keys(20), [0]);
      const [one = [], two = []] = await takeFromAny(world, [c1, c2], 20);
      await c1.redeliver(...one);
      await c2.redeliver(...two);
      const [oneAgain = [], twoAgain = []] = await takeFromAny(world, [c1, c2], 20);
      expectEqual([keysOf(oneAgain), keysOf(twoAgain)], [keysOf(one), keysOf(two)], 'keys of c1 and c2');
      expectTrue(
        [...oneAgain, ...twoAgain].every(({ redeliveryCount }) => redeliveryCount === 1),
        `counts must be 1, got ${countsOf([...oneAgain, ...twoAgain]).join(', ')}`,
      );
    },
  },
  {
    title: 'key-shared: a consumer without room holds up its own keys only',
    rules: ['K-12: once an entry is held back, later ones of its hash are held back too'],
    async run(world) {
      const topic = await world.newTopic();
      const blocked = await world.subscribe(topic, { type: 'key-shared', consumerName: 'c1', prefetch: 0 });
      const free = await openKeyShared(world, topic, 'c2');
      // `C` belongs to c1, `A` to c2.
      await publishRounds(world, topic, ['C', 'A'], [0, 1, 2]);
      await free.expectTexts('A:0', 'A:1', 'A:2');
      await free.expectQuiet();
      await blocked.expectTexts('C:0', 'C:1', 'C:2');
    },
  },
  {
    title: 'key-shared: acknowledging in any order keeps the order of each key',
    rules: ['K-12: replay is in position order'],
    async run(world) {
      const topic = await world.newTopic();
      const all = [await openKeyShared(world, topic, 'c1'), await openKeyShared(world, topic, 'c2')];
      for (let block = 0; block < 3; block++) {
        await publishRounds(world, topic, keys(10), [0, 1, 2, 3]);
        const taken = await takeFromAny(world, all, 40);
        for (const [i, messages] of taken.entries()) {
          expectInOrder(messages);
          await all[i]?.acknowledge(...messages.toReversed());
        }
      }
    },
  },
];

const changes: readonly ConformanceCase[] = [
  {
    title: 'key-shared: a key that moves waits until its old consumer holds none of it',
    rules: [
      'K-09: a hash that moves while its old owner still holds entries is draining',
      'K-10: a draining hash goes to nobody but its old owner until that owner holds nothing of it',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      await publishRounds(world, topic, keys(20), [0]);
      const held = await c1.take(20);
      const c2 = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, keys(20), [1]);
      await c2.expectQuiet();
      const stayed = await c1.takeUntilQuiet();
      expectTrue(stayed.length > 0 && stayed.length < 20, `of 20 keys some move, ${stayed.length} stayed`);
      await c1.acknowledge(...held);
      const moved = await c2.take(20 - stayed.length);
      expectApart(stayed, moved, 'in the second round');
      expectEqual(keysOf([...stayed, ...moved]), keys(20).sort(), 'keys of the second round');
    },
  },
  {
    title: 'key-shared: a key that nobody holds moves at once',
    rules: ['K-09: only a hash whose old owner still holds entries is draining'],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      await publishRounds(world, topic, keys(20), [0]);
      await c1.acknowledge(...(await c1.take(20)));
      const c2 = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, keys(20), [1]);
      const [one = [], two = []] = await takeFromAny(world, [c1, c2], 20);
      expectApart(one, two, 'after the second consumer joined');
      expectTrue(one.length > 0 && two.length > 0, `both get some of 20 keys: ${one.length} and ${two.length}`);
    },
  },
  {
    title: 'key-shared: each acknowledged key is free by itself',
    rules: ['K-10: a draining hash is free once its old owner holds nothing of it'],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      // With c2 there, A and k1 move to it, C stays.
      await publishRounds(world, topic, ['A', 'k1', 'C'], [0]);
      const [a, k1] = await c1.take(3);
      const c2 = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, ['A', 'k1', 'C'], [1]);
      await c1.expectTexts('C:1');
      await c1.acknowledge(a);
      await c2.expectTexts('A:1');
      await c2.expectQuiet();
      await c1.acknowledge(k1);
      await c2.expectTexts('k1:1');
    },
  },
  {
    title: 'key-shared: what is asked back of a moving key goes to its new consumer',
    rules: [
      'K-10: a draining hash is free once its old owner holds nothing of it',
      'K-13: an entry that was asked back does not hold back later ones of its key',
    ],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      await publishRounds(world, topic, ['A'], [0]);
      const [a] = await c1.take(1);
      const c2 = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, ['A'], [1]);
      await c1.redeliver(a);
      // Asking back gives up the order of the key (K-13), so either may come first.
      const moved = (await c2.take(2)).map((message) => `${textOf(message)} count ${message.redeliveryCount}`);
      expectEqual(moved.sort(), ['A:0 count 1', 'A:1 count 0'], 'what the new consumer got');
      await c1.expectQuiet();
    },
  },
  {
    title: 'key-shared: when a consumer leaves, its keys go to the others in order',
    rules: ['S-24: a consumer that leaves gives its entries to the others'],
    async run(world) {
      const topic = await world.newTopic();
      const leaving = await openKeyShared(world, topic, 'c1');
      const staying = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, keys(12), [0, 1]);
      const [ofLeaving = [], ofStaying = []] = await takeFromAny(world, [leaving, staying], 24);
      await publishRounds(world, topic, keys(12), [2]);
      await leaving.close();
      const rest = await staying.take(ofLeaving.length + 12);
      expectInOrder([...ofStaying, ...rest]);
      await staying.expectQuiet();
    },
  },
  {
    title: 'key-shared: a key that comes back to its consumer before it was drained goes on there',
    rules: ['K-10: a draining hash that is its owner’s again is free at once'],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      await publishRounds(world, topic, ['A'], [0]);
      await c1.expectTexts('A:0');
      const c2 = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, ['A'], [1]);
      await c2.expectQuiet();
      await c2.close();
      await c1.expectTexts('A:1');
    },
  },
];

export const keySharedCases: readonly ConformanceCase[] = [...steady, ...changes];
