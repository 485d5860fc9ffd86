// What an earlier broker left in the records of transactions for topics and subscriptions that are not there any more: it
// died while it removed them, and nobody would open them again.
import { removeRecordsOf } from './buffer-records.js';
import type { PendingAckStoreProvider } from './pending-ack-store.js';
import { allDone } from './transaction-ending.js';
import type { TxnMetadataStore } from './txn-metadata-store.js';
import { parseSegmentKey, parseSubscriptionKey, segmentKey, subscriptionKey } from './txn-paths.js';

/** A topic that is there, as its broker keeps it. */
export interface KeptTopic {
  /** Full, with its partition. */
  readonly name: string;
  readonly subscriptions: readonly { readonly name: string }[];
}

export interface LeftoverParts {
  readonly records: TxnMetadataStore;
  readonly provider: Pick<PendingAckStoreProvider, 'open'>;
  /** Keys of topics and of subscriptions that records are left of; what is removed goes from it. */
  readonly left: Set<string>;
}

/** @param kept everything that is there. Rejects where something may be left: then the next broker removes it. */
export async function removeLeftovers(
  { records, provider, left }: LeftoverParts,
  kept: readonly KeptTopic[],
): Promise<void> {
  const there = new Set<string>();
  for (const { name, subscriptions } of kept) {
    there.add(segmentKey(name));
    for (const subscription of subscriptions) there.add(subscriptionKey(name, subscription.name));
  }
  const gone = [...left].filter((key) => !there.has(key));
  await allDone(
    gone.map(async (key) => {
      const owner = parseSubscriptionKey(key);
      if (owner === undefined) await removeRecordsOf(parseSegmentKey(key), records);
      else await removeAcksOf(owner, provider);
      left.delete(key);
    }),
  );
}

async function removeAcksOf(
  owner: { readonly topic: string; readonly subscription: string },
  provider: LeftoverParts['provider'],
): Promise<void> {
  const store = await provider.open(owner);
  try {
    await store.removeAll();
  } finally {
    await store.close();
  }
}
