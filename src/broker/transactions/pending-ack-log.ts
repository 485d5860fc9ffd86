// The seam to a log for each subscription of what it acknowledged in transactions and how they ended, for topics of which
// no metadata store knows it.
import type { MetadataStore } from '../../ports/metadata-store.js';
import type { AckedEntry, PendingAckOwner } from './pending-ack-store.js';
import { allDone } from './transaction-ending.js';
import { subscriptionKey } from './txn-paths.js';
import { decodeRecord, encodeRecord } from './txn-records.js';

export type PendingAckRecord =
  | { readonly kind: 'individual'; readonly transaction: string; readonly entries: readonly AckedEntry[] }
  | { readonly kind: 'cumulative'; readonly transaction: string; readonly entry: AckedEntry }
  | { readonly kind: 'commit' | 'abort'; readonly transaction: string };

export interface PendingAckLog {
  /** Resolves when it would survive. Records stand in the order of the calls, also without being awaited. */
  append(record: PendingAckRecord): Promise<void>;
  /** All that is kept, in its order. */
  read(): Promise<readonly PendingAckRecord[]>;
  /** Removes what is kept of the transaction. */
  forget(transaction: string): Promise<void>;
  close(): Promise<void>;
}

export interface PendingAckLogs {
  /** Opened once at a time; what an earlier one kept is in it. */
  open(owner: PendingAckOwner): Promise<PendingAckLog>;
}

/** Kept in a metadata store, as whatever else is there. @param store open */
export function metadataPendingAckLogs(store: MetadataStore): PendingAckLogs {
  return { open: async (owner) => new MetadataPendingAckLog(store, subscriptionKey(owner.topic, owner.subscription)) };
}

/** Of all records of a subscription, and of those of one transaction there. */
const INDEXES = { bySubscription: 'idx:pending-ack-log', byTransaction: 'idx:pending-ack-log-by-txn' } as const;

class MetadataPendingAckLog implements PendingAckLog {
  readonly #store: MetadataStore;
  readonly #key: string;

  constructor(store: MetadataStore, key: string) {
    this.#store = store;
    this.#key = key;
  }

  async append(record: PendingAckRecord): Promise<void> {
    const indexes = [
      { index: INDEXES.bySubscription, key: this.#key },
      { index: INDEXES.byTransaction, key: this.#keyOf(record.transaction) },
    ];
    await this.#store.append(`/pending-ack-log/${this.#key}`, encodeRecord(record), { indexes });
  }

  async read(): Promise<readonly PendingAckRecord[]> {
    const found = await this.#store.scanIndex({ index: INDEXES.bySubscription, key: this.#key });
    return found.map(({ path, value }) => decodeRecord(path, value) as PendingAckRecord);
  }

  async forget(transaction: string): Promise<void> {
    const found = await this.#store.scanIndex({ index: INDEXES.byTransaction, key: this.#keyOf(transaction) });
    // The mark goes last: what is left of one that has ended must not look as if it were open.
    await allDone(found.map(({ path }) => this.#store.delete(path)));
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  #keyOf(transaction: string): string {
    return `${this.#key}:${transaction}`;
  }
}

/** Kept for as long as the object lives, also while a subscription is not open. */
export function memoryPendingAckLogs(): PendingAckLogs {
  const records = new Map<string, PendingAckRecord[]>();
  return {
    open: async ({ topic, subscription }) => {
      const name = JSON.stringify([topic, subscription]);
      return new MemoryPendingAckLog(
        () => records.get(name) ?? [],
        (kept) => (kept.length === 0 ? void records.delete(name) : void records.set(name, kept)),
      );
    },
  };
}

class MemoryPendingAckLog implements PendingAckLog {
  readonly #kept: () => PendingAckRecord[];
  readonly #keep: (records: PendingAckRecord[]) => void;

  constructor(kept: () => PendingAckRecord[], keep: (records: PendingAckRecord[]) => void) {
    this.#kept = kept;
    this.#keep = keep;
  }

  async append(record: PendingAckRecord): Promise<void> {
    const kept = this.#kept();
    kept.push(record);
    this.#keep(kept);
  }

  async read(): Promise<readonly PendingAckRecord[]> {
    return [...this.#kept()];
  }

  async forget(transaction: string): Promise<void> {
    this.#keep(this.#kept().filter((record) => record.transaction !== transaction));
  }

  async close(): Promise<void> {
    // Nothing is open.
  }
}
