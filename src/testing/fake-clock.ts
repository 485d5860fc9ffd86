// A clock that stands still until a test moves it. Timers run in the order of their due times, and between two of
// them all promises that can settle do, so a test sees what production would see at each moment.
import { OptionChecker, minutes } from '../core/options.js';
import type { Clock, Timer } from '../ports/clock.js';
import { systemClock } from '../system/system-clock.js';

interface FakeTimer {
  readonly dueMs: number;
  readonly run: () => void;
}

export interface AdvanceUntilOptions {
  /** Milliseconds of virtual time that pass per millisecond that the real event loop is given. @default 100 */
  readonly stepMs?: number | undefined;
  /** Milliseconds of virtual time after which the condition is given up. @default 60 minutes */
  readonly maxMs?: number | undefined;
}

/**
 * Everything that handlers, plugins and stores await must be in memory: `advanceBy` cannot wait for real I/O (files, sockets,
 * databases, timers of Node), so time runs past it and ends in CALL_TIMED_OUT. Stores in memory are `memoryAttemptStore` of
 * `pulsework/testing` and `memoryIdempotencyStore` of `pulsework`. Where a test needs real I/O, it moves time by `advanceUntil`.
 */
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

  elapsedMs(): number {
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

  /**
   * Moves time forward by `ms`, running what becomes due on the way. It does not wait for real I/O.
   * @param ms milliseconds, 0 or more; 0 runs what needs no time.
   * @throws ConfigurationError when time would stand on its head.
   */
  async advanceBy(ms: number): Promise<void> {
    const check = new OptionChecker('advanceBy');
    check.required({ ms }, { ms: 'a duration in milliseconds' });
    check.durationMs('ms', ms);
    check.throwIfAny();
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

  /**
   * Moves time forward until `condition` holds, for tests in which something does real I/O: before each step of `stepMs` the
   * real event loop runs for a millisecond, so what answers within 300 ms is in time for a limit of 30 s. Waits of hours
   * need a larger `stepMs`.
   * @throws Error when `maxMs` of virtual time have passed; what `condition` throws; ConfigurationError.
   */
  async advanceUntil(condition: () => boolean | Promise<boolean>, options: AdvanceUntilOptions = {}): Promise<void> {
    const check = new OptionChecker('advanceUntil');
    check.required({ condition }, { condition: 'a function' });
    check.function('condition', condition);
    if (check.object('options', options)) {
      check.unknownOptions(options, ['stepMs', 'maxMs']);
      check.durationMs('stepMs', options['stepMs'], { minMs: 1 });
      check.durationMs('maxMs', options['maxMs']);
    }
    check.throwIfAny();
    const { stepMs = 100, maxMs = minutes(60) } = options;
    const endMs = this.#nowMs + maxMs;
    await this.advanceBy(0);
    while (!(await condition())) {
      if (this.#nowMs >= endMs) throw new Error(`the condition did not hold within ${maxMs} ms of virtual time`);
      await realMillisecond();
      await this.advanceBy(Math.min(stepMs, endMs - this.#nowMs));
    }
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

/** Lets I/O that is under way go on. */
function realMillisecond(): Promise<void> {
  return new Promise((resolve) => {
    systemClock.setTimer(1, resolve);
  });
}

/** Lets every promise that can settle without time or input do so. */
export function settlePromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
