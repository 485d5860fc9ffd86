// Key_Shared at its edges: keys that share a slot, keys with messages put aside, and how far it reads ahead of them.
import type { ConformanceCase } from './conformance-case.js';
import { expectEqual, expectTrue, textsOf } from './expectations.js';
import { openKeyShared, publishRounds } from './key-shared-cases.js';

/** Two consumers that it may put 2,000 messages aside for each, and some more. */
const BEYOND_LOOK_AHEAD = 4_100;
/** Keys that move to c2 when it joins c1. */
const MOVING = ['A', 'B', 'k1', 'k2', 'key2', 'key01'];

export const keyOrderCases: readonly ConformanceCase[] = [
  {
    title: 'key-shared: two keys of one slot are one to the broker: while one drains, the other waits',
    rules: [
      'K-04: the keys key-107 and key-411 have the same slot',
      'K-10: a draining hash goes to nobody but its old owner until that owner holds nothing of it',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      await publishRounds(world, topic, ['key-107'], [0]);
      const held = await c1.expectTexts('key-107:0');
      // With c2 there, the slot of both keys is its, and so is `A`.
      const c2 = await openKeyShared(world, topic, 'c2');
      await publishRounds(world, topic, ['key-411', 'A'], [0]);
      await c2.expectTexts('A:0');
      await c2.expectQuiet();
      await c1.acknowledge(...held);
      await c2.expectTexts('key-411:0');
      await c1.expectQuiet();
    },
  },
  {
    title: 'key-shared: what comes new does not pass what was put aside of its key',
    rules: ['K-11: new messages of a hash that has some put aside wait with them'],
    async run(world) {
      const topic = await world.newTopic();
      const full = await world.subscribe(topic, { type: 'key-shared', consumerName: 'c1', prefetch: 1 });
      const free = await openKeyShared(world, topic, 'c2');
      // `C` belongs to c1, `A` to c2.
      await publishRounds(world, topic, ['C', 'A'], [0, 1, 2, 3]);
      await free.expectTexts('A:0', 'A:1', 'A:2', 'A:3');
      await full.expectTexts('C:0', 'C:1');
      await publishRounds(world, topic, ['C'], [4, 5]);
      await full.expectTexts('C:2', 'C:3', 'C:4', 'C:5');
      await full.expectQuiet();
    },
  },
  {
    title: 'key-shared: what a consumer that left had goes first to the next one of its keys, new messages after it',
    rules: ['K-11: what comes back when a consumer leaves holds back new messages of its hash'],
    async run(world) {
      const topic = await world.newTopic();
      const leaving = await openKeyShared(world, topic, 'c1');
      const staying = await world.subscribe(topic, {
        type: 'key-shared',
        consumerName: 'c2',
        prefetch: 1,
        transport: await world.newTransport(),
      });
      await publishRounds(world, topic, ['C'], [0, 1, 2]);
      await leaving.expectTexts('C:0', 'C:1', 'C:2');
      await Promise.all([leaving.close(), publishRounds(world, topic, ['C'], [3, 4])]);
      await staying.expectTexts('C:0', 'C:1', 'C:2', 'C:3', 'C:4');
      await staying.expectQuiet();
    },
  },
  {
    title: 'key-shared: it reads ahead of what it put aside up to 2,000 messages for each consumer, and no further',
    rules: ['K-14: new entries are read ahead only up to 2,000 waiting ones per consumer'],
    realTime: { only: 'campaign', reason: 'publishes 4,100 messages one by one' },
    async run(world) {
      const topic = await world.newTopic();
      const full = await world.subscribe(topic, { type: 'key-shared', consumerName: 'c1', prefetch: 1 });
      const free = await openKeyShared(world, topic, 'c2');
      // `C` belongs to c1, `A` to c2.
      const [early, late] = [{ key: 'A' }, { key: 'A', properties: { late: 'yes' } }];
      const aside = { key: 'C' };
      await world.publish(topic, ...new Array<typeof aside>(1_000).fill(aside), early);
      await free.takeOne();
      await world.publish(topic, ...new Array<typeof aside>(BEYOND_LOOK_AHEAD - 1_000).fill(aside), late);
      await free.expectQuiet(1_000);
      expectEqual(textsOf(await full.take(1_000)).length, 1_000, 'messages of the full consumer');
      const passed = await free.takeOne();
      expectTrue(passed.properties['late'] === 'yes', 'what was read no further came when there was room');
    },
  },
  {
    title:
      'key-shared: keys that moved wait while their old consumer holds them, and beyond the look-ahead all others too',
    rules: [
      'K-10: a draining hash goes to nobody but its old owner until that owner holds nothing of it',
      'K-14: what waits for a draining hash counts against the 2,000 that are read ahead per consumer',
    ],
    realTime: { only: 'campaign', reason: 'publishes 4,100 messages, six at a time' },
    async run(world) {
      const topic = await world.newTopic();
      const c1 = await openKeyShared(world, topic, 'c1');
      await publishRounds(world, topic, MOVING, [0]);
      const held = await c1.take(MOVING.length);
      const c2 = await openKeyShared(world, topic, 'c2');
      const [early, late] = [range(1, 150), range(151, Math.ceil(BEYOND_LOOK_AHEAD / MOVING.length))];

      await publishRounds(world, topic, MOVING, early);
      await publishRounds(world, topic, ['C'], [0]);
      await c1.expectTexts('C:0');
      await publishRounds(world, topic, MOVING, late);
      await publishRounds(world, topic, ['C'], [1]);
      await c1.expectQuiet(1_000);
      await c2.expectQuiet();

      await c1.acknowledge(...held);
      const moved = textsOf(await c2.take(MOVING.length * (early.length + late.length)));
      for (const key of MOVING) {
        const own = moved.filter((text) => text.startsWith(`${key}:`));
        expectEqual(
          own,
          [...early, ...late].map((round) => `${key}:${round}`),
          `what came of ${key}`,
        );
      }
      await c1.expectTexts('C:1');
    },
  },
];

/** Whole numbers, both ends included. */
function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
