// Slots of ranges used here (K-04): A has 63438, B 27274, C 65163, key1 293.
import { describe, expect, it } from 'vitest';
import type { SlotRange } from '../../../src/broker/key-selector.js';
import { rangeSlotOf } from '../../../src/broker/slots.js';
import { SplitRanges } from '../../../src/broker/split-ranges.js';
import { murmur3 } from '../../../src/core/key-hash.js';
import { TestBroker } from './broker-kit.js';

const LOWER: readonly SlotRange[] = [{ start: 0, end: 40_000 }];

describe('K-03, K-04: slots of selectors by range', () => {
  it.each([
    ['A', 63438],
    ['B', 27274],
    ['C', 65163],
    ['k1', 24618],
    ['k2', 32712],
    ['key1', 293],
    ['key2', 14772],
    ['key-358', 25429],
    ['key-522', 25429],
    ['key-30884', 1],
  ])('%s has %d', (key, slot) => {
    expect(rangeSlotOf(murmur3(key))).toBe(slot);
  });
});

describe('K-06: the split of the largest range', () => {
  const owners = (ranges: SplitRanges<string>): (string | undefined)[] =>
    [1, 16_384, 16_385, 32_768, 32_769, 65_535].map((slot) => ranges.select(slot));

  it('gives a new consumer the lower half of it', () => {
    const ranges = new SplitRanges<string>();
    expect(ranges.select(1)).toBeUndefined();
    ranges.add('a');
    ranges.add('b');
    expect(owners(ranges)).toEqual(['b', 'b', 'b', 'b', 'a', 'a']);
    ranges.add('c');
    expect(owners(ranges)).toEqual(['c', 'c', 'b', 'b', 'a', 'a']);
  });

  it('gives the range of one that leaves to the one above, and the last one to the one below', () => {
    const ranges = new SplitRanges<string>();
    for (const owner of ['a', 'b', 'c']) ranges.add(owner);
    ranges.remove('c');
    expect(owners(ranges)).toEqual(['b', 'b', 'b', 'b', 'a', 'a']);
    ranges.remove('a');
    expect(owners(ranges)).toEqual(['b', 'b', 'b', 'b', 'b', 'b']);
    ranges.remove('b');
    expect(ranges.select(1)).toBeUndefined();
  });

  it('is what a broker with `keySharedConsistentHashing: false` goes by', async () => {
    const test = new TestBroker({ keySharedConsistentHashing: false });
    const [upper, lower] = [await test.connect('key-shared', 'x'), await test.connect('key-shared', 'y')];
    await test.publish('1@A', '2@B', '3@key1', '4@C');
    expect([upper.take(), lower.take()]).toEqual(['1@A 4@C', '2@B 3@key1']);
  });
});

