// What an earlier broker kept becomes a topic again: entries that the broker delivers, and cursors.
import type { StoredEntry, StoredLedger, StoredSubscription } from '../ports/broker-store.js';
import type { Cursor } from './cursor.js';
import { ChunkEntry, Entry, TransactionEntry } from './entry.js';
import type { TopicLog } from './topic-log.js';

export function restoredLedgers(
  ledgers: readonly StoredLedger[],
): readonly { readonly id: number; readonly entries: (Entry | undefined)[] }[] {
  return ledgers.map(({ id, entries }) => ({ id, entries: entries.map((entry) => entry && restoredEntry(entry)) }));
}

/** Positions where storing failed: nobody waits for an entry there. */
export function gapsOf(ledgers: readonly StoredLedger[]): readonly number[] {
  const gaps: number[] = [];
  let position = 0;
  for (const { entries } of ledgers) {
    for (const entry of entries) {
      if (entry === undefined) gaps.push(position);
      position += 1;
    }
  }
  return gaps;
}

/** Acknowledges in a new cursor what was acknowledged one by one. What is not kept any more was acknowledged by everybody. */
export function restoreAcknowledged(
  cursor: Cursor,
  log: TopicLog,
  { acknowledged, parts }: Pick<StoredSubscription, 'acknowledged' | 'parts'>,
): void {
  for (const { ledgerId, entryId } of acknowledged) {
    const position = log.positionOf(ledgerId, entryId);
    if (position !== undefined) cursor.acknowledge(position);
  }
  for (const { ledgerId, entryId, indexes } of parts) {
    const position = log.positionOf(ledgerId, entryId);
    const batchSize = position === undefined ? 0 : (log.entryAt(position)?.batchSize ?? 0);
    if (position === undefined || batchSize === 0) continue;
    for (const index of indexes) if (index < batchSize) cursor.acknowledgeIndex(position, index, batchSize);
  }
}

function restoredEntry(stored: StoredEntry): Entry {
  const { messages, batchSize, chunk, transaction, producerName, sequenceId, publishTimeMs, bytes } = stored;
  const [only] = messages;
  if (only === undefined) throw new RangeError('an entry holds at least one message');
  const content = batchSize > 0 ? messages : only;
  const [facts, origin] = [
    { publishTimeMs, bytes },
    { producerName, sequenceId },
  ];
  if (transaction !== undefined) return new TransactionEntry(content, facts, { ...origin, transaction }, chunk);
  return chunk === undefined ? new Entry(content, facts, origin) : new ChunkEntry(only, facts, origin, chunk);
}
