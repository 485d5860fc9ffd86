// The real clock: the only file of src that reads time or sets timers.
import { performance } from 'node:perf_hooks';
import type { Clock, Timer } from '../ports/clock.js';

/** Node's timers take a signed 32-bit delay; a longer one would fire at once. */
const MAX_NODE_DELAY_MS = 2 ** 31 - 1;

/** How slowly time goes on while it is ahead of the wall clock: a second for two. */
const SLOWED = 0.5;

/**
 * The time of day that never goes back. A wall clock that is put on while the process runs is followed at once: brokers and other
 * processes go by it, and what is to come at its time would come too early. One that is put back, or on and back again, is waited
 * for: time goes on at half its pace until both are the same.
 */
export function timeOfDay(wallMs: () => number, elapsedMs: () => number): () => number {
  let toldMs = -Infinity;
  let elapsed = elapsedMs();
  return () => {
    // In this order: what passes between the two makes it no later than it is.
    const wall = wallMs();
    const passedMs = elapsedMs() - elapsed;
    elapsed += passedMs;
    toldMs = Math.max(wall, toldMs + passedMs * SLOWED);
    return Math.floor(toldMs);
  };
}

/** Timers go by the time that passes: a wall clock that is set moves none of them. */
export const systemClock: Clock = {
  now: timeOfDay(
    () => Date.now(),
    () => performance.now(),
  ),
  elapsedMs: () => performance.now(),
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
