// How many may start now where so many may per second: tokens that come with time, up to a limit. Who calls it owns the
// time, and the waiting.

/** Fractions of tokens are kept; a sum of them may miss the whole by this much. */
const ROUNDING = 1e-9;

export interface TokenRate {
  readonly perSecond: number;
  /** Tokens after a quiet time, at most; 1 or more. */
  readonly burst: number;
}

export class TokenBucket {
  readonly #rate: TokenRate;
  #tokens: number;
  #filledMs: number;

  /** It begins full. */
  constructor(rate: TokenRate, nowMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#filledMs = nowMs;
  }

  /** Whole tokens there are. */
  available(nowMs: number): number {
    this.#fill(nowMs);
    return Math.floor(this.#tokens + ROUNDING);
  }

  isFull(nowMs: number): boolean {
    this.#fill(nowMs);
    return this.#tokens >= this.#rate.burst - ROUNDING;
  }

  /** Without one it is owed nothing: the bucket is empty then. */
  take(nowMs: number): void {
    this.#fill(nowMs);
    this.#tokens = Math.max(0, this.#tokens - 1);
  }

  /** Milliseconds until there is one, at least 1. */
  untilNextMs(nowMs: number): number {
    this.#fill(nowMs);
    return Math.max(1, Math.ceil(((1 - this.#tokens) / this.#rate.perSecond) * 1_000 - ROUNDING));
  }

  #fill(nowMs: number): void {
    const came = ((nowMs - this.#filledMs) / 1_000) * this.#rate.perSecond;
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + came);
    this.#filledMs = nowMs;
  }
}
