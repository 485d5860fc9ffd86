// Lets several callers wait for the next time that something happens, but not for ever.
import type { Clock } from '../../ports/clock.js';

export class NextOccurrence {
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when it happens, or after `limitMs`. */
  wait(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(limitMs, resolve);
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  happened(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
