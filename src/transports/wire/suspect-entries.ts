// Entries whose checksum was wrong on arrival. The way to here may have changed them, so they are asked for again a few
// times; what is still wrong then is so in the broker's storage, and nobody will ever read it.
import type { EntryPosition } from '../../core/message-id.js';

/** The first arrival included. */
const MAX_ARRIVALS = 3;
/** The newest so many are remembered. */
const MAX_SUSPECTS = 1_000;

export class SuspectEntries {
  /** How often each arrived corrupt, by position as text; the oldest first. */
  readonly #arrivals = new Map<string, number>();

  /** It arrived corrupt. True when it is to be asked for again, false when there is no hope left. */
  arrivedCorrupt(position: EntryPosition): boolean {
    const key = textOf(position);
    const arrivals = (this.#arrivals.get(key) ?? 0) + 1;
    this.#arrivals.delete(key);
    if (arrivals >= MAX_ARRIVALS) return false;
    this.#arrivals.set(key, arrivals);
    const [oldest] = this.#arrivals.keys();
    if (this.#arrivals.size > MAX_SUSPECTS && oldest !== undefined) this.#arrivals.delete(oldest);
    return true;
  }

  /** How many redeliveries of it were asked for here: they were no failures of whoever handles it. */
  askedBack(position: EntryPosition): number {
    return this.#arrivals.size === 0 ? 0 : (this.#arrivals.get(textOf(position)) ?? 0);
  }
}

function textOf({ ledgerId, entryId, partition }: EntryPosition): string {
  return `${ledgerId}:${entryId}:${partition}`;
}
