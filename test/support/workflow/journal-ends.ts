// What a journal says of how things ended, for checks of what was left behind. Pure.
import type { CommandKind, JournalEntry } from '../../../src/workflow.js';

/** Commands with a last end. A step that waits for its next attempt when a cancellation comes is not tried again: that failure was its last. */
export function finalEnds(journal: readonly JournalEntry[]): ReadonlySet<number> {
  const over = new Set<number>();
  const waiting = new Set<number>();
  for (const entry of journal) {
    if (entry.kind === 'completed' || entry.kind === 'failed') over.add(entry.at);
    if (entry.kind === 'attempt') waiting.delete(entry.at);
    if (entry.kind === 'attempt-failed') waiting.add(entry.at);
    if (entry.kind === 'cancelled') for (const at of waiting) over.add(at);
  }
  return over;
}

/** Commands of that kind that completed, in the order in which they did. */
export function completedOf(
  journal: readonly JournalEntry[],
  kind: CommandKind,
): readonly { readonly at: number; readonly name: string }[] {
  const names = new Map(
    journal.flatMap((entry) => (entry.kind === 'command' && entry.command === kind ? [[entry.at, entry.name]] : [])),
  );
  return journal.flatMap((entry) => {
    const name = entry.kind === 'completed' ? names.get(entry.at) : undefined;
    return entry.kind === 'completed' && name !== undefined ? [{ at: entry.at, name }] : [];
  });
}

/** A result whose lists may be in any order, as one to compare. */
export function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder).toSorted();
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, inOrder(each)]));
}
