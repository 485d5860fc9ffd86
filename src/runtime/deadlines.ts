// Time limits that all have the same length: the first added is the first to expire, so one timer and a linked list
// serve any number of them. A limit that is removed in time costs no timer of its own.
import { seconds } from '../core/options.js';
import type { Clock, Timer } from '../ports/clock.js';

export interface Deadline {
  /** The limit is no longer needed. May be called at any time, any number of times. */
  remove(): void;
}

/** A timer that comes later than this says that the machine stood still, or that the process was too busy to run anything. */
const LATE_MS = seconds(1);

export class Deadlines {
  readonly #clock: Clock;
  readonly #durationMs: number;
  /** Insertion order is expiry order. */
  readonly #pending = new Set<PendingDeadline>();
  #timer: Timer | undefined;
  /** When it should come. */
  #timerMs = 0;

  /** @param durationMs how long each limit is, milliseconds. */
  constructor(clock: Clock, durationMs: number) {
    this.#clock = clock;
    this.#durationMs = durationMs;
  }

  /** Calls `onExpired` once, `durationMs` from now, unless it is removed before. */
  add(onExpired: () => void): Deadline {
    const deadline = new PendingDeadline(this.#pending, this.#clock.now() + this.#durationMs, onExpired);
    this.#pending.add(deadline);
    if (this.#timer === undefined) this.#wakeAt(deadline.dueMs, this.#durationMs);
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

  #wakeAt(dueMs: number, delayMs: number): void {
    this.#timerMs = dueMs;
    this.#timer = this.#clock.setTimer(delayMs, () => this.#wake());
  }

  #wake(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    const lateMs = now - this.#timerMs;
    if (lateMs > LATE_MS) this.#putOff(lateMs);
    const expired: PendingDeadline[] = [];
    for (const deadline of this.#pending) {
      if (deadline.dueMs > now) {
        this.#wakeAt(deadline.dueMs, deadline.dueMs - now);
        break;
      }
      deadline.remove();
      expired.push(deadline);
    }
    for (const deadline of expired) deadline.onExpired();
  }

  /** Nobody has had the time that passed meanwhile: it counts against none that was not due before it. */
  #putOff(lateMs: number): void {
    for (const deadline of this.#pending) if (deadline.dueMs > this.#timerMs) deadline.dueMs += lateMs;
  }
}

class PendingDeadline implements Deadline {
  dueMs: number;
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
