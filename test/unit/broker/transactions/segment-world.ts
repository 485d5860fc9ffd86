// A segment's subscription whose pending acknowledgements are in a metadata store in memory, next to whoever begins and ends
// transactions there.
import { MetadataPendingAckStore } from '../../../../src/broker/transactions/metadata-pending-ack-store.js';
import { parseTransactionKey } from '../../../../src/broker/transactions/txn-paths.js';
import { endTransaction } from '../../../../src/broker/transactions/transaction-ending.js';
import { TxnMetadataStore } from '../../../../src/broker/transactions/txn-metadata-store.js';
import type { FinalState } from '../../../../src/broker/transactions/txn-paths.js';
import type { MetadataStore } from '../../../../src/ports/metadata-store.js';
import { memoryMetadataStore } from '../../../../src/stores/memory/memory-metadata-store.js';
import { FakeClock } from '../../../../src/testing/fake-clock.js';
import type { PendingWorld, TestEntries } from './pending-ack-kit.js';
import { pendingAcksOf, SEGMENT, TestSubscription } from './pending-ack-kit.js';

export interface Participant extends PendingWorld {
  readonly store: MetadataPendingAckStore;
  /** What it left for later. */
  readonly reported: readonly Error[];
}

export class SegmentWorld {
  readonly clock = new FakeClock();
  readonly metadata: MetadataStore;
  readonly records: TxnMetadataStore;

  private constructor(metadata: MetadataStore) {
    this.metadata = metadata;
    this.records = new TxnMetadataStore(metadata);
  }

  static async with(...transactions: readonly string[]): Promise<SegmentWorld> {
    const metadata = memoryMetadataStore();
    await metadata.open();
    const world = new SegmentWorld(metadata);
    for (const transaction of transactions) await world.begin(transaction);
    return world;
  }

  async begin(transaction: string): Promise<void> {
    const createdAtMs = this.clock.now();
    const header = { state: 'OPEN', timeoutMs: 60_000, createdAtMs, finalizedAtMs: null, owner: null } as const;
    await this.records.createHeader(transaction, header);
  }

  /** As a coordinator does: by the header, and by events to whoever takes part. */
  end(transaction: string, to: FinalState): Promise<void> {
    return endTransaction({ store: this.records, clock: this.clock }, parseTransactionKey(transaction), to);
  }

  /** @param metadata how the participant reaches the store. @default as it is */
  participant(subscription: TestSubscription, metadata = this.metadata): Participant {
    const reported: Error[] = [];
    const owner = { topic: subscription.topic, subscription: subscription.subscription };
    const report = (error: Error): void => void reported.push(error);
    const store = new MetadataPendingAckStore(new TxnMetadataStore(metadata), owner, report);
    return { ...pendingAcksOf(subscription, { open: async () => store }, this.clock), store, reported };
  }

  /** A subscription that nobody had before. */
  async subscribed(entries: TestEntries = {}, metadata = this.metadata): Promise<Participant> {
    const participant = this.participant(new TestSubscription(SEGMENT, entries), metadata);
    await participant.acks.open();
    return participant;
  }

  /** The next process, with what the one before left. */
  async restarted({ subscription }: PendingWorld, metadata = this.metadata): Promise<Participant> {
    const participant = this.participant(subscription.restarted(), metadata);
    await participant.acks.open();
    return participant;
  }

  /** `position`, `position/indexes` or `…position` of what is recorded, by transaction. */
  async recorded(): Promise<string[]> {
    const ops = await this.records.acksOf(SEGMENT, 's');
    return ops.map(({ transaction, op }) => {
      const indexes = op.batch === null ? '' : `/${op.batch.indexes.join(',')} of ${op.batch.size}`;
      return `${transaction}: ${op.cumulative === true ? '…' : ''}${op.entryId}${indexes}`;
    });
  }
}

/** The same store, of which nobody hears anything. */
export function untold(metadata: MetadataStore): MetadataStore {
  return changed(metadata, { watch: async () => ({ close: () => undefined }) });
}

/** The same store, some calls of which do something else. */
export function changed(metadata: MetadataStore, change: Partial<MetadataStore>): MetadataStore {
  return new Proxy(metadata, {
    get: (store, name): unknown => {
      const value: unknown = name in change ? Reflect.get(change, name) : Reflect.get(store, name, store);
      return isFunction(value) ? value.bind(store) : value;
    },
  });
}

function isFunction(value: unknown): value is (...given: never[]) => unknown {
  return typeof value === 'function';
}
