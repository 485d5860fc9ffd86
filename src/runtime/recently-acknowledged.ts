// Entries acknowledged a moment ago: a copy that was on its way when the acknowledgement was made must not run the
// handler again. Two generations, so that forgetting costs nothing per entry and memory has a bound.
import { EntryMap } from '../core/entry-map.js';
import type { EntryPosition } from '../core/message-id.js';

/** Under more load than this per window, the oldest are forgotten early: a late copy then runs again. */
const MAX_PER_GENERATION = 50_000;

export class RecentlyAcknowledged {
  readonly #windowMs: number;
  /** The value is when, epoch milliseconds. */
  #current = new EntryMap<number>();
  #previous = new EntryMap<number>();
  #currentSinceMs = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  add(entry: EntryPosition, nowMs: number): void {
    if (this.#windowMs === 0) return;
    if (Math.abs(nowMs - this.#currentSinceMs) > this.#windowMs || this.#current.size >= MAX_PER_GENERATION) {
      this.#previous = this.#current;
      this.#current = new EntryMap<number>();
      this.#currentSinceMs = nowMs;
    }
    this.#current.set(entry, nowMs);
  }

  has(entry: EntryPosition, nowMs: number): boolean {
    const acknowledgedMs = this.#current.get(entry) ?? this.#previous.get(entry);
    // A clock that was set back must not stretch the window.
    return acknowledgedMs !== undefined && Math.abs(nowMs - acknowledgedMs) <= this.#windowMs;
  }

  clear(): void {
    this.#current.clear();
    this.#previous.clear();
  }
}
