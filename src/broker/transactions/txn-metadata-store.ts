// The records of transactions in a metadata store, by what they mean: headers, operations, events and the counters of
// coordinators. It keeps nothing itself, so any number of them may work on one store, in any number of processes.
//
// Transactions are named by their keys, see `transactionKey`. Segments and subscriptions are plain names, encoded here.
// What the store throws passes through; a record of an unknown form is STORE_FORMAT_UNKNOWN. After STORE_FAILED a write may
// have happened: read before it is repeated. Appended twice, an operation or an event is there twice.
import { NO_ENTRY } from '../../core/metadata-rules.js';
import type { IndexKey, MetadataEntry, MetadataStore, SequenceWatch } from '../../ports/metadata-store.js';
import { isVersionConflict } from './transaction-errors.js';
import * as paths from './txn-paths.js';
import type { FinalState } from './txn-paths.js';
import { decodeRecord, encodeRecord } from './txn-records.js';
import type { AbortedRecord, AckOp, EntryPlace, TxnEvent, TxnHeader, TxnOp, WriteOp } from './txn-records.js';

const { TXN_INDEXES } = paths;

/** A header as it was read; `version` is for the change that follows from it. */
export interface StoredHeader {
  readonly transaction: string;
  readonly header: TxnHeader;
  readonly version: number;
}

/** An operation with its place. Those of one transaction are in the order in which they were appended. */
export interface StoredOp<T extends TxnOp = TxnOp> {
  readonly path: string;
  readonly transaction: string;
  readonly op: T;
}

export interface EndedRange {
  readonly state: FinalState;
  /** Ended at or before this, epoch milliseconds. */
  readonly untilMs: number;
  /** At most so many, the longest ended first. */
  readonly limit: number;
  /** The last one of an earlier answer, to go on behind it. */
  readonly after?: StoredHeader | undefined;
}

export class TxnMetadataStore {
  readonly #store: MetadataStore;

  /** @param store open. It stays the caller's, who closes it. */
  constructor(store: MetadataStore) {
    this.#store = store;
  }

  /** Undefined: there is none, or none any more. For a pending acknowledgement that means ABORTED (T-38). */
  async readHeader(transaction: string): Promise<StoredHeader | undefined> {
    const entry = await this.#store.get(paths.headerPath(transaction));
    return entry && headerOf(entry);
  }

  /** @returns its version. @throws PulseworkError STORE_VERSION_CONFLICT when there is one. */
  createHeader(transaction: string, header: TxnHeader): Promise<number> {
    return this.#putHeader(transaction, header, NO_ENTRY);
  }

  /**
   * The decision: one write that sets state and time and moves the header to its other index, so that it stands in exactly
   * one (T-30, T-33, T-34). @returns the new version.
   * @throws PulseworkError STORE_VERSION_CONFLICT when somebody else decided meanwhile: read again.
   */
  finalizeHeader(open: StoredHeader, state: FinalState, finalizedAtMs: number): Promise<number> {
    return this.#putHeader(open.transaction, { ...open.header, state, finalizedAtMs }, open.version);
  }

  /** False when it is gone already or has changed since it was read. */
  async deleteHeader({ transaction, version }: StoredHeader): Promise<boolean> {
    try {
      return await this.#store.delete(paths.headerPath(transaction), { expectedVersion: version });
    } catch (error) {
      if (isVersionConflict(error)) return false;
      throw error;
    }
  }

  /** Open ones whose deadline is `nowMs` or earlier, the earliest first. */
  async openPastDeadline(nowMs: number, limit: number): Promise<readonly StoredHeader[]> {
    const range = { index: TXN_INDEXES.openByDeadline, to: paths.numberKey(nowMs + 1), limit };
    return (await this.#store.scanIndex(range)).map(headerOf);
  }

  /** Open ones, the earliest deadline first. @param limit at most so many. @default all */
  async open(limit?: number): Promise<readonly StoredHeader[]> {
    return (await this.#store.scanIndex({ index: TXN_INDEXES.openByDeadline, limit })).map(headerOf);
  }

  /** Those that ended in `state`. */
  async ended({ state, untilMs, limit, after }: EndedRange): Promise<readonly StoredHeader[]> {
    const found = await this.#store.scanIndex({
      index: TXN_INDEXES.ended,
      from: paths.finalStateKey(state, 0),
      to: paths.finalStateKey(state, untilMs + 1),
      after: after && {
        key: paths.finalStateKey(state, after.header.finalizedAtMs ?? 0),
        path: paths.headerPath(after.transaction),
      },
      limit,
    });
    return found.map(headerOf);
  }

