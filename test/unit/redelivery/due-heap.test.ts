import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DueHeap } from '../../../src/redelivery/due-heap.js';

it('gives slots in the order of their due times, whatever was moved and removed between', () => {
  const changes = fc.array(
    fc.record({ slot: fc.nat(20), dueMs: fc.integer({ min: -50, max: 50 }), remove: fc.boolean() }),
    { maxLength: 100 },
  );
  fc.assert(
    fc.property(changes, (program) => {
      const heap = new DueHeap();
      const model = new Map<number, number>();
      heap.reserve(5);
      heap.reserve(21);
      for (const { slot, dueMs, remove } of program) {
        if (!heap.has(slot)) heap.add(slot, dueMs);
        else if (remove) heap.remove(slot);
        else heap.moveEarlier(slot, dueMs);
        const known = model.get(slot);
        if (known === undefined) model.set(slot, dueMs);
        else if (remove) model.delete(slot);
        else model.set(slot, Math.min(known, dueMs));
      }
      expect(drained(heap)).toEqual([...model.values()].sort((a, b) => a - b));
    }),
    { numRuns: 300, seed: 7 },
  );
});

it('stays in order when the last slot takes the place of a removed one that stood below a later one', () => {
  const heap = new DueHeap();
  heap.reserve(7);
  [0, 10, 1, 20, 21, 2, 3].forEach((dueMs, slot) => heap.add(slot, dueMs));
  heap.remove(3);
  expect(drained(heap)).toEqual([0, 1, 2, 3, 10, 21]);
});

it('has no first slot while it is empty', () => {
  const heap = new DueHeap();
  expect([heap.first, heap.firstDueMs, heap.has(0), heap.size]).toEqual([undefined, undefined, false, 0]);
});

function drained(heap: DueHeap): number[] {
  const dueTimes: number[] = [];
  for (let slot = heap.first; slot !== undefined; slot = heap.first) {
    dueTimes.push(heap.dueMs(slot));
    heap.remove(slot);
  }
  return dueTimes;
}
