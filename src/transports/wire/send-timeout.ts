// The time limit from `publish` to the receipt. One timer for all entries of a producer: it runs for the oldest, whose
// time is up first.
import type { Clock, Timer } from '../../ports/clock.js';
import type { PendingEntries, PendingEntry } from './pending-entries.js';

export class SendTimeout {
  readonly #pending: PendingEntries;
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #overdue: () => void;
  #timer: Timer | undefined;

  /** @param overdue called when the oldest entry has waited for `limitMs`; it is expected to empty `pending`. */
  constructor(pending: PendingEntries, clock: Clock, limitMs: number, overdue: () => void) {
    this.#pending = pending;
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#overdue = overdue;
  }

  /** Says that there are entries. */
  watch(): void {
    const oldest = this.#pending.oldest();
    if (this.#timer !== undefined || oldest === undefined || this.#limitMs === Infinity) return;
    const delayMs = Math.max(0, this.#dueMs(oldest) - this.#clock.elapsedMs());
    this.#timer = this.#clock.setTimer(delayMs, () => this.#check());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** The entry it was set for has its receipt, most likely. */
  #check(): void {
    this.#timer = undefined;
    const oldest = this.#pending.oldest();
    if (oldest === undefined) return;
    if (this.#dueMs(oldest) > this.#clock.elapsedMs()) this.watch();
    else this.#overdue();
  }

  #dueMs({ receipts }: PendingEntry): number {
    return receipts.sinceMs + this.#limitMs;
  }
}
