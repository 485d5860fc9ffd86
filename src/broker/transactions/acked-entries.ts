// Between the places that a client acknowledges, the parts of entries that are pending, and what is kept of them: places
// count from the start of the topic's log, records name ledger and entry.
import type { MessagePlace } from '../topic-subscription.js';
import type { AckedEntry } from './pending-ack-store.js';
import type { EntryPart } from './pending-positions.js';

interface Batches {
  /** 0 when the entry is no batch. */
  batchSizeAt(position: number): number;
}

interface Ids extends Batches {
  idOf(position: number): { readonly ledgerId: number; readonly entryId: number };
}

interface Positions {
  positionOf(ledgerId: number, entryId: number): number | undefined;
}

/**
 * One part for each entry, in the order of the list. An index of an entry that is no batch means the entry, and the whole
 * entry includes its messages.
 */
export function entryParts(places: readonly MessagePlace[], batches: Batches): readonly EntryPart[] {
  const byPosition = new Map<number, Set<number> | 'whole'>();
  for (const { position, batchIndex } of places) {
    const part = byPosition.get(position);
    const isSingle = batchIndex >= 0 && batchIndex < batches.batchSizeAt(position);
    if (!isSingle) byPosition.set(position, 'whole');
    else if (part === undefined) byPosition.set(position, new Set([batchIndex]));
    else if (part !== 'whole') part.add(batchIndex);
  }
  return [...byPosition].map(([position, part]) => ({
    position,
    indexes: part === 'whole' ? undefined : [...part].sort((a, b) => a - b),
  }));
}

/** The last message of a batch ends the entry. */
export function normalPlace({ position, batchIndex }: MessagePlace, batches: Batches): MessagePlace {
  const isInside = batchIndex >= 0 && batchIndex < batches.batchSizeAt(position) - 1;
  return { position, batchIndex: isInside ? batchIndex : -1 };
}

export function ackedEntries(parts: readonly EntryPart[], ids: Ids): readonly AckedEntry[] {
  return parts.map(({ position, indexes }) => ({
    ...ids.idOf(position),
    batch: indexes === undefined ? null : { size: ids.batchSizeAt(position), indexes },
  }));
}

/** Of a cumulative acknowledgement: all messages of the batch up to its place are named. @param place see `normalPlace` */
export function ackedPlace({ position, batchIndex }: MessagePlace, ids: Ids): AckedEntry {
  const indexes = batchIndex < 0 ? undefined : Array.from({ length: batchIndex + 1 }, (_, index) => index);
  const [entry] = ackedEntries([{ position, indexes }], ids);
  if (entry === undefined) throw new RangeError('one part gives one entry');
  return entry;
}

/** Undefined when the entry is not kept any more. */
export function partOf({ ledgerId, entryId, batch }: AckedEntry, positions: Positions): EntryPart | undefined {
  const position = positions.positionOf(ledgerId, entryId);
  return position === undefined ? undefined : { position, indexes: batch?.indexes };
}

/** Undefined when the entry is not kept any more. */
export function placeOf({ ledgerId, entryId, batch }: AckedEntry, positions: Positions): MessagePlace | undefined {
  const position = positions.positionOf(ledgerId, entryId);
  return position === undefined ? undefined : { position, batchIndex: batch?.indexes.at(-1) ?? -1 };
}
