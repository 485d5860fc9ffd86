import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AckSet } from '../../../src/broker/ack-set.js';
import { Cursor } from '../../../src/broker/cursor.js';
import { DelayedPositions } from '../../../src/broker/delayed-positions.js';
import { KeyReplay } from '../../../src/broker/key-replay.js';
import { MinHeap } from '../../../src/broker/min-heap.js';
import { PositionSet } from '../../../src/broker/position-set.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';

describe('a set of positions', () => {
  it('behaves like a sorted list without duplicates', () => {
    const kinds = ['add', 'add', 'add', 'addRun', 'delete', 'shift', 'removeRange'] as const;
    const step = fc.record({ kind: fc.constantFrom(...kinds), at: fc.nat(3_000), length: fc.nat(150) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 1_000, size: 'max' }), fc.nat(3), (steps, base) => {
        // The offset needs one more level of words.
        const offset = base * 1_000_000;
        const set = new PositionSet();
        const model = new Set<number>();
        for (const { kind, at, length } of steps) {
          const from = offset + at;
          if (kind === 'add') expect(set.add(from)).toBe(!model.has(from));
          if (kind === 'add') model.add(from);
          if (kind === 'addRun') for (let i = from; i < from + length; i++) void (set.add(i), model.add(i));
          if (kind === 'delete') expect(set.delete(from)).toBe(model.delete(from));
          if (kind === 'shift') {
            const first = model.size === 0 ? undefined : Math.min(...model);
            expect(set.shift()).toBe(first);
            if (first !== undefined) model.delete(first);
          }
          if (kind === 'removeRange') {
            set.removeRange(from, from + length);
            for (let i = from; i <= from + length; i++) model.delete(i);
          }
          expect([set.has(from), set.size]).toEqual([model.has(from), model.size]);
        }
        const sorted = [...model].sort((a, b) => a - b);
        expect([...set]).toEqual(sorted);
        for (let from = offset; from < offset + 3_200; from += 37) {
          expect(set.next(from)).toBe(sorted.find((position) => position >= from));
          let missing = from;
          while (model.has(missing)) missing += 1;
          expect(set.nextMissing(from)).toBe(missing);
        }
      }),
      { numRuns: 15, seed: 11 },
    );
  });

  it('passes over a million positions that are all there', () => {
    const set = new PositionSet();
    for (let position = 5; position < 1_000_000; position++) set.add(position);
    expect([set.nextMissing(0), set.nextMissing(5), set.nextMissing(700_000)]).toEqual([0, 1_000_000, 1_000_000]);
  });

  it('takes numbers beyond 32 bits', () => {
    const set = new PositionSet();
    for (const position of [2 ** 40, 2 ** 40 + 1, 2 ** 33]) set.add(position);
    expect([set.first, set.next(2 ** 33 + 1), set.nextMissing(2 ** 40)]).toEqual([2 ** 33, 2 ** 40, 2 ** 40 + 2]);
  });
});

describe('a heap', () => {
  it('gives the values in the order of their keys', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(500), { maxLength: 300 }), (keys) => {
        const heap = new MinHeap();
        for (const key of keys) heap.push(key, -key);
        const taken: number[] = [];
        while (heap.size > 0) {
          taken.push(heap.firstKey!, heap.firstValue!);
          heap.removeFirst();
        }
        expect(taken).toEqual(keys.toSorted((a, b) => a - b).flatMap((key) => [key, -key]));
      }),
      { numRuns: 50, seed: 13 },
    );
  });
});

describe('what waits on Key_Shared', () => {
  it('is what a plain list would give, whoever may take the slots, and up to where', () => {
    const kinds = [
      'add',
      'add',
      'add',
      'next',
      'nextRetrying',
      'delete',
      'assign',
      'reassign',
      'deleteRange',
      'allow',
    ] as const;
    const step = fc.record({ kind: fc.constantFrom(...kinds), at: fc.nat(60), pick: fc.nat(2) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const lasts: (number | undefined)[] = [];
        const replay = new KeyReplay<string>((slot) => lasts[slot]);
        const waiting = new Set<number>();
        const takers: (string | undefined)[] = ['a', 'b', 'a', undefined, 'b'];
        const takerOf = (slot: number): string | undefined => takers[slot];
        const slotOf = (position: number): number => position % takers.length;
        for (const { kind, at, pick } of steps) {
          const slot = slotOf(at);
          if (kind === 'add' && !waiting.has(at)) {
            replay.add(at, slot, takerOf(slot));
            waiting.add(at);
          }
          if (kind === 'delete') {
            replay.delete(at);
            waiting.delete(at);
          }
          if (kind === 'deleteRange') {
            replay.deleteRange(at, at + pick);
            for (let i = at; i <= at + pick; i++) waiting.delete(i);
          }
          if (kind === 'assign' || kind === 'reassign') {
            takers[slot] = [undefined, 'a', 'b'][pick];
            if (kind === 'assign') replay.assign(slot, takerOf(slot));
            else replay.reassign(takerOf);
          }
          if (kind === 'allow') {
            lasts[slot] = [undefined, at, at + 20][pick];
            replay.allowedChanged(slot);
          }
          if (kind === 'next' || kind === 'nextRetrying') {
            const taker = pick === 0 ? 'a' : 'b';
            const retryingOnly = kind === 'nextRetrying';
            const lastOf = (position: number): number => lasts[slotOf(position)] ?? (retryingOnly ? -1 : Infinity);
            const own = [...waiting].filter((position) => takerOf(slotOf(position)) === taker);
            const first = own.toSorted((a, b) => a - b).find((position) => position <= lastOf(position));
            expect(replay.next(taker, retryingOnly)).toBe(first);
            if (first !== undefined) waiting.delete(first);
          }
          expect(replay.size).toBe(waiting.size);
        }
      }),
      { numRuns: 200, seed: 14 },
    );
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
