// One life of the broker with all that is connected to it, on what the lives before it left on the disk.
import { metadataPendingAckLogs } from '../../../src/broker/transactions/pending-ack-log.js';
import { LoggedPendingAckStore } from '../../../src/broker/transactions/logged-pending-ack-store.js';
import { MetadataPendingAckStore } from '../../../src/broker/transactions/metadata-pending-ack-store.js';
import type { PendingAckStoreProvider } from '../../../src/broker/transactions/pending-ack-store.js';
import { RegisteredPendingAckStore } from '../../../src/broker/transactions/registered-pending-ack-store.js';
import { TxnMetadataStore } from '../../../src/broker/transactions/txn-metadata-store.js';
import type { BrokerTransactions } from '../../../src/broker/transactions/broker-transactions.js';
import type { ProducerHandle } from '../../../src/broker/producer-handle.js';
import { EmbeddedBroker } from '../../../src/embedded.js';
import type { MetadataStore } from '../../../src/ports/metadata-store.js';
import type { FakeClock } from '../../../src/testing.js';
import { ModelBrokerStore, modelMetadata } from './model-stores.js';
import type { Observer } from './observer.js';
import { ProcessLife } from './process-life.js';
import type { Setting } from './program.js';
import type { SubscriptionPlace } from './reader.js';
import { Reader } from './reader.js';
import type { StoredTopics } from './stored-topics.js';

/** What all lives share. */
export interface Disk {
  readonly topics: StoredTopics;
  /** Open. */
  readonly metadata: MetadataStore;
}

export interface ModelBrokerFacts {
  readonly setting: Setting;
  readonly clock: FakeClock;
  readonly disk: Disk;
  readonly observer: Observer;
  /** Of all lives. In [0, 1). */
  readonly next: () => number;
}

/** Short, so that few minutes are enough for everything to be collected. */
export const SWEEPS = { sweepIntervalMs: 10_000, collectionIntervalMs: 15_000, retentionMs: 20_000 };

const PERMITS = 1_000;

export class ModelBroker {
  readonly life: ProcessLife;
  readonly broker: EmbeddedBroker;
  readonly transactions: BrokerTransactions;
  readonly #facts: ModelBrokerFacts;
  readonly #producers = new Map<string, ProducerHandle>();
  #readers: Reader[] = [];

  constructor(facts: ModelBrokerFacts) {
    const { setting, clock, disk, observer, next } = facts;
    this.#facts = facts;
    this.life = new ProcessLife(() => Math.floor(next() * (setting.latency + 1)));
    const parts = { life: this.life, watcher: observer };
    const ownClock = this.life.clock(clock);
    const metadata = modelMetadata(disk.metadata, parts, { clock: ownClock, notices: setting.notices, next });
    // With an odd seed others may have the records as well: then a new life ends nothing that an earlier one left open (T-42).
    const shared = setting.seed % 2 === 1 ? { ...metadata } : metadata;
    const onFailed = (error: Error): void => observer.tell(`the broker reports: ${error.message}`);
    const records = new TxnMetadataStore(metadata);
    this.broker = new EmbeddedBroker({
      clock: ownClock,
      store: new ModelBrokerStore(disk.topics, metadata, parts),
      transactions: { store: shared, ...SWEEPS, onFailed },
      pendingAcks: pendingAcksOf(setting, { metadata, records, onFailed }, () => this.transactions),
      maxLedgerEntries: setting.maxLedgerEntries,
    });
    if (this.broker.transactions === undefined) throw new Error('it was given a store for them');
    this.transactions = this.broker.transactions;
  }

  /** Those that are connected. */
  get readers(): readonly Reader[] {
    this.#readers = this.#readers.filter(({ isConnected }) => isConnected);
    return this.#readers;
  }

  readersOf({ key }: SubscriptionPlace): readonly Reader[] {
    return this.readers.filter(({ place }) => place.key === key);
  }

  join(name: string, place: SubscriptionPlace): void {
    if (place.type === 'exclusive' && this.readersOf(place).length > 0) return;
    const { observer } = this.#facts;
    observer.tell(`${name} joins ${place.key}, ${place.type}`);
    const reader = new Reader(name, place, this.broker, { observer, life: this.life });
    reader.handle.flow(PERMITS);
    this.#readers.push(reader);
  }

  leave(reader: Reader): void {
    this.#facts.observer.tell(`${reader.name} leaves`);
    reader.isConnected = false;
    reader.handle.close();
  }

  producerOf(topic: string): ProducerHandle {
    const known = this.#producers.get(topic);
    if (known !== undefined) return known;
    const made = this.broker.producer({ topic });
    this.#producers.set(topic, made);
    return made;
  }
}

interface PendingAckParts {
  readonly metadata: MetadataStore;
  readonly records: TxnMetadataStore;
  readonly onFailed: (error: Error) => void;
}

/** As the broker has it, but that a topic of another name than a segment's is taken for one, since no client can name those. */
function pendingAcksOf(
  { hasSegment, topics }: Setting,
  { metadata, records, onFailed }: PendingAckParts,
  transactions: () => BrokerTransactions,
): PendingAckStoreProvider | undefined {
  if (!hasSegment || topics.length === 0) return undefined;
  const logs = metadataPendingAckLogs(metadata);
  const own = (): PendingAckStoreProvider => transactions().pendingAcks;
  return {
    mayHold: (owner) => own().mayHold?.(owner) !== false,
    leave: (owner, removed) => own().leave?.(owner, removed),
    open: async (owner) => {
      await transactions().open();
      if (owner.topic === topicName(0)) return new MetadataPendingAckStore(records, owner, onFailed);
      return new RegisteredPendingAckStore(new LoggedPendingAckStore(await logs.open(owner)), records, owner, onFailed);
    },
  };
}

export function topicName(at: number): string {
  return `persistent://public/default/t${at}`;
}
