// A clock that stands still until a test moves it. Timers run in the order of their due times, and between two of
// them all promises that can settle do, so a test sees what production would see at each moment.
import type { Clock, Timer } from '../ports/clock.js';

interface FakeTimer {
  readonly dueMs: number;
  readonly run: () => void;
}

export class FakeClock implements Clock {
  #nowMs: number;
  /** Sorted by due time; equal times in the order they were set. */
  readonly #timers: FakeTimer[] = [];

  /** @param startMs epoch milliseconds. @default 2026-01-01T00:00:00Z */
  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), run };
    this.#timers.splice(this.#firstAfter(timer.dueMs), 0, timer);
    return {
      cancel: () => {
        const at = this.#timers.indexOf(timer);
        if (at >= 0) this.#timers.splice(at, 1);
      },
    };
  }

  /** Runs with the timers that are due now: in the next `advanceBy`, also of 0. */
  nextTurn(run: () => void): void {
    this.setTimer(0, run);
  }

  /** Due times of the timers that are set, in milliseconds from now. */
  get pendingTimers(): readonly number[] {
    return this.#timers.map((timer) => timer.dueMs - this.#nowMs);
  }

  /** Moves time forward by `ms`, running what becomes due on the way. */
  async advanceBy(ms: number): Promise<void> {
    const targetMs = this.#nowMs + ms;
    await settlePromises();
    for (let timer = this.#timers[0]; timer !== undefined && timer.dueMs <= targetMs; timer = this.#timers[0]) {
      this.#timers.shift();
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.run();
      await settlePromises();
    }
    this.#nowMs = targetMs;
  }

  /** Moves to the next due time and runs what is due then. False when no timer is set. */
  async advanceToNextTimer(): Promise<boolean> {
    await settlePromises();
    const next = this.#timers[0];
    if (next === undefined) return false;
    await this.advanceBy(next.dueMs - this.#nowMs);
    return true;
  }

  /** Index of the first timer that is due later than `dueMs`. */
  #firstAfter(dueMs: number): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#timers[middle]?.dueMs ?? Infinity) <= dueMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Lets every promise that can settle without time or input do so. */
export function settlePromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
