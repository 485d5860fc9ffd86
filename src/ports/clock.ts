// Time as a value that is passed in: the only source of it, so that tests own it.

export interface Clock {
  /**
   * Epoch milliseconds. Never goes back. It may be put on while a machine stands still, which no timer notices: what is measured
   * by it is then too long, never too short.
   */
  now(): number;
  /**
   * Calls `run` once, `delayMs` milliseconds from now or later, never earlier and never inside this call. Any delay up to
   * 2^53 ms is taken. What `run` throws is the caller's fault and surfaces as an uncaught error.
   */
  setTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` after input and timers that wait now have had their turn: for work that never waits by itself. */
  nextTurn(run: () => void): void;
}

export interface Timer {
  /** After this `run` is not called. May be called at any time, any number of times. */
  cancel(): void;
}
