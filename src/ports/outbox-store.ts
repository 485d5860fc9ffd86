// The seam to a table of messages that are written in the user's own database transactions and relayed to a broker once
// these are committed.
//
// A row is waiting, claimed (it has its number) or refused, and is deleted once its message is published. Its id grows in
// the order of the appends. Ids say nothing of which transaction commits first: a row with a lower id may appear after one
// with a higher id was published. So no position is kept; whatever is there and waits is claimed.
// The number of a row is the sequence id that it is published with: given when the row is claimed, never from its id,
// because a broker that deduplicates drops what comes below the highest number it has seen. Numbers grow from claim to claim
// and never come again (`nextOutboxNumber`).
// One process at a time relays: the leader. Nothing that a former leader still asks for changes anything.
// Each call is atomic. A call that rejects may have happened; all of them may be repeated.
import type { OutboxRecord } from '../core/outbox-record.js';

/** What is in the table for one message. */
export interface OutboxRow extends OutboxRecord {
  readonly id: number;
}

export interface ClaimedRow extends OutboxRow {
  /** Greater than those of all rows claimed before. */
  readonly number: number;
}

/** A row whose message the broker will never take as it is. Rows of the same topic and key wait behind it. */
export interface RefusedRow extends OutboxRow {
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly refusedMs: number;
}

export interface OutboxSummary {
  /** Rows that are waiting or claimed, counted up to `MAX_WAITING_COUNTED` (100,000). */
  readonly waiting: number;
  /** When the oldest row that is not refused was appended, epoch milliseconds; undefined when there is none. */
  readonly oldestMs: number | undefined;
  readonly refused: number;
}

/** @typeParam Tx what a transaction of the user's is, e.g. a client of `pg`. */
export interface OutboxStore<Tx = never> {
  /** For logs and errors, e.g. `postgres`. */
  readonly name: string;
  /**
   * Makes the tables or brings them up to date; several processes may do it at once. Opening again is no error.
   * @throws PulseworkError STORE_FORMAT_UNKNOWN, STORE_NOT_WRITABLE, STORE_LOCKED, STORE_FAILED.
   */
  open(): Promise<void>;
  /**
   * Writes rows in the order given, in `tx`: they are there once that is committed, or never. A promise only where the
   * database is asked for it. @throws whatever the database threw: the transaction is the user's, and so is its failure.
   */
  append(tx: Tx, records: readonly OutboxRecord[]): void | Promise<void>;
  /**
   * Becomes the leader; undefined while another process is. Whoever died is the leader no more, at once where that can be
   * known, else after a time that the adapter tells. @throws PulseworkError STORE_FAILED, STORE_LOCKED.
   */
  lead(): Promise<OutboxLead | undefined>;
  /** The first refused rows, in the order of their ids. */
  refused(limit: number): Promise<readonly RefusedRow[]>;
  /** The row waits again, to be published as it is. False when it is not refused. */
  release(id: number): Promise<boolean>;
  /** Deletes a refused row: what waits behind it goes on. False when it is not refused. */
  skip(id: number): Promise<boolean>;
}

/**
 * What only the leader may do. It calls `claim` or `summary` at least every 3 s, which says that it lives.
 * @throws PulseworkError each call OUTBOX_LEAD_LOST once another process leads or the connection is gone; STORE_FAILED.
 */
export interface OutboxLead {
  /** Made together with the tables: names the producers of this outbox, which those of another must not share. */
  readonly outboxId: string;
  /** Rows that a former leader had claimed, in the order of their numbers. They may be published already. */
  claimed(): Promise<readonly ClaimedRow[]>;
  /**
   * Gives the first rows that wait, in the order of their ids, a number each. Not those behind a refused row of the same
   * topic and key. Rows of one transaction are claimed in their order, and those of a transaction that began to append after
   * another was committed come after them.
   * @param options `exceptTopics`: as in the rows. `nowMs`: the caller's clock, for stores that have none.
   */
  claim(options: {
    readonly limit: number;
    readonly exceptTopics: readonly string[];
    readonly nowMs: number;
  }): Promise<readonly ClaimedRow[]>;
  /** They are published. Unknown ids are no error. */
  delete(ids: readonly number[]): Promise<void>;
  /**
   * `id` is refused. It and all claimed rows of the same topic and key with a higher number lose their numbers: they wait,
   * and get new ones when they are claimed again. A row without a key is refused alone.
   */
  refuse(id: number, refusal: { readonly reason: string; readonly nowMs: number }): Promise<void>;
  summary(): Promise<OutboxSummary>;
  /** `report` is called when rows may have been committed since the last claim. Calls may collapse or be missed. */
  onNews(report: () => void): void;
  /** Another process may lead at once. Never rejects; calling it twice is allowed. */
  end(): Promise<void>;
}
