import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AckSet } from '../../../src/broker/ack-set.js';
import { AckedPositions } from '../../../src/broker/acked-positions.js';
import { Cursor } from '../../../src/broker/cursor.js';
import { DelayedPositions } from '../../../src/broker/delayed-positions.js';
import { SortedPositions } from '../../../src/broker/sorted-positions.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';

describe('a sorted set of positions', () => {
  it('behaves like a sorted list without duplicates', () => {
    const step = fc.record({ kind: fc.constantFrom('add', 'add', 'add', 'delete', 'shift'), at: fc.nat(3_000) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 2_500, size: 'max' }), (steps) => {
        const set = new SortedPositions();
        const model = new Set<number>();
        for (const { kind, at } of steps) {
          if (kind === 'add') {
            expect(set.add(at)).toBe(!model.has(at));
            model.add(at);
          }
          if (kind === 'delete') expect(set.delete(at)).toBe(model.delete(at));
          if (kind === 'shift') {
            const first = model.size === 0 ? undefined : Math.min(...model);
            expect(set.shift()).toBe(first);
            if (first !== undefined) model.delete(first);
          }
          expect(set.has(at)).toBe(model.has(at));
        }
        expect([...set]).toEqual([...model].sort((a, b) => a - b));
        expect(set.size).toBe(model.size);
      }),
      { numRuns: 15, seed: 11 },
    );
  });
});

describe('acknowledged positions', () => {
  it('skips runs over several chunks', () => {
    const acked = new AckedPositions();
    for (let position = 5; position < 4_000; position++) acked.add(position);
    expect([acked.nextMissing(0), acked.nextMissing(5), acked.nextMissing(3_000)]).toEqual([0, 4_000, 4_000]);
  });

  it('keeps what lies beyond a removed range, in a full chunk too', () => {
    const acked = new AckedPositions();
    for (let position = 0; position < 2_048; position++) acked.add(position);
    acked.removeRange(0, 1_500);
    expect([acked.size, acked.has(1_500), acked.has(1_501), acked.nextMissing(1_501)]).toEqual([
      547,
      false,
      true,
      2_048,
    ]);
  });
});

describe('A-11: the ack set of a batch', () => {
  it.each([1, 31, 32, 33, 64, 100])('of %d messages has all of them unacknowledged at first', (size) => {
    const set = new AckSet(size);
    const has = Array.from({ length: size + 40 }, (_, i) => set.has(i)).filter(Boolean).length;
    expect([set.count, has]).toEqual([size, size]);
  });

  it('counts an index once', () => {
    const set = new AckSet(40);
    expect([set.acknowledge(33), set.acknowledge(33), set.count]).toEqual([true, false, 39]);
  });
});

describe('S-25: the cursor', () => {
  it('moves mark-delete to the end of the first contiguous acknowledged range', () => {
    const cursor = new Cursor(-1);
    cursor.acknowledge(1);
    cursor.acknowledge(2);
    cursor.acknowledge(4);
    expect(cursor.markDelete).toBe(-1);
    cursor.acknowledge(0);
    expect([cursor.markDelete, cursor.ackedBeyond]).toEqual([2, 1]);
  });

  it('drops single acknowledgements below a cumulative one and joins those behind it', () => {
    const cursor = new Cursor(-1);
    for (const position of [1, 5, 6, 9]) cursor.acknowledge(position);
    cursor.acknowledgeUpTo(4);
    expect([cursor.markDelete, cursor.ackedBeyond]).toEqual([6, 1]);
  });

  it('acknowledges a batch with its last message', () => {
    const cursor = new Cursor(-1);
    const effects = [1, 0, 0, 2].map((index) => cursor.acknowledgeIndex(0, index, 3));
    expect([effects, cursor.markDelete]).toEqual([['partial', 'partial', 'again', 'whole'], 0]);
  });

  it('forgets the messages of a batch once the whole entry is acknowledged', () => {
    const cursor = new Cursor(-1);
    cursor.acknowledgeIndex(5, 0, 3);
    cursor.acknowledge(5);
    expect(cursor.unackedOf(5)).toBeUndefined();
  });

  it('agrees with a plain model under random programs', () => {
    const SIZE = 60;
    const step = fc.record({
      kind: fc.constantFrom('one', 'one', 'one', 'index', 'index', 'upTo', 'reset'),
      at: fc.nat(SIZE - 1),
      index: fc.nat(2),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), fc.nat(3), (steps, base) => {
        // The offset puts the range across a chunk border.
        const offset = base * 1_000;
        const cursor = new Cursor(offset - 1);
        let unacked = new Map<number, Set<number>>();
        const fill = (from: number): void => {
          unacked = new Map(Array.from({ length: SIZE }, (_, i) => [i, new Set(i < from ? [] : [0, 1, 2])]));
        };
        fill(0);
        for (const { kind, at, index } of steps) {
          const entry = unacked.get(at) ?? new Set();
          if (kind === 'one') {
            cursor.acknowledge(offset + at);
            entry.clear();
          } else if (kind === 'index') {
            cursor.acknowledgeIndex(offset + at, index, 3);
            entry.delete(index);
          } else if (kind === 'upTo') {
            cursor.acknowledgeUpTo(offset + at);
            for (let i = 0; i <= at; i++) unacked.get(i)?.clear();
          } else {
            cursor.reset(offset + at - 1);
            fill(at);
          }
          const open = [...unacked].filter(([, indexes]) => indexes.size > 0).map(([i]) => i);
          const first = open[0] ?? SIZE;
          expect(cursor.markDelete).toBe(offset + first - 1);
          expect(cursor.ackedBeyond).toBe(SIZE - first - open.length);
          expect(cursor.nextUnacked(offset + at) - offset).toBe(open.find((i) => i >= at) ?? SIZE);
          for (const [i, indexes] of unacked) {
            expect(cursor.isAcked(offset + i)).toBe(indexes.size === 0);
            if (indexes.size > 0) expect(cursor.unackedOf(offset + i)?.count ?? 3).toBe(indexes.size);
          }
        }
      }),
      { numRuns: 100, seed: 12 },
    );
  });
});

describe('parked positions', () => {
  it('are released in one go when due, never before', async () => {
    const clock = new FakeClock(0);
    const released: number[][] = [];
    const parked = new DelayedPositions(clock, (positions) => released.push(positions.toSorted()));
    parked.add(1, 100);
    parked.add(2, 50);
    parked.add(3, 100);
    await clock.advanceBy(99);
    expect(released).toEqual([[2]]);
    await clock.advanceBy(1);
    expect(released).toEqual([[2], [1, 3]]);
  });

  it('G-08: have one timer, moved earlier for an earlier due time', () => {
    const clock = new FakeClock(0);
    const parked = new DelayedPositions(clock, () => undefined);
    for (const dueMs of [500, 300, 400, 100]) parked.add(dueMs, dueMs);
    expect(clock.pendingTimers).toEqual([100]);
  });

  it('leave no timer behind when cleared', () => {
    const clock = new FakeClock(0);
    const parked = new DelayedPositions(clock, () => undefined);
    parked.add(1, 10);
    parked.clear();
    expect([clock.pendingTimers, parked.size]).toEqual([[], 0]);
  });
});
