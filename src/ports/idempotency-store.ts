// The seam to a place where it is known which keys are being worked on and how those that are done ended, so that a message
// that comes twice is answered twice and worked on once.
//
// A key is free, claimed (by one owner, until its lease ends) or recorded (until its time to live ends). Owners are texts that are
// used for one claim and never again: whatever comes from an owner that has lost its claim changes nothing.
// Each call is atomic: of two claims of a free key one gets it. A call that rejects may have happened; the caller then takes
// it as not done, and may repeat it.
// Durations, not points in time: processes that share a store need not agree on what time it is. `nowMs` is the caller's
// clock, for stores that have none; one that several processes share goes by its own.
import type { RecordedOutcome } from '../core/recorded-outcome.js';

export type ClaimAnswer =
  | { readonly kind: 'claimed' }
  /** How it ended, for whoever comes again. */
  | { readonly kind: 'recorded'; readonly outcome: RecordedOutcome }
  /** Claimed by somebody else, whose lease ends in so many milliseconds unless it is renewed. */
  | { readonly kind: 'busy'; readonly remainingMs: number };

export interface LeaseTimes {
  /** Epoch milliseconds by the caller's clock. */
  readonly nowMs: number;
  /** How long the claim holds from now on. */
  readonly leaseMs: number;
}

export interface RecordTimes {
  readonly nowMs: number;
  /** How long the outcome is kept at least, unless the store has a limit that makes it forget earlier and says so. */
  readonly ttlMs: number;
}

export interface IdempotencyStore {
  /** For logs and errors, e.g. `memory`. */
  readonly name: string;
  /**
   * Takes a key that is free, whose lease has ended, or whose outcome's time is over. `busy` also when `owner` itself has it.
   * @throws whatever kept it from answering; STORE_FULL where there is no room for another key.
   */
  claim(key: string, owner: string, times: LeaseTimes): Promise<ClaimAnswer>;
  /**
   * Extends the lease, also one that has ended while nobody else took the key. False when the claim is not the owner's any
   * more: then nothing has changed.
   */
  renew(key: string, owner: string, times: LeaseTimes): Promise<boolean>;
  /**
   * Keeps the outcome and ends the claim, also when its lease has ended while nobody else took the key. False when the
   * claim is not the owner's any more: then nothing has changed. True again when the same owner repeats it.
   */
  record(key: string, owner: string, outcome: RecordedOutcome, times: RecordTimes): Promise<boolean>;
  /** Frees the key at once. Nothing happens when the claim is not the owner's any more or an outcome is recorded. */
  release(key: string, owner: string): Promise<void>;
}
