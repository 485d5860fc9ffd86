// The real clock: the only file of src that reads time or sets timers.
import { performance } from 'node:perf_hooks';
import type { Clock, Timer } from '../ports/clock.js';

/** Node's timers take a signed 32-bit delay; a longer one would fire at once. */
const MAX_NODE_DELAY_MS = 2 ** 31 - 1;

/**
 * `now()` is the wall time at which the process started plus what has passed since: a wall clock that is set while the
 * process runs moves neither due times nor timers.
 */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  setTimer: (delayMs, run) => new SystemTimer(delayMs, run),
  nextTurn: (run) => void setImmediate(run),
};

class SystemTimer implements Timer {
  readonly #dueMs: number;
  readonly #run: () => void;
  #handle: NodeJS.Timeout;

  constructor(delayMs: number, run: () => void) {
    this.#dueMs = performance.now() + delayMs;
    this.#run = run;
    this.#handle = this.#arm(delayMs);
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #arm(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#fired(), Math.min(Math.ceil(delayMs), MAX_NODE_DELAY_MS));
  }

  /** Node may fire up to a millisecond early, and long delays come in pieces: never run before the due time. */
  #fired(): void {
    const remainingMs = this.#dueMs - performance.now();
    if (remainingMs > 0) this.#handle = this.#arm(remainingMs);
    else this.#run();
  }
}
