// Entries parked until their delivery time (Y-05), and the one timer that wakes them. A heap by due time; the timer is
// moved earlier when an earlier due time comes (G-08), and never releases an entry early, whatever the timer does.
import type { Clock, Timer } from '../ports/clock.js';
import { MinHeap } from './min-heap.js';

export class DelayedPositions {
  readonly #clock: Clock;
  readonly #released: (positions: readonly number[]) => void;
  readonly #byDueMs = new MinHeap();
  #timer: Timer | undefined;
  #timerDueMs = Infinity;

  constructor(clock: Clock, released: (positions: readonly number[]) => void) {
    this.#clock = clock;
    this.#released = released;
  }

  get size(): number {
    return this.#byDueMs.size;
  }

  add(position: number, dueMs: number): void {
    this.#byDueMs.push(dueMs, position);
    this.#arm();
  }

  clear(): void {
    this.#byDueMs.clear();
    this.#cancelTimer();
  }

  #arm(): void {
    const firstMs = this.#byDueMs.firstKey;
    if (firstMs === undefined || firstMs >= this.#timerDueMs) return;
    this.#cancelTimer();
    this.#timerDueMs = firstMs;
    this.#timer = this.#clock.setTimer(firstMs - this.#clock.now(), () => this.#fired());
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDueMs = Infinity;
  }

  #fired(): void {
    this.#cancelTimer();
    const now = this.#clock.now();
    const due: number[] = [];
    for (;;) {
      const { firstKey: dueMs = Infinity, firstValue: position } = this.#byDueMs;
      if (dueMs > now || position === undefined) break;
      due.push(position);
      this.#byDueMs.removeFirst();
    }
    this.#arm();
    if (due.length > 0) this.#released(due);
  }
}
