// Which topics there are: their names, the partitioned ones and how many partitions those have, and who is told when
// topics come and go.
import type { EncodedMessage } from '../core/message.js';
import type { BrokerChange, StoredBroker } from '../ports/broker-store.js';
import { fullTopicName, partitionName, partitionOf, withoutPartition } from '../core/topic-name.js';
import { checkWatcher } from './broker-requests.js';
import { notSupported, stillInUse, topicNotFound } from './broker-errors.js';
import type { BrokerTopic } from './broker-topic.js';
import { partitionFor } from './routing.js';
import { formatSegmentTopicName, isSegmentTopic, parseSegmentTopicName } from './transactions/segment-topic-name.js';

interface PartitionedTopic {
  partitions: number;
  /** Counts messages without a key: they go to the partitions in turn. */
  turn: number;
}

/** Told, in the broker's own turn, the full names of topics that came or went; what there is now is to be asked. */
export type TopicsChanged = (names: readonly string[]) => void;

export interface TopicRegistryParts {
  readonly make: (name: string) => BrokerTopic;
  /** Runs it in the broker's next turn. */
  readonly later: (report: () => void) => void;
  /** For the store. */
  readonly changed: (change: BrokerChange) => void;
}

export class TopicRegistry {
  readonly #parts: TopicRegistryParts;
  readonly #topics = new Map<string, BrokerTopic>();
  readonly #partitioned = new Map<string, PartitionedTopic>();
  /**
   * Of topics that are there, by the names that messages are published under: parsing one for each message takes 0.3 to
   * 0.9 µs, up to half of what storing it takes. All are forgotten when a topic goes.
   */
  readonly #fullNames = new Map<string, string>();
  readonly #watchers = new Set<TopicsChanged>();
  /** Came or went since the watchers were told. */
  #changed: string[] = [];

  constructor(parts: TopicRegistryParts) {
    this.#parts = parts;
  }

  /** What an earlier broker kept. Comes first. */
  restore({ partitions, topics }: StoredBroker): void {
    for (const [full, count] of partitions) this.#partitioned.set(full, { partitions: count, turn: 0 });
    for (const stored of topics) {
      const topic = this.#parts.make(stored.name);
      topic.restore(stored);
      this.#topics.set(stored.name, topic);
    }
    // Those that keep nothing.
    for (const full of partitions.keys()) for (const name of this.parts(full)) this.open(name);
  }

  /** @throws PulseworkError TOPIC_NAME_INVALID. */
  fullName(name: string): string {
    const known = this.#fullNames.get(name);
    if (known !== undefined) return known;
    // A segment has one name, however its hashes were written (T-48).
    return isSegmentTopic(name) ? formatSegmentTopicName(parseSegmentTopicName(name)) : fullTopicName(name);
  }

