// Entries parked until their delivery time (Y-05), and the one timer that wakes them. A heap by due time; the timer is
// moved earlier when an earlier due time comes (G-08), and never releases an entry early, whatever the timer does.
import type { Clock, Timer } from '../ports/clock.js';

interface Parked {
  readonly dueMs: number;
  readonly position: number;
}

export class DelayedPositions {
  readonly #clock: Clock;
  readonly #released: (positions: readonly number[]) => void;
  readonly #heap: Parked[] = [];
  #timer: Timer | undefined;
  #timerDueMs = Infinity;

  constructor(clock: Clock, released: (positions: readonly number[]) => void) {
    this.#clock = clock;
    this.#released = released;
  }

  get size(): number {
    return this.#heap.length;
  }

  add(position: number, dueMs: number): void {
    this.#heap.push({ dueMs, position });
    this.#siftUp(this.#heap.length - 1);
    this.#arm();
  }

  clear(): void {
    this.#heap.length = 0;
    this.#cancelTimer();
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs >= this.#timerDueMs) return;
    this.#cancelTimer();
    this.#timerDueMs = first.dueMs;
    this.#timer = this.#clock.setTimer(first.dueMs - this.#clock.now(), () => this.#fired());
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
    for (let first = this.#heap[0]; first !== undefined && first.dueMs <= now; first = this.#heap[0]) {
      due.push(first.position);
      this.#removeFirst();
    }
    this.#arm();
    if (due.length > 0) this.#released(due);
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#siftDown(0);
  }

  #siftUp(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!this.#swapIfLater(parent, at)) return;
      at = parent;
    }
  }

  #siftDown(from: number): void {
    let at = from;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      const child = right < this.#heap.length && this.#dueAt(right) < this.#dueAt(left) ? right : left;
      if (child >= this.#heap.length || !this.#swapIfLater(at, child)) return;
      at = child;
    }
  }

  #dueAt(index: number): number {
    return this.#heap[index]?.dueMs ?? Infinity;
  }

  /** Swaps when the entry at `above` is due later than the one at `below`. */
  #swapIfLater(above: number, below: number): boolean {
    const [high, low] = [this.#heap[above], this.#heap[below]];
    if (high === undefined || low === undefined || high.dueMs <= low.dueMs) return false;
    this.#heap[above] = low;
    this.#heap[below] = high;
    return true;
  }
}
