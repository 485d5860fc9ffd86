// The clock of one process among several of a test: its timers end with it.
import type { Clock, Timer } from '../ports/clock.js';

export class MortalClock implements Clock {
  readonly #clock: Clock;
  #ended = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get ended(): boolean {
    return this.#ended;
  }

  end(): void {
    this.#ended = true;
  }

  now(): number {
    return this.#clock.now();
  }

  elapsedMs(): number {
    return this.#clock.elapsedMs();
  }

  setTimer(delayMs: number, run: () => void): Timer {
    return this.#clock.setTimer(delayMs, () => this.#run(run));
  }

  nextTurn(run: () => void): void {
    this.#clock.nextTurn(() => this.#run(run));
  }

  #run(run: () => void): void {
    if (!this.#ended) run();
  }
}
