// Requests for redelivery, handed to the official client in spaced bursts. It has one timer for all of them, and each new
// request sets it back: requests that come closer together than a third of its delay starve all that wait.
import type { Clock, Timer } from '../../ports/clock.js';
import type { OfficialMessageId } from './official-client.js';

/** The client's delay, fixed at subscribe; its floor is 100. A third of it is its tick, and it is exact when divisible by 3. */
export const NEGATIVE_ACK_DELAY_MS = 102;

/** Between two bursts. Above the tick of 34 ms, with room for timers that are late. */
export const BURST_INTERVAL_MS = 50;

export class NegativeAckQueue {
  readonly #clock: Clock;
  readonly #handOver: (entry: string, id: OfficialMessageId) => void;
  /** By entry: the client asks for whole entries. */
  #waiting = new Map<string, OfficialMessageId>();
  #burst: PromiseWithResolvers<void> | undefined;
  #timer: Timer | undefined;
  #lastBurstMs = -Infinity;
  #closed = false;

  constructor(clock: Clock, handOver: (entry: string, id: OfficialMessageId) => void) {
    this.#clock = clock;
    this.#handOver = handOver;
  }

  /** Resolves when the client has the request, or it is no longer needed. */
  add(entry: string, id: OfficialMessageId): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#waiting.set(entry, id);
    this.#burst ??= withResolvers();
    const waitMs = this.#lastBurstMs + BURST_INTERVAL_MS - this.#clock.now();
    // At least one turn: what is asked for in one turn is one burst.
    this.#timer ??= this.#clock.setTimer(Math.max(0, waitMs), () => this.#flush());
    return this.#burst.promise;
  }

  /** It was acknowledged, or a new copy has come: a request now would bounce the copy that is being handled. */
  forget(entry: string): void {
    this.#waiting.delete(entry);
  }

  /** The broker sends everything unacknowledged again: there is nothing to ask for. */
  clear(): void {
    this.#waiting.clear();
  }

  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#timer?.cancel();
    this.#burst?.resolve();
  }

  #flush(): void {
    const waiting = this.#waiting;
    const burst = this.#burst;
    this.#waiting = new Map();
    this.#burst = undefined;
    this.#timer = undefined;
    if (waiting.size > 0) this.#lastBurstMs = this.#clock.now();
    for (const [entry, id] of waiting) this.#handOver(entry, id);
    burst?.resolve();
  }
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

function withResolvers(): PromiseWithResolvers<void> {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((given) => (resolve = given));
  return { promise, resolve };
}
