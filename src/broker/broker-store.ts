// The store of a broker that needs none, and how one that outlives its process is known. The seam itself is a port.
import type { BrokerStore, DurableBrokerStore } from '../ports/broker-store.js';

export type {
  AcknowledgementRecord,
  BrokerStore,
  DurableBrokerStore,
  EntryAddress,
  Stored,
} from '../ports/broker-store.js';

/** All is stored at once. */
export const memoryStore: BrokerStore = {
  append: () => undefined,
  acknowledge: () => undefined,
};

export function isDurable(store: BrokerStore): store is DurableBrokerStore {
  return 'open' in store;
}
