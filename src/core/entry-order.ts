// Entries of one topic or partition: the same, and which comes first.
import type { EntryPosition } from './message-id.js';

export function samePosition(a: EntryPosition, b: EntryPosition): boolean {
  return a.ledgerId === b.ledgerId && a.entryId === b.entryId;
}

/** Negative when `a` comes first. */
export function comparePositions(a: EntryPosition, b: EntryPosition): number {
  return a.ledgerId - b.ledgerId || a.entryId - b.entryId;
}
