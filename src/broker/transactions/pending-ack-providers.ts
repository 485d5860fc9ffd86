// Where the pending acknowledgements of a subscription are kept: those of segments in the metadata store, all others in a
// log of their own (T-43). Who has something pending the metadata store knows of both.
import { LoggedPendingAckStore } from './logged-pending-ack-store.js';
import { MetadataPendingAckStore } from './metadata-pending-ack-store.js';
import type { PendingAckLogs } from './pending-ack-log.js';
import type { PendingAckOwner, PendingAckStore, PendingAckStoreProvider } from './pending-ack-store.js';
import { RegisteredPendingAckStore } from './registered-pending-ack-store.js';
import { isSegmentTopic } from './segment-topic-name.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';

export interface PendingAckPlaces {
  readonly records: TxnMetadataStore;
  readonly logs: PendingAckLogs;
  /** What failed and will be tried again at the next occasion. */
  readonly report: (error: Error) => void;
}

export class DispatchingPendingAckStoreProvider implements PendingAckStoreProvider {
  readonly #places: PendingAckPlaces;

  constructor(places: PendingAckPlaces) {
    this.#places = places;
  }

  async open(owner: PendingAckOwner): Promise<PendingAckStore> {
    const { records, logs, report } = this.#places;
    if (isSegmentTopic(owner.topic)) return new MetadataPendingAckStore(records, owner, report);
    const logged = new LoggedPendingAckStore(await logs.open(owner));
    return new RegisteredPendingAckStore(logged, records, owner, report);
  }
}
