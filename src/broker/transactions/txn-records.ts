// What the records of transactions hold, and how they are written: JSON with the version of its form. A version that is
// not known is refused by name, never guessed at.
import { PulseworkError, describeValue } from '../../core/errors.js';
import type { FinalState } from './txn-paths.js';

/** A transaction has one of them; it leaves OPEN once and never changes again (T-30). */
export type TransactionState = 'OPEN' | FinalState;

/** The one record that decides what became of a transaction (T-34). */
export interface TxnHeader {
  readonly state: TransactionState;
  /** Counted from `createdAtMs`. */
  readonly timeoutMs: number;
  /** Epoch milliseconds. */
  readonly createdAtMs: number;
  /** Epoch milliseconds; null while OPEN. */
  readonly finalizedAtMs: number | null;
  /** Who may end it; null: anyone (T-47). */
  readonly owner: string | null;
}

/** Messages of the transaction are written to a segment. */
export interface WriteOp {
  readonly kind: 'WRITE';
  readonly segment: string;
  /** 0 where the operation is written before the entry. */
  readonly ledgerId: number;
  readonly entryId: number;
}

/** A position is acknowledged in the transaction, or with `cumulative` all up to it. */
export interface AckOp {
  readonly kind: 'ACK';
  readonly segment: string;
  readonly subscription: string;
  readonly ledgerId: number;
  readonly entryId: number;
  /** True for a cumulative acknowledgement, else null: there is no false (T-34, T-39). */
  readonly cumulative: true | null;
  /** Which messages of a producer batch; null: the whole entry. Java's records have none (T-42). */
  readonly batch: AckedOfBatch | null;
}

export interface AckedOfBatch {
  /** How many messages the entry holds. */
  readonly size: number;
  /** Places of those that are acknowledged: with `cumulative` all of the entry up to the position, too. */
  readonly indexes: readonly number[];
}

/** What a transaction did at one participant (T-34). */
export type TxnOp = WriteOp | AckOp;

/** Wakes participants; what counts is in the header (T-38). */
export interface TxnEvent {
  /** The key of the transaction. */
  readonly transaction: string;
  readonly decision: FinalState;
}

/** Where an entry is. */
export interface EntryPlace {
  readonly ledgerId: number;
  readonly entryId: number;
}

/** None of the messages that the transaction wrote to a segment is one; the place is that of the last (T-45). */
export interface AbortedRecord extends EntryPlace {
  readonly transaction: string;
}

const FORMAT_VERSION = 1;

/** A record of another kind that is kept next to those of transactions. */
export interface OtherRecord {
  readonly kind: string;
  readonly transaction: string;
}

export function encodeRecord(
  record: TxnHeader | TxnOp | TxnEvent | EntryPlace | AbortedRecord | OtherRecord | { readonly last: string },
): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ formatVersion: FORMAT_VERSION, ...record }));
}

/** What `encodeRecord` was given: the caller knows what lies at such paths. @throws PulseworkError STORE_FORMAT_UNKNOWN */
export function decodeRecord(path: string, value: Uint8Array): object {
  const { formatVersion, ...fields } = parsed(path, value);
  if (formatVersion === FORMAT_VERSION) return fields;
  const found = formatVersion === undefined ? 'no format version' : `format version ${describeValue(formatVersion)}`;
  throw unknownFormat(path, `it has ${found}, this program reads ${FORMAT_VERSION}; use the version that wrote it`);
}

function parsed(path: string, value: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const record: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(value));
    if (typeof record === 'object' && record !== null) return record as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw unknownFormat(path, 'it is no JSON', cause);
  }
  throw unknownFormat(path, 'it is no JSON object');
}

function unknownFormat(path: string, why: string, cause?: unknown): PulseworkError {
  return new PulseworkError('STORE_FORMAT_UNKNOWN', `transaction record ${JSON.stringify(path)}: ${why}`, { cause });
}