  /**
   * Notes what the transaction does at a participant. Whether it is still open is the caller's to look at, before and
   * after: one that ended in between has an operation that its end did not see.
   * @returns the path of the record.
   */
  async appendOp(transaction: string, op: TxnOp): Promise<string> {
    const indexes = [{ index: TXN_INDEXES.opsByTransaction, key: transaction }, participantIndex(op)];
    return (await this.#store.append(paths.opPrefix(transaction), encodeRecord(op), { indexes })).path;
  }

  async opsOf(transaction: string): Promise<readonly StoredOp[]> {
    const found = await this.#store.scanIndex({ index: TXN_INDEXES.opsByTransaction, key: transaction });
    return found.map((entry) => opOf(entry));
  }

  async hasOps(transaction: string): Promise<boolean> {
    const range = { index: TXN_INDEXES.opsByTransaction, key: transaction, limit: 1 };
    return (await this.#store.scanIndex(range)).length > 0;
  }

  /** Of all transactions. */
  async writesTo(segment: string): Promise<readonly StoredOp<WriteOp>[]> {
    const range = { index: TXN_INDEXES.writesBySegment, key: paths.segmentKey(segment) };
    return (await this.#store.scanIndex(range)).map((entry) => opOf<WriteOp>(entry));
  }

  /** Of all transactions. */
  async acksOf(segment: string, subscription: string): Promise<readonly StoredOp<AckOp>[]> {
    const range = { index: TXN_INDEXES.acksBySubscription, key: paths.subscriptionKey(segment, subscription) };
    return (await this.#store.scanIndex(range)).map((entry) => opOf<AckOp>(entry));
  }

  /** Keys, as `segmentKey` gives them, of segments that are written to, or were: those have a watermark. */
  async writtenSegments(): Promise<readonly string[]> {
    return [...(await this.#keysIn(TXN_INDEXES.writesBySegment)), ...(await this.#store.children(paths.WATERMARKS))];
  }

  /** Keys, as `subscriptionKey` gives them, of subscriptions that something is acknowledged on. */
  acknowledgingSubscriptions(): Promise<readonly string[]> {
    return this.#keysIn(TXN_INDEXES.acksBySubscription);
  }

  /** The next transaction with operations behind `after`, in the order of keys; undefined: there is none. */
  nextWithOps(after?: string): Promise<string | undefined> {
    return this.#nextKey(TXN_INDEXES.opsByTransaction, after);
  }

  /** What a participant does last, once it has applied the outcome (T-40). False when it was gone. */
  deleteOp(path: string): Promise<boolean> {
    return this.#store.delete(path);
  }

  /** @param nowMs from which `events` counts. */
  async publishSegmentEvent(segment: string, event: TxnEvent, nowMs: number): Promise<void> {
    await this.#publish(paths.segmentEventsPrefix(segment), event, nowMs);
  }

  async publishSubscriptionEvent(segment: string, subscription: string, event: TxnEvent, nowMs: number): Promise<void> {
    await this.#publish(paths.subscriptionEventsPrefix(segment, subscription), event, nowMs);
  }

  /**
   * Calls `onEvent` after events of the segment, once or more, perhaps once for many and perhaps for none. It says only: read
   * the headers of what you believe open (T-38). Watch before the first scan; what was published earlier is not told.
   */
  watchSegment(segment: string, onEvent: () => void): Promise<SequenceWatch> {
    return this.#store.watch(paths.segmentEventsPrefix(segment), onEvent);
  }

  /** The same of a subscription on the segment. */
  watchSubscription(segment: string, subscription: string, onEvent: () => void): Promise<SequenceWatch> {
    return this.#store.watch(paths.subscriptionEventsPrefix(segment, subscription), onEvent);
  }

  /** Paths of events published at or before `untilMs`, the oldest first: nobody waits for these. */
  async eventsUntil(untilMs: number, limit: number): Promise<readonly string[]> {
    const range = { index: TXN_INDEXES.eventsByTime, to: paths.numberKey(untilMs + 1), limit };
    return (await this.#store.scanIndex(range)).map(({ path }) => path);
  }

  /** False when it was gone. */
  deleteEvent(path: string): Promise<boolean> {
    return this.#store.delete(path);
  }

  /** Up to which entry of the segment all outcomes are in effect (T-46); undefined before the first. */
  async readWatermark(segment: string): Promise<EntryPlace | undefined> {
    const entry = await this.#store.get(paths.watermarkPath(segment));
    return entry && (decodeRecord(entry.path, entry.value) as EntryPlace);
  }

  async writeWatermark(segment: string, { ledgerId, entryId }: EntryPlace): Promise<void> {
    await this.#store.put(paths.watermarkPath(segment), encodeRecord({ ledgerId, entryId }));
  }

  async deleteWatermark(segment: string): Promise<void> {
    await this.#store.delete(paths.watermarkPath(segment));
  }

  /** For as long as entries of it are kept: its header may go earlier. */
  async writeAborted(segment: string, { transaction, ledgerId, entryId }: AbortedRecord): Promise<void> {
    const indexes = [{ index: TXN_INDEXES.abortedByPosition, key: paths.abortedKey(segment, ledgerId, entryId) }];
    const record = { transaction, ledgerId, entryId };
    await this.#store.put(paths.abortedPath(segment, transaction), encodeRecord(record), { indexes });
  }

  /** In the order of places. */
  async abortedOn(segment: string): Promise<readonly AbortedRecord[]> {
    const range = { index: TXN_INDEXES.abortedByPosition, ...paths.abortedKeysOf(segment) };
    return (await this.#store.scanIndex(range)).map(({ path, value }) => decodeRecord(path, value) as AbortedRecord);
  }

  async deleteAborted(segment: string, transaction: string): Promise<void> {
    await this.#store.delete(paths.abortedPath(segment, transaction));
  }

  /** The last number that the coordinator gave; -1n before the first. */
  async readCounter(coordinator: number): Promise<{ readonly last: bigint; readonly version: number }> {
    const path = paths.counterPath(coordinator);
    const entry = await this.#store.get(path);
    if (entry === undefined) return { last: -1n, version: NO_ENTRY };
    return {
      last: BigInt((decodeRecord(path, entry.value) as { readonly last: string }).last),
      version: entry.version,
    };
  }

  /** @throws PulseworkError STORE_VERSION_CONFLICT when somebody else took a number meanwhile: read again. */
  async writeCounter(coordinator: number, last: bigint, expectedVersion: number): Promise<void> {
    await this.#store.put(paths.counterPath(coordinator), encodeRecord({ last: String(last) }), { expectedVersion });
  }

  /** Each once, however many entries it has. */
  async #keysIn(index: string): Promise<readonly string[]> {
    const keys: string[] = [];
    for (let key = await this.#nextKey(index); key !== undefined; key = await this.#nextKey(index, key)) keys.push(key);
    return keys;
  }

  async #nextKey(index: string, after?: string): Promise<string | undefined> {
    // Paths of all records come before it.
    const behind = after === undefined ? undefined : { key: after, path: '/~' };
    return (await this.#store.scanIndex({ index, after: behind, limit: 1 }))[0]?.key;
  }

  #putHeader(transaction: string, header: TxnHeader, expectedVersion: number): Promise<number> {
    const options = { expectedVersion, indexes: [headerIndex(header)] };
    return this.#store.put(paths.headerPath(transaction), encodeRecord(header), options);
  }

  async #publish(prefix: string, event: TxnEvent, nowMs: number): Promise<void> {
    const indexes = [{ index: TXN_INDEXES.eventsByTime, key: paths.numberKey(nowMs) }];
    await this.#store.append(prefix, encodeRecord(event), { indexes });
  }
}

function headerIndex({ state, createdAtMs, timeoutMs, finalizedAtMs }: TxnHeader): IndexKey {
  return state === 'OPEN'
    ? { index: TXN_INDEXES.openByDeadline, key: paths.numberKey(createdAtMs + timeoutMs) }
    : { index: TXN_INDEXES.ended, key: paths.finalStateKey(state, finalizedAtMs ?? 0) };
}

function participantIndex(op: TxnOp): IndexKey {
  return op.kind === 'WRITE'
    ? { index: TXN_INDEXES.writesBySegment, key: paths.segmentKey(op.segment) }
    : { index: TXN_INDEXES.acksBySubscription, key: paths.subscriptionKey(op.segment, op.subscription) };
}

function headerOf({ path, value, version }: MetadataEntry): StoredHeader {
  return { transaction: paths.transactionOfPath(path), header: decodeRecord(path, value) as TxnHeader, version };
}

function opOf<T extends TxnOp>({ path, value }: MetadataEntry): StoredOp<T> {
  return { path, transaction: paths.transactionOfPath(path), op: decodeRecord(path, value) as T };
}
