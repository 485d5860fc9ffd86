// A broker whose pending acknowledgements are in a metadata store, and what clients do in transactions there.
import { MetadataPendingAckStore } from '../../../../src/broker/transactions/metadata-pending-ack-store.js';
import type { PendingAckStoreProvider } from '../../../../src/broker/transactions/pending-ack-store.js';
import type { EmbeddedBrokerOptions } from '../../../../src/broker/embedded-broker.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import type { TestClient } from '../broker-kit.js';
import { TestBroker } from '../broker-kit.js';
import { A, B } from './pending-ack-kit.js';
import { SegmentWorld } from './segment-world.js';

export interface World {
  readonly broker: TestBroker;
  readonly segment: SegmentWorld;
  readonly end: (transaction: string, end: 'COMMITTED' | 'ABORTED') => Promise<void>;
}

/** Topics whose pending acknowledgements are in a metadata store, whatever they are called. */
export async function worldWith(options: Partial<EmbeddedBrokerOptions> = {}): Promise<World> {
  const segment = await SegmentWorld.with(A, B);
  const report = (error: Error): never => {
    throw error;
  };
  const pendingAcks: PendingAckStoreProvider = {
    open: async (owner) => new MetadataPendingAckStore(segment.records, owner, report),
  };
  return {
    broker: new TestBroker({ pendingAcks, ...options }),
    segment,
    end: async (transaction, end) => {
      await segment.end(transaction, end);
      await settlePromises();
    },
  };
}

export async function ackIn(transaction: string, client: TestClient, ...texts: string[]): Promise<void> {
  await client.handle.acknowledgeIn(
    transaction,
    texts.map((text) => client.id(text)),
  );
  await settlePromises();
}
