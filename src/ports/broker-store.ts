// The seam behind which the embedded broker's topics are kept. Everything also stays in memory: a store says when a receipt
// may be given, and one that is durable gives everything back to the broker of the next process.
import type { ChunkOrigin } from '../core/chunk-origin.js';
import type { EncodedMessage } from '../core/message.js';
import type { MetadataStore } from './metadata-store.js';

/** Undefined when it is stored already, else a promise of it. Saves a promise per message where storing is immediate. */
export type Stored = Promise<void> | undefined;

/** One message, a producer batch, or a chunk of a message. It does not change. */
export interface StoredEntry {
  readonly publishTimeMs: number;
  readonly producerName: string;
  readonly sequenceId: number;
  /** Payload, properties and keys. */
  readonly bytes: number;
  /** How many messages the batch has; 0: it is none. */
  readonly batchSize: number;
  /** At least one. */
  readonly messages: readonly EncodedMessage[];
  readonly chunk: ChunkOrigin | undefined;
  /** The key of the transaction in which it was published. */
  readonly transaction?: string | undefined;
}

export interface EntryAddress {
  /** Full topic name, with its partition. */
  readonly topic: string;
  /** Never given twice by a broker; of one topic they rise. */
  readonly ledgerId: number;
  /** From 0 in each ledger. */
  readonly entryId: number;
}

export interface AcknowledgementRecord extends EntryAddress {
  readonly subscription: string;
  /** One message of a batch; -1 for the whole entry. */
  readonly batchIndex: number;
  /** Everything up to and including this. */
  readonly cumulative: boolean;
}

/** What changes besides entries and acknowledgements. Names of topics are full, with their partition. */
export type BrokerChange =
  /** What was before under this name is gone. */
  | { readonly kind: 'topic-created' | 'topic-deleted' | 'topic-terminated'; readonly topic: string }
  /** @param partitions 0: it is none of those with partitions any more. */
  | { readonly kind: 'partitions'; readonly topic: string; readonly partitions: number }
  /** The subscription is there: everything up to and including this entry is acknowledged, and nothing beyond. -1 stands before the first. */
  | ({ readonly kind: 'cursor'; readonly subscription: string } & EntryAddress)
  | { readonly kind: 'subscription-deleted'; readonly topic: string; readonly subscription: string }
  /** Ledgers before this one are not needed. */
  | { readonly kind: 'trimmed'; readonly topic: string; readonly firstLedgerId: number }
  /** The highest sequence id of this producer is not needed. */
  | { readonly kind: 'producer-forgotten'; readonly topic: string; readonly producerName: string };

export interface BrokerStore {
  /**
   * Appends of one topic complete in the order of the calls. A rejection fails that publish, which is then not there.
   * @param highestSequenceId of the producer, to be known again; undefined: it need not be.
   */
  append(address: EntryAddress, entry: StoredEntry, highestSequenceId: number | undefined): Stored;
  /** What it rejected is asked for again, and what is stored already is as well. */
  acknowledge(record: AcknowledgementRecord): Stored;
  /** A message, or a batch, went over a topic that is not persistent: it is told, and not to be kept for anybody. */
  passed?(topic: string, entry: StoredEntry): void;
  /** Stored no later than the next entry or acknowledgement, and never lost to a failure: it is stored then with what comes after it. */
  changed?(change: BrokerChange): void;
}

/** What is stored is there for the next broker, however this process ends. One broker at a time has it. */
export interface DurableBrokerStore extends BrokerStore {
  /** For logs and errors. */
  readonly name: string;
  /** For what else must survive with the broker: opened with it, and closed with it. */
  readonly metadata: MetadataStore;
  changed(change: BrokerChange): void;
  /**
   * Comes first; everything else is refused before, and after `close`. More calls than one are allowed after one that failed.
   * @throws PulseworkError STORE_LOCKED while another process has it; STORE_FORMAT_UNKNOWN, STORE_NOT_WRITABLE, STORE_FULL,
   *   STORE_FAILED; PEER_NOT_INSTALLED, PEER_NOT_LOADABLE.
   */
  open(): Promise<StoredBroker>;
  /** Once everything so far is stored; rejects where a part of it could not be. */
  written(): Stored;
  /** After what is being stored. More calls than one are allowed. */
  close(): Promise<void>;
}

export interface StoredBroker {
  /** The highest that was ever used; 0 for none. */
  readonly lastLedgerId: number;
  /** How many partitions a topic has, by its full name. */
  readonly partitions: ReadonlyMap<string, number>;
  readonly topics: readonly StoredTopic[];
}

export interface StoredTopic {
  readonly name: string;
  readonly isTerminated: boolean;
  /** By rising ids; none is empty. */
  readonly ledgers: readonly StoredLedger[];
  readonly subscriptions: readonly StoredSubscription[];
  /** Highest sequence ids by producer name. */
  readonly sequenceIds: ReadonlyMap<string, number>;
}

export interface StoredLedger {
  readonly id: number;
  /** By entry id; undefined where storing failed. */
  readonly entries: readonly (StoredEntry | undefined)[];
}

export interface StoredSubscription {
  readonly name: string;
  /** Everything up to and including this is acknowledged. Its ledger may be gone. */
  readonly ledgerId: number;
  readonly entryId: number;
  /** Acknowledged one by one. Some may be before the place above, or gone. */
  readonly acknowledged: Iterable<{ readonly ledgerId: number; readonly entryId: number }>;
  /** Batches of which some messages are acknowledged. */
  readonly parts: Iterable<{
    readonly ledgerId: number;
    readonly entryId: number;
    readonly indexes: readonly number[];
  }>;
}