  /** Full names, partitions one by one. */
  names(): readonly string[] {
    return [...this.#topics.keys()];
  }

  has(full: string): boolean {
    return this.#topics.has(full);
  }

  all(): Iterable<BrokerTopic> {
    return this.#topics.values();
  }

  /** The number of partitions; 0 for a topic without, and for one that does not exist. */
  partitions(full: string): number {
    return this.#partitioned.get(full)?.partitions ?? 0;
  }

  /** The partitions of a topic, or the topic itself when it has none. */
  parts(full: string): readonly string[] {
    const partitions = this.partitions(full);
    return partitions === 0 ? [full] : Array.from({ length: partitions }, (_, i) => partitionName(full, i));
  }

  /** @throws TransportError NOT_SUPPORTED when the topic exists. */
  createPartitioned(full: string, partitions: number): void {
    if (isSegmentTopic(full)) throw notSupported(`"${full}" is a segment, it cannot have partitions`);
    if (partitionOf(full) >= 0) throw notSupported(`"${full}" names a partition, it cannot have partitions itself`);
    if (this.#partitioned.has(full)) throw notSupported(`topic "${full}" exists already`);
    if (this.#topics.has(full))
      throw notSupported(`topic "${full}" exists already, without partitions; make it before anybody connects to it`);
    this.#partitioned.set(full, { partitions, turn: 0 });
    this.#parts.changed({ kind: 'partitions', topic: full, partitions });
    for (const name of this.parts(full)) this.open(name);
  }

  /** New partitions have the subscriptions of the first one. @throws TransportError NOT_SUPPORTED. */
  grow(full: string, partitions: number): void {
    const known = this.#partitioned.get(full);
    if (known === undefined)
      throw notSupported(`topic "${full}" ${this.#topics.has(full) ? 'is not partitioned' : 'does not exist'}`);
    const { partitions: before } = known;
    if (partitions < before) {
      throw notSupported(`topic "${full}" has ${before} partitions and cannot have less: ${partitions}`);
    }
    known.partitions = partitions;
    this.#parts.changed({ kind: 'partitions', topic: full, partitions });
    const subscriptions = [...this.open(partitionName(full, 0)).subscriptions.keys()];
    for (const name of this.parts(full).slice(before)) {
      const partition = this.open(name);
      for (const subscription of subscriptions) partition.subscription(subscription, 'earliest');
    }
  }

  /** Made when it does not exist. @throws TransportError TOPIC_NOT_FOUND for a partition beyond those there are. */
  open(full: string): BrokerTopic {
    const known = this.#topics.get(full);
    if (known !== undefined) return known;
    const parent = this.#partitioned.get(withoutPartition(full));
    if (parent !== undefined && partitionOf(full) >= parent.partitions) throw topicNotFound(full);
    const made = this.#parts.make(full);
    this.#topics.set(full, made);
    if (!made.isVolatile) this.#parts.changed({ kind: 'topic-created', topic: full });
    this.#tell(full);
    return made;
  }

  /** The topic, or its partitions. @throws TransportError TOPIC_NOT_FOUND. */
  loaded(full: string): readonly BrokerTopic[] {
    const topics = this.parts(full).map((name) => this.#topics.get(name));
    const found = topics.filter((topic) => topic !== undefined);
    if (found.length === 0) throw topicNotFound(full);
    return found;
  }

  /** Where a message, or a batch by its first message, goes. */
  route(name: string, message: EncodedMessage): BrokerTopic {
    const full = this.fullName(name);
    const topic = this.open(this.#partFor(full, message));
    if (!this.#fullNames.has(name)) this.#fullNames.set(name, full);
    return topic;
  }

  /** @throws TransportError TOPIC_NOT_FOUND; NOT_ALLOWED, unless `force`, while somebody is connected. */
  delete(full: string, force: boolean): void {
    const topics = this.loaded(full);
    const connected = topics.reduce((sum, topic) => sum + topic.clients, 0);
    if (connected > 0 && !force) {
      throw stillInUse(`topic "${full}" has ${connected} connected producers or consumers; "force" disconnects them`);
    }
    // Gone before anyone is told, so that who comes again makes it anew.
    this.#fullNames.clear();
    if (this.#partitioned.delete(full)) this.#parts.changed({ kind: 'partitions', topic: full, partitions: 0 });
    for (const { name, isVolatile } of topics) {
      this.#topics.delete(name);
      if (!isVolatile) this.#parts.changed({ kind: 'topic-deleted', topic: name });
    }
    for (const topic of topics) {
      topic.disconnectAll();
      this.#tell(topic.name);
    }
  }

  /** @returns ends it. */
  watch(changed: TopicsChanged): () => void {
    checkWatcher(changed);
    this.#watchers.add(changed);
    return () => this.#watchers.delete(changed);
  }

  #partFor(full: string, message: EncodedMessage): string {
    const partitioned = this.#partitioned.size === 0 ? undefined : this.#partitioned.get(full);
    if (partitioned === undefined) return full;
    const index = partitionFor(message, partitioned.partitions, partitioned.turn);
    if (message.key === undefined) partitioned.turn += 1;
    return partitionName(full, index);
  }

  #tell(name: string): void {
    if (this.#watchers.size === 0) return;
    if (this.#changed.push(name) > 1) return;
    this.#parts.later(() => {
      const names = this.#changed;
      this.#changed = [];
      for (const changed of [...this.#watchers]) changed(names);
    });
  }
}
