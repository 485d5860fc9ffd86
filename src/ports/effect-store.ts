// The seam to a database in which the record of what was done is written in the same transaction as what was done.
//
// Keys are those of an IdempotencyStore, and share its records where the database has both. Nobody claims a key for a time: it
// is taken by the transaction that writes its record, and free again as soon as that is rolled back or its process is gone.
import type { RecordedOutcome } from '../core/recorded-outcome.js';

export interface EffectTimes {
  /** How long the outcome is remembered at least. */
  readonly ttlMs: number;
  /** How long to wait for another transaction that has the key. */
  readonly waitMs: number;
}

/** @typeParam Tx what a transaction is for whoever writes in it, e.g. a client of `pg`. */
export type EffectAnswer<Tx extends object> =
  | { readonly kind: 'begun'; readonly transaction: EffectTransaction<Tx> }
  /** How it ended, for whoever comes again. */
  | { readonly kind: 'recorded'; readonly outcome: RecordedOutcome }
  /** Another transaction still has the key, or a claim of an IdempotencyStore. To be asked again after so long. */
  | { readonly kind: 'busy'; readonly remainingMs: number };

export interface EffectStore<Tx extends object> {
  /** For logs and errors, e.g. `postgres`. */
  readonly name: string;
  /** Makes the tables or brings them up to date. @throws PulseworkError as `OutboxStore.open` */
  open(): Promise<void>;
  /**
   * A transaction that has the key: of two for one key, in whatever processes, the second waits until the first has ended.
   * @throws PulseworkError STORE_*; nothing is open then.
   */
  begin(key: string, times: EffectTimes): Promise<EffectAnswer<Tx>>;
}

export interface EffectTransaction<Tx extends object> {
  /** The user writes here, and neither commits nor rolls back. The same object may be given again for a later transaction. */
  readonly tx: Tx;
  /**
   * Writes the record and commits, on the disk of the database: both are done with what was written, or none of it.
   * @throws PulseworkError STORE_COMMIT_UNKNOWN where nobody knows whether it is done: `begin` with the same key tells. Any
   *   other STORE_*: nothing is done. What is no such error counts as the first.
   */
  commit(outcome: RecordedOutcome): Promise<void>;
  /**
   * Never rejects, and does not wait for a database that is silent: what cannot be rolled back now is, once the connection is
   * gone. After a `commit` that rejected, or gave no answer yet, it is allowed.
   */
  rollback(): Promise<void>;
}
