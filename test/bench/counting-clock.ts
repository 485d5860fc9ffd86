// The system's clock with a count of the timers that are set on it and have neither run nor been cancelled.
import type { Clock, Timer } from '../../src/index.js';
import { systemClock } from '../../src/system/system-clock.js';

export class CountingClock implements Clock {
  readonly #pending = new Set<Timer>();

  get pendingTimers(): number {
    return this.#pending.size;
  }

  now(): number {
    return systemClock.now();
  }

  elapsedMs(): number {
    return systemClock.elapsedMs();
  }

  nextTurn(run: () => void): void {
    systemClock.nextTurn(run);
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const timer = systemClock.setTimer(delayMs, () => {
      this.#pending.delete(counted);
      run();
    });
    const counted: Timer = {
      cancel: () => {
        this.#pending.delete(counted);
        timer.cancel();
      },
    };
    this.#pending.add(counted);
    return counted;
  }
}
