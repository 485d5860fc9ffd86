// Finds dead connections: a ping each interval; when a whole interval brought no command at all, a short grace (bytes
// may lie unread after a long computation), then the connection counts as dead.
import type { Clock, Timer } from '../../ports/clock.js';

/** One turn of the event loop is enough to read what lies there; a loaded machine gets more. */
const GRACE_MS = 1_000;

export class KeepAlive {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #ping: () => void;
  readonly #dead: () => void;
  #heard = true;
  #timer: Timer;

  constructor(clock: Clock, intervalMs: number, ping: () => void, dead: () => void) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#ping = ping;
    this.#dead = dead;
    this.#timer = clock.setTimer(intervalMs, () => this.#tick());
  }

  /** Any command counts, not only an answer to the ping. */
  heard(): void {
    this.#heard = true;
  }

  stop(): void {
    this.#timer.cancel();
  }

  #tick(): void {
    if (this.#heard) this.#next();
    else this.#timer = this.#clock.setTimer(GRACE_MS, () => (this.#heard ? this.#next() : this.#dead()));
  }

  #next(): void {
    this.#heard = false;
    this.#ping();
    this.#timer = this.#clock.setTimer(this.#intervalMs, () => this.#tick());
  }
}
