// The seam behind which it is kept what a subscription acknowledged in transactions, and how they ended. What is
// pending is also in memory, in `PendingAcks`; a store brings it back, and some stores find out by themselves what has ended.
import type { AckedOfBatch } from './txn-records.js';

/** An acknowledged entry, or some messages of a batch. */
export interface AckedEntry {
  readonly ledgerId: number;
  readonly entryId: number;
  /** Null: the whole entry. */
  readonly batch: AckedOfBatch | null;
}

/**
 * Where a store puts what it knows. Transactions are named by their keys. What it tells is not written again.
 * It may be used from `replay` on until the store is closed.
 */
export interface PendingAckTarget {
  /** Pending again: before Ready only. What the cursor has acknowledged is skipped, and so is what is pending already. */
  individual(transaction: string, entries: readonly AckedEntry[]): void;
  cumulative(transaction: string, entry: AckedEntry): void;
  /** Resolves when the acknowledgements are in the cursor, and stored there. A transaction that is unknown here is done. */
  committed(transaction: string): Promise<void>;
  /** What was acknowledged in it is free. A transaction that is unknown here is done. */
  aborted(transaction: string): Promise<void>;
}

/**
 * A call that rejects may have been done in part, unless it says TRANSACTION_ENDED: then nothing of it is kept.
 * After `close` all calls but `close` reject with ALREADY_CLOSED; `reconcile` does nothing.
 */
export interface PendingAckStore {
  /** The first call. Rejects when what is kept cannot be told completely. */
  replay(target: PendingAckTarget): Promise<void>;
  /** Resolves when it would survive. @throws TransportError TRANSACTION_ENDED where the store knows that the transaction is not open. */
  appendIndividual(transaction: string, entries: readonly AckedEntry[]): Promise<void>;
  /** Everything up to and including `entry`; of its batch, all messages that are named. @throws as `appendIndividual`. */
  appendCumulative(transaction: string, entry: AckedEntry): Promise<void>;
  appendCommitMark(transaction: string): Promise<void>;
  appendAbortMark(transaction: string): Promise<void>;
  /** How the transaction ended has been applied: its records are not needed. Rejects where it must be called again. */
  applied(transaction: string): Promise<void>;
  /** Finds out what has ended, also where nobody told, and applies it. What fails is left for the next call; never rejects. */
  reconcile(): Promise<void>;
  /** The subscription is deleted: removes what is kept of it. Rejects where something may be left. */
  removeAll(): Promise<void>;
  /** Waits for what it is doing. More calls than one are allowed. */
  close(): Promise<void>;
}

/** Of which subscription. */
export interface PendingAckOwner {
  /** Full name of the topic, with its partition. */
  readonly topic: string;
  readonly subscription: string;
}

export interface PendingAckStoreProvider {
  /**
   * Whether something may be kept of it from before. Where not, nothing is opened before the first acknowledgement in a
   * transaction. @default true
   */
  mayHold?(owner: PendingAckOwner): boolean;
  /** One store per subscription may be open at a time. */
  open(owner: PendingAckOwner): Promise<PendingAckStore>;
  /** The subscription is deleted: one of the same name is opened once `removed` is settled. */
  leave?(owner: PendingAckOwner, removed: Promise<void>): void;
}
