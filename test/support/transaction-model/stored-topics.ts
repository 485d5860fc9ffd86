// What a broker store keeps beyond its process, in memory: as little as the port asks for, so that a broker that needs more is found.
import type {
  AcknowledgementRecord,
  BrokerChange,
  EntryAddress,
  StoredBroker,
  StoredEntry,
  StoredTopic,
} from '../../../src/ports/broker-store.js';

interface Place {
  readonly ledgerId: number;
  readonly entryId: number;
}

class KeptSubscription {
  upTo: Place;
  /** Of entries beyond it, by their place: whole, or which messages of a batch. */
  readonly #acknowledged = new Map<string, Place & { readonly indexes: Set<number> | undefined }>();

  constructor(upTo: Place) {
    this.upTo = upTo;
  }

  acknowledge({ ledgerId, entryId, batchIndex, cumulative }: AcknowledgementRecord): void {
    if (cumulative) {
      if (isBefore(this.upTo, { ledgerId, entryId })) this.upTo = { ledgerId, entryId };
      return;
    }
    const key = `${ledgerId}:${entryId}`;
    const known = this.#acknowledged.get(key);
    if (batchIndex < 0) this.#acknowledged.set(key, { ledgerId, entryId, indexes: undefined });
    else if (known === undefined) this.#acknowledged.set(key, { ledgerId, entryId, indexes: new Set([batchIndex]) });
    else known.indexes?.add(batchIndex);
  }

  stored(name: string): StoredTopic['subscriptions'][number] {
    const all = [...this.#acknowledged.values()];
    const parts = all.flatMap(({ indexes, ...place }) => (indexes ? [{ ...place, indexes: [...indexes] }] : []));
    return { name, ...this.upTo, acknowledged: all.filter(({ indexes }) => indexes === undefined), parts };
  }
}

class KeptTopic {
  isTerminated = false;
  readonly ledgers = new Map<number, (StoredEntry | undefined)[]>();
  readonly subscriptions = new Map<string, KeptSubscription>();

  stored(name: string): StoredTopic {
    const ledgers = [...this.ledgers].map(([id, entries]) => ({ id, entries: Array.from(entries) }));
    return {
      ...{ name, isTerminated: this.isTerminated, sequenceIds: new Map<string, number>() },
      ledgers: ledgers.sort((a, b) => a.id - b.id),
      subscriptions: [...this.subscriptions].map(([subscription, kept]) => kept.stored(subscription)),
    };
  }
}

export class StoredTopics {
  readonly #topics = new Map<string, KeptTopic>();
  #lastLedgerId = 0;

  hasLedger(topic: string, ledgerId: number): boolean {
    return this.#topics.get(topic)?.ledgers.has(ledgerId) === true;
  }

  read(): StoredBroker {
    return {
      lastLedgerId: this.#lastLedgerId,
      partitions: new Map(),
      topics: [...this.#topics].map(([name, topic]) => topic.stored(name)),
    };
  }

  append({ topic, ledgerId, entryId }: EntryAddress, entry: StoredEntry): void {
    this.#lastLedgerId = Math.max(this.#lastLedgerId, ledgerId);
    const ledgers = this.#topics.get(topic)?.ledgers;
    const entries = ledgers?.get(ledgerId) ?? [];
    entries[entryId] = entry;
    ledgers?.set(ledgerId, entries);
  }

  acknowledge(record: AcknowledgementRecord): void {
    this.#topics.get(record.topic)?.subscriptions.get(record.subscription)?.acknowledge(record);
  }

  change(change: BrokerChange): void {
    if (change.kind === 'topic-created') this.#topics.set(change.topic, new KeptTopic());
    else if (change.kind === 'topic-deleted') this.#topics.delete(change.topic);
    const topic = this.#topics.get(change.topic);
    if (topic !== undefined) changeTopic(topic, change);
  }
}

function changeTopic(topic: KeptTopic, change: BrokerChange): void {
  if (change.kind === 'topic-terminated') topic.isTerminated = true;
  else if (change.kind === 'cursor') topic.subscriptions.set(change.subscription, new KeptSubscription(change));
  else if (change.kind === 'subscription-deleted') topic.subscriptions.delete(change.subscription);
  else if (change.kind === 'trimmed')
    for (const id of topic.ledgers.keys()) if (id < change.firstLedgerId) topic.ledgers.delete(id);
}

function isBefore(place: Place, other: Place): boolean {
  return place.ledgerId < other.ledgerId || (place.ledgerId === other.ledgerId && place.entryId < other.entryId);
}
