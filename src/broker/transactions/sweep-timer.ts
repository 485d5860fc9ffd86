// When sweeps run: at their intervals while a transaction is open or an outcome is not applied everywhere. Otherwise no
// timer is set, since one would keep the process alive; what is left to collect waits for the next transaction.
import { toError } from '../../core/errors.js';
import { seconds } from '../../core/options.js';
import type { Clock, Timer } from '../../ports/clock.js';

export interface Sweep {
  readonly intervalMs: number;
  readonly run: () => Promise<void>;
}

export interface SweepTimerParts {
  readonly clock: Clock;
  readonly sweeps: readonly Sweep[];
  /** Whether there is anything that a later sweep may have to end or to repeat. */
  readonly isNeeded: () => Promise<boolean>;
  /** A sweep failed; it is tried again at its next time. */
  readonly onFailed: (error: Error) => void;
}

/** Participants need moments to apply an outcome: when the last transaction ended, so long until it is known that all did. */
const LAST_LOOK_MS = seconds(1);

interface DueSweep extends Sweep {
  dueMs: number;
}

export class SweepTimer {
  readonly #parts: SweepTimerParts;
  readonly #sweeps: readonly DueSweep[];
  #timer: Timer | undefined;
  #timerDueMs = 0;
  #isWanted = false;
  #isClosed = false;
  #running: Promise<void> | undefined;

  constructor(parts: SweepTimerParts) {
    this.#parts = parts;
    this.#sweeps = parts.sweeps.map((sweep) => ({ ...sweep, dueMs: parts.clock.now() + sweep.intervalMs }));
  }

  /** Something is open, or may be. */
  arm(): void {
    this.#isWanted = true;
    if (this.#timer !== undefined || this.#running !== undefined) return;
    this.#set(this.#nextDueMs());
  }

  /** Nothing is open as far as the caller knows: looks soon whether that is so. */
  lookSoon(): void {
    const soonMs = this.#parts.clock.now() + LAST_LOOK_MS;
    if (this.#timer === undefined || this.#timerDueMs <= soonMs) return;
    this.#timer.cancel();
    this.#set(soonMs);
  }

  /** Everything now; also what is not due. @throws what a sweep throws. */
  async runAll(): Promise<void> {
    for (const sweep of this.#sweeps) await this.#run(sweep);
    if (await this.#parts.isNeeded()) this.arm();
  }

  /** Waits for the sweep that runs; there will be no other. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #set(dueMs: number): void {
    if (this.#isClosed) return;
    const { clock } = this.#parts;
    this.#timerDueMs = dueMs;
    this.#timer = clock.setTimer(Math.max(0, dueMs - clock.now()), () => {
      this.#timer = undefined;
      this.#running = this.#runDue();
    });
  }

  async #runDue(): Promise<void> {
    this.#isWanted = false;
    try {
      for (const sweep of this.#sweeps) if (sweep.dueMs <= this.#parts.clock.now()) await this.#run(sweep);
      // Not in one expression: `arm` may be called meanwhile.
      if (await this.#parts.isNeeded()) this.#isWanted = true;
    } catch (error) {
      this.#isWanted = true;
      if (!this.#isClosed) this.#parts.onFailed(toError(error));
    }
    this.#running = undefined;
    if (this.#isWanted) this.#set(this.#nextDueMs());
  }

  /** One that failed comes again at its next time, not at once. */
  async #run(sweep: DueSweep): Promise<void> {
    sweep.dueMs = this.#parts.clock.now() + sweep.intervalMs;
    if (!this.#isClosed) await sweep.run();
  }

  /** What was due while no timer was set is made up for at the next occasion, not at once. */
  #nextDueMs(): number {
    const nowMs = this.#parts.clock.now();
    return Math.min(...this.#sweeps.map(({ dueMs, intervalMs }) => (dueMs > nowMs ? dueMs : nowMs + intervalMs)));
  }
}
