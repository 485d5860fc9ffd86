// The clock of one process: its timers end with it, and come late while it is frozen, as when a machine stops it for a while.
import type { Clock, Timer } from '../../../src/ports/clock.js';

export class ProcessClock implements Clock {
  readonly #clock: Clock;
  #isOver = false;
  #frozenUntilMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  end(): void {
    this.#isOver = true;
  }

  freeze(untilMs: number): void {
    this.#frozenUntilMs = untilMs;
  }

  now(): number {
    return this.#clock.now();
  }

  elapsedMs(): number {
    return this.#clock.elapsedMs();
  }

  setTimer(delayMs: number, run: () => void): Timer {
    let timer = this.#clock.setTimer(delayMs, () => {
      const leftMs = this.#frozenUntilMs - this.now();
      if (leftMs > 0) timer = this.#clock.setTimer(leftMs, () => this.#run(run));
      else this.#run(run);
    });
    return { cancel: () => timer.cancel() };
  }

  nextTurn(run: () => void): void {
    this.#clock.nextTurn(() => this.#run(run));
  }

  #run(run: () => void): void {
    if (!this.#isOver) run();
  }
}
