// Time limits that all have the same length: the first added is the first to expire, so one timer and a linked list
// serve any number of them. A limit that is removed in time costs no timer of its own.
import type { Clock, Timer } from '../ports/clock.js';

export interface Deadline {
  /** The limit is no longer needed. May be called at any time, any number of times. */
  remove(): void;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #durationMs: number;
  /** Insertion order is expiry order. */
  readonly #pending = new Set<PendingDeadline>();
  #timer: Timer | undefined;

  /** @param durationMs how long each limit is, milliseconds. */
  constructor(clock: Clock, durationMs: number) {
    this.#clock = clock;
    this.#durationMs = durationMs;
  }

  /** Calls `onExpired` once, `durationMs` from now, unless it is removed before. */
  add(onExpired: () => void): Deadline {
    const deadline = new PendingDeadline(this.#pending, this.#clock.elapsedMs() + this.#durationMs, onExpired);
    this.#pending.add(deadline);
    if (this.#timer === undefined) this.#wakeAfter(this.#durationMs);
    return deadline;
  }

  /** All limits expire now. */
  expireAll(): void {
    const pending = [...this.#pending];
    this.clear();
    for (const deadline of pending) deadline.onExpired();
  }

  /** Forgets all limits; none of them expires any more. */
  clear(): void {
    this.#pending.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #wakeAfter(delayMs: number): void {
    this.#timer = this.#clock.setTimer(delayMs, () => this.#wake());
  }

  #wake(): void {
    this.#timer = undefined;
    const now = this.#clock.elapsedMs();
    const expired: PendingDeadline[] = [];
    for (const deadline of this.#pending) {
      if (deadline.dueMs > now) {
        this.#wakeAfter(deadline.dueMs - now);
        break;
      }
      deadline.remove();
      expired.push(deadline);
    }
    for (const deadline of expired) deadline.onExpired();
  }
}

class PendingDeadline implements Deadline {
  readonly dueMs: number;
  readonly onExpired: () => void;
  readonly #pending: Set<PendingDeadline>;

  constructor(pending: Set<PendingDeadline>, dueMs: number, onExpired: () => void) {
    this.#pending = pending;
    this.dueMs = dueMs;
    this.onExpired = onExpired;
  }

  remove(): void {
    this.#pending.delete(this);
  }
}
