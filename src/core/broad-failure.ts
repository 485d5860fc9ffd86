// Whether nearly everything fails, as a state machine without time (K-53): closed while messages are taken, open while none
// is, half-open while some are taken to try. Whoever owns it waits `delayMs` while it is open and then calls `delayOver`.
import type { DeliveryPausePolicy } from './delivery-pause.js';
import type { Settlement } from './settlement.js';

export type BroadFailureState = 'closed' | 'open' | 'half-open';

export class BroadFailure {
  readonly #policy: DeliveryPausePolicy;
  #state: BroadFailureState = 'closed';
  /** Whether each of the newest results was a failure, as a ring. */
  #results: boolean[] = [];
  /** Where the oldest result of a full ring lies. */
  #oldest = 0;
  #failures = 0;
  #delayMs = 0;
  #opened = 0;

  constructor(policy: DeliveryPausePolicy) {
    this.#policy = policy;
  }

  get state(): BroadFailureState {
    return this.#state;
  }

  /** Milliseconds of the pause that goes on, or was the last one while it is tried whether it may end; 0 when closed. */
  get delayMs(): number {
    return this.#delayMs;
  }

  /** How often it has opened. */
  get opened(): number {
    return this.#opened;
  }

  /** Results since the state began; of a closed one, at most the window. */
  get results(): number {
    return this.#results.length;
  }

  /** Results that are missing before the window is full. */
  get missing(): number {
    return this.#policy.windowSize - this.#results.length;
  }

  /** A message was acknowledged or has failed. What was taken before it opened says nothing of later. */
  add(failed: boolean): void {
    if (this.#state === 'open') return;
    this.#record(failed);
    if (this.missing > 0) return;
    if (this.#state === 'half-open') this.judge();
    else if (this.#isBroad()) this.#open(this.#policy.initialDelayMs);
  }

  /** Open becomes half-open. */
  delayOver(): void {
    if (this.#state !== 'open') return;
    this.#state = 'half-open';
  }

  /** Half-open ends by the results that there are; with none it goes on. */
  judge(): void {
    if (this.#state !== 'half-open' || this.results === 0) return;
    const { multiplier, maxDelayMs } = this.#policy;
    if (this.#isBroad()) return this.#open(Math.min(this.#delayMs * multiplier, maxDelayMs));
    this.#state = 'closed';
    this.#delayMs = 0;
    this.#clear();
  }

  #open(delayMs: number): void {
    this.#state = 'open';
    this.#opened++;
    this.#delayMs = delayMs;
    this.#clear();
  }

  #isBroad(): boolean {
    return this.#failures / this.#results.length >= this.#policy.failureRatio;
  }

  #record(failed: boolean): void {
    if (failed) this.#failures++;
    if (this.missing > 0) {
      this.#results.push(failed);
      return;
    }
    if (this.#results[this.#oldest] === true) this.#failures--;
    this.#results[this.#oldest] = failed;
    this.#oldest = (this.#oldest + 1) % this.#policy.windowSize;
  }

  #clear(): void {
    this.#results = [];
    this.#oldest = 0;
    this.#failures = 0;
  }
}

/**
 * What a settlement says of the application: whether it failed, undefined where it says nothing, because nothing was tried
 * (too early, something is down).
 */
export function failedOf(settlement: Settlement): boolean | undefined {
  switch (settlement.kind) {
    case 'acknowledge':
      return false;
    case 'redeliver':
      return settlement.spendsAttempt ? true : undefined;
    case 'block':
    case 'dead-letter':
    case 'skip':
      return true;
    case 'leave':
      return undefined;
  }
}
