// Numbers of ledgers, unique in a broker and over the brokers of one process after the other.

/** 2026-01-01T00:00:00Z, from which ledgers are numbered. */
const LEDGERS_SINCE_MS = Date.UTC(2026, 0, 1);
/** More than any process makes for as long as it lives: tests make the most, some hundred a second. */
const LEDGERS_PER_SECOND = 1_000;

/**
 * Ids must not come again with the next process: what outlives this one (an AttemptStore, somebody else's notes) would take
 * other messages for those it knows. Numbered by the clock, so that a test's ids are the same in each run.
 */
export class LedgerIds {
  #last: number;

  constructor(nowMs: number) {
    this.#last = Math.max(0, Math.floor(((nowMs - LEDGERS_SINCE_MS) / 1_000) * LEDGERS_PER_SECOND));
  }

  /** Up to this one they were given by an earlier broker, whatever the clock says. */
  begunUpTo(last: number): void {
    this.#last = Math.max(this.#last, last);
  }

  next(): number {
    this.#last += 1;
    return this.#last;
  }
}
