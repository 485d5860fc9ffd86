// Time as a value that is passed in: the only source of it, so that tests own it.

export interface Clock {
  /** Epoch milliseconds: when something is, for others too. Never goes back, but may jump on as the machine's clock is set. */
  now(): number;
  /** Milliseconds since some moment, for how long something takes: no clock that is set moves it, as it moves no timer. */
  elapsedMs(): number;
  /**
   * Calls `run` once, `delayMs` milliseconds from now or later, never earlier and never inside this call. Any delay up to
   * 2^53 ms is taken. What `run` throws is the caller's fault and surfaces as an uncaught error.
   */
  setTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` after input and timers that wait now have had their turn: for work that never waits by itself. */
  nextTurn(run: () => void): void;
}

/** What a clock that is passed in must have. */
export const CLOCK_METHODS: readonly (keyof Clock)[] = ['now', 'elapsedMs', 'setTimer', 'nextTurn'];

export interface Timer {
  /** After this `run` is not called. May be called at any time, any number of times. */
  cancel(): void;
}
