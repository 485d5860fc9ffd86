// What must hold of two workers that a network has parted, on every store.
import { expect } from 'vitest';
import type { WorkflowStore } from 'pulsework/workflow';
import type { ComesBack, Partition } from './partition.js';
import { partWorkers } from './partition.js';

/** Whether writes of the worker that was parted come to the store afterwards. */
const COMES_LATE: Readonly<Record<Partition, boolean>> = { fails: false, held: true, stands: true };

export const PARTITIONS: readonly (readonly [partition: Partition, comesBack: ComesBack])[] = (
  ['fails', 'held', 'stands'] as const
).flatMap((partition) => [
  [partition, 'while the other runs'],
  [partition, 'before the other writes'],
]);

/** @param newStore called for each worker: of one place, by connections of their own */
export async function expectNoOlderWrites(
  partition: Partition,
  comesBack: ComesBack,
  newStore: () => WorkflowStore,
): Promise<void> {
  const { record, journal, writes, effects } = await partWorkers(partition, comesBack, newStore);

  expect(record).toMatchObject({ status: 'completed', result: 'two' });
  expect(journal.flatMap((entry) => (entry.kind === 'completed' ? [[entry.at, entry.value]] : []))).toEqual([
    [0, 'two'],
    [1, undefined],
  ]);
  // Both have run it, and only what is recorded was gone on with.
  expect(effects.filter((effect) => effect.startsWith('after'))).toEqual(['after two by two']);
  expect(effects).toContain('one ends');
  expect(writes.filter(({ epoch, newestEpoch, isAccepted }) => isAccepted && epoch !== newestEpoch)).toEqual([]);
  const late = writes.filter(({ worker, epoch, newestEpoch }) => worker === 'one' && epoch < newestEpoch);
  expect(late.length > 0).toBe(COMES_LATE[partition]);
  expect(late.every(({ isAccepted }) => !isAccepted)).toBe(true);
}
