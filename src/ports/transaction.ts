// A transaction as whoever uses a transport sees it: what is published and acknowledged in it counts once it is committed,
// all of it or nothing.
import type { TransactionId } from '../core/transaction-id.js';

/**
 * `timed-out`: its time was over before it was committed, and nothing of it counts. `error`: it was to be committed, and
 * whether it was is unknown. Nothing can be done in one that is not open (T-02).
 */
export type TransactionState = 'open' | 'committing' | 'aborting' | 'committed' | 'aborted' | 'error' | 'timed-out';

/** Made by `newTransaction()` of a transport, for that transport alone. */
export interface Transaction {
  readonly id: TransactionId;
  readonly state: TransactionState;
  /**
   * Waits for everything that was published and acknowledged in it, then commits: readers see it within moments. If any of
   * it failed, it is aborted instead (T-03). After an error that is retriable it may be called again, or `abort()`.
   * @throws TransportError TRANSACTION_ABORTED, TRANSACTION_ENDED: nothing of it counts; TRANSACTION_OUTCOME_UNKNOWN: all or
   *   nothing of it does; CONNECTION_LOST and the like (retriable): it may be committed already; ask again, or `abort()`.
   */
  commit(): Promise<void>;
  /**
   * Nothing of it counts: its messages are never shown, what was acknowledged comes again. On Exclusive and Failover not
   * every broker sends it by itself: ask for it once, by `redeliver`, and everything that is unacknowledged there comes (T-17).
   * May be called again after an error that is retriable. @throws TransportError TRANSACTION_ENDED after a commit, also after
   * one that seemed to fail.
   */
  abort(): Promise<void>;
}

export interface TransactionOptions {
  /**
   * Counted from the request for it. Whatever is not committed by then is aborted, by the broker too: should this process
   * die, the topics in it stand still for that long. @default 1 minute, as Java's client (T-02)
   */
  readonly timeoutMs?: number | undefined;
}

/** Where a call belongs. */
export interface InTransaction {
  /** Of `newTransaction()`. @default none: it counts at once */
  readonly transaction?: Transaction | undefined;
}