describe('G-09: sticky ranges', () => {
  it('give each consumer the keys of its slots, and the others wait for one that takes them', async () => {
    const test = new TestBroker();
    const lower = await test.connect('key-shared', 'x', { stickyRanges: LOWER });
    await test.publish('1@B', '2@A', '3@key1', '4@A');
    expect([lower.take(), test.stats()]).toMatchObject(['1@B 3@key1', { backlog: 4, replay: 2 }]);
    const upper = await test.connect('key-shared', 'y', { stickyRanges: [{ start: 40_001, end: 65_535 }] });
    expect([lower.take(), upper.take()]).toEqual(['', '2@A 4@A']);
  });

  it('may be several for one consumer', async () => {
    const test = new TestBroker();
    const stickyRanges = [
      { start: 60_000, end: 64_000 },
      { start: 293, end: 293 },
    ];
    const client = await test.connect('key-shared', 'x', { stickyRanges });
    await test.publish('1@A', '2@B', '3@key1', '4@C');
    expect(client.take()).toBe('1@A 3@key1');
  });

  it('wait again for a consumer once theirs has left, in order', async () => {
    const test = new TestBroker();
    const lower = await test.connect('key-shared', 'x', { stickyRanges: LOWER });
    await test.connect('key-shared', 'y', { stickyRanges: [{ start: 40_001, end: 65_535 }] });
    await test.publish('1@B', '2@B');
    await lower.close();
    await test.publish('3@B');
    const next = await test.connect('key-shared', 'z', { stickyRanges: LOWER });
    expect(next.take()).toBe('1@B 2@B 3@B');
  });

  it('are refused where another consumer has a part of them, and nothing changes', async () => {
    const test = new TestBroker();
    const first = await test.connect('key-shared', 'x', { stickyRanges: LOWER });
    const overlapping = test.connect('key-shared', 'y', { stickyRanges: [{ start: 40_000, end: 65_535 }] });
    await expect(overlapping).rejects.toMatchObject({
      code: 'NOT_ALLOWED',
      message: 'Range conflict with consumer: [40000, 65535] of consumer "y" overlaps with [0, 40000] of "x"',
    });
    await test.publish('1@B', '2@A');
    expect([first.take(), test.stats().consumers.length]).toEqual(['1@B', 1]);
  });

  it.each([
    [null, '"stickyRanges" must be a list of at least one { start, end }, got null'],
    [[], '"stickyRanges" must be a list of at least one { start, end }'],
    [
      [{ start: 5, end: 4 }],
      '"stickyRanges" must lie within 0 to 65535 with start up to end, got { start: 5, end: 4 }',
    ],
    [[{ start: 0, end: 65_536 }], '"stickyRanges" must lie within 0 to 65535'],
    [[null], '"stickyRanges" must lie within 0 to 65535'],
    [
      [
        { start: 5, end: 9 },
        { start: 0, end: 5 },
      ],
      '"stickyRanges" must not overlap, got [5, 9] beside one that reaches into it',
    ],
  ])('%j are refused', async (ranges, problem) => {
    const test = new TestBroker();
    const asked = test.connect('key-shared', 'x', { stickyRanges: ranges as never });
    await expect(asked).rejects.toThrow(problem);
    expect(test.broker.topics()).toEqual([]);
  });

  it('and `allowOutOfOrder` belong to Key_Shared', async () => {
    const asked = new TestBroker().connect('shared', 'x', { stickyRanges: LOWER, allowOutOfOrder: true });
    await expect(asked).rejects.toThrow('"stickyRanges" and "allowOutOfOrder" are for key-shared only');
  });
});

describe('K-07: a second consumer', () => {
  it('must ask for the same mode', async () => {
    const test = new TestBroker();
    await test.connect('key-shared', 'x');
    await expect(test.connect('key-shared', 'y', { stickyRanges: LOWER })).rejects.toMatchObject({
      code: 'CONSUMER_BUSY',
      message:
        "Subscription is of different type. Active subscription key_shared mode of 'AUTO_SPLIT' is different than the connecting consumer's key_shared mode 'STICKY'.",
    });
  });

  it('must ask for the same order', async () => {
    const test = new TestBroker();
    await test.connect('key-shared', 'x', { allowOutOfOrder: true });
    await expect(test.connect('key-shared', 'y')).rejects.toThrow(
      'Active subscription allows out of order delivery while the connecting consumer does not allow it.',
    );
  });

  it('S-05: may ask for another mode once nobody is connected', async () => {
    const test = new TestBroker();
    const first = await test.connect('key-shared', 'x', { allowOutOfOrder: true });
    await test.publish('1@B', '2@A');
    await first.close();
    const second = await test.connect('key-shared', 'y', { stickyRanges: LOWER });
    expect([first.take(), second.take()]).toEqual(['1@B 2@A', '1@B']);
  });
});

describe('K-15: where order is not asked for', () => {
  it('a key that moves is not drained first', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2', { allowOutOfOrder: true });
    await test.publish('1@A');
    // By K-05 the key A moves to c3.
    const c3 = await test.connect('key-shared', 'c3', { allowOutOfOrder: true });
    await test.publish('2@A');
    expect([c2.take(), c3.take(), test.stats().drainingHashes]).toEqual(['1@A', '2@A', 0]);
  });
});
