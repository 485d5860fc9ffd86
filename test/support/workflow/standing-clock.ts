// The clock of a process that may stand still: nothing of it runs meanwhile, and it does not know afterwards that time has passed.
import type { Clock, Timer } from 'pulsework';

export class StandingClock implements Clock {
  readonly #clock: Clock;
  #standsSinceMs: number | undefined;
  #behindMs = 0;
  /** What became due meanwhile. */
  readonly #missed: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  stand(): void {
    this.#standsSinceMs ??= this.#clock.now();
  }

  goOn(): void {
    if (this.#standsSinceMs === undefined) return;
    this.#behindMs += this.#clock.now() - this.#standsSinceMs;
    this.#standsSinceMs = undefined;
    for (const run of this.#missed.splice(0)) run();
  }

  now(): number {
    return (this.#standsSinceMs ?? this.#clock.now()) - this.#behindMs;
  }

  elapsedMs(): number {
    return this.now();
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const state = { isCancelled: false };
    const due = (): void => {
      if (state.isCancelled) return;
      if (this.#standsSinceMs === undefined) run();
      else this.#missed.push(due);
    };
    const timer = this.#clock.setTimer(delayMs, due);
    return {
      cancel: () => {
        state.isCancelled = true;
        timer.cancel();
      },
    };
  }

  nextTurn(run: () => void): void {
    this.setTimer(0, run);
  }
}
