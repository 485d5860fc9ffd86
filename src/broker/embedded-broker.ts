// The embedded Pulsar broker: topics and partitions in this process, on a clock that is passed in. Everything that
// happens follows from calls and timers in their order, so a test with a FakeClock always sees the same.
import type { EncodedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import type { StoredBroker } from '../ports/broker-store.js';
import type { Clock } from '../ports/clock.js';
import { notSupported, producerBusy } from './broker-errors.js';
import type { ConsumerSink } from './broker-consumer.js';
import { BrokerConsumer } from './broker-consumer.js';
import type { ConnectionPlace, InjectedFaults } from './broker-faults.js';
import { BrokerFaults } from './broker-faults.js';
import type { BrokerOptions, ResolvedBrokerOptions } from './broker-options.js';
import { checkParts, resolveBrokerOptions } from './broker-options.js';
import { BrokerProducer } from './broker-producer.js';
import type { ConsumerRequest, ForceOption, ProducerRequest } from './broker-requests.js';
import {
  checkConsumerRequest,
  checkExpiry,
  checkForce,
  checkOrigin,
  checkPartitions,
  checkProducerRequest,
  checkSubscriptionName,
} from './broker-requests.js';
import { BrokerLife } from './broker-life.js';
import type { BrokerStore, Stored } from './broker-store.js';
import { isDurable, memoryStore } from './broker-store.js';
import { BrokerTopic } from './broker-topic.js';
import { ConsumerHandle } from './consumer-handle.js';
import type { EntryOrigin } from './entry.js';
import { EntryMaker } from './entry-maker.js';
import type { FaultOptions } from './fault-options.js';
import { ConsumerConnection } from './consumer-connection.js';
import { LedgerIds } from './ledger-ids.js';
import { startMessageExpiry } from './message-expiry.js';
import { ProducerHandle } from './producer-handle.js';
import { TopicRegistry } from './topic-registry.js';
import type { TopicsChanged } from './topic-registry.js';
import type { TopicStats } from './topic-stats.js';
import { topicStats } from './topic-stats.js';
import { BrokerTransactions } from './transactions/broker-transactions.js';
import type { BrokerTransactionOptions } from './transactions/broker-transactions.js';
import type { PendingAckStoreProvider } from './transactions/pending-ack-store.js';
import { Turn } from './turn.js';
import { isVolatileName, placeless } from './volatile-topic.js';

export interface EmbeddedBrokerOptions extends BrokerOptions {
  readonly clock: Clock;
  /** Where topics are kept beyond memory. One that is durable, as `sqliteStore()`, needs `open()` and `close()`. @default memory alone */
  readonly store?: BrokerStore | undefined;
  /** Where what is to be known of them is kept. @default the `metadata` of a durable store; else there are no transactions */
  readonly transactions?: BrokerTransactionOptions | undefined;
  /** Only for acknowledgements in transactions that somebody else coordinates. @default those of `transactions` */
  readonly pendingAcks?: PendingAckStoreProvider | undefined;
}

export class EmbeddedBroker {
  readonly options: ResolvedBrokerOptions;
  readonly clock: Clock;
  readonly #store: BrokerStore;
  /** Undefined where there are none. */
  readonly transactions: BrokerTransactions | undefined;
  readonly #pendingAcks: PendingAckStoreProvider | undefined;
  /** One broker at a time has what it keeps, and with it what is known of transactions: those of earlier ones are nobody's. */
  readonly #isAlone: boolean;
  readonly #turn = new Turn();
  readonly #faults = new BrokerFaults();
  readonly #entries: EntryMaker;
  readonly #registry: TopicRegistry;
  readonly #life: BrokerLife;
  readonly #ledgerIds: LedgerIds;
  #lastProducerId = 0;
  #ownProducerName = 'embedded-broker';
  #lastSequenceId = -1;

  /** @throws ConfigurationError */
  constructor(options: EmbeddedBrokerOptions) {
    this.options = resolveBrokerOptions(options, (check) => checkParts(options, check));
    this.clock = options.clock;
    this.#ledgerIds = new LedgerIds(this.clock.now());
    this.#store = options.store ?? memoryStore;
    const metadata = isDurable(this.#store) ? this.#store.metadata : undefined;
    const transactions = options.transactions ?? (metadata && { store: metadata });
    this.#isAlone = transactions?.store === metadata;
    this.transactions = transactions && new BrokerTransactions(transactions, this.clock);
    this.#pendingAcks = options.pendingAcks ?? this.transactions?.pendingAcks;
    this.#entries = new EntryMaker(this.options, this.clock);
    const later = (report: () => void): void => this.#turn.later(report);
    this.#life = new BrokerLife(this.#store, {
      // Which topics something of a transaction was left on is to be known before these come.
      open: async ({ topics }) => this.transactions?.open(this.#isAlone ? topics : undefined),
      restore: (stored) => this.#restore(stored),
      close: () => this.#closeTransactions(),
    });
    this.#registry = new TopicRegistry({
      make: (name) => this.#makeTopic(name),
      later,
      changed: (change) => this.#life.changed(change),
    });
    startMessageExpiry(this.clock, this.options.messageTtlMs, () => this.#registry.all());
  }

  /** False while what a durable store keeps is not known yet, and once it is closed: then nothing else can be done. */
  get isOpen(): boolean {
    return this.#life.isOpen;
  }

  /**
   * Gets from a durable store what the last broker left. `embedded()` does so by itself. More calls than one are allowed.
   * @throws what the store's `open` does, such as PulseworkError STORE_LOCKED; TransportError ALREADY_CLOSED.
   */
  open(): Promise<void> {
    return this.#life.open();
  }

  /** Once all that was done so far, also by the calls that give no promise, would survive; undefined when it would already. */
  written(): Stored {
    return this.#life.written();
  }

  /** Waits for what is being stored, and lets go of a durable store. More calls than one are allowed. */
  close(): Promise<void> {
    return this.#life.close();
  }

  /** Short or full name. @throws TransportError NOT_SUPPORTED when the topic exists. */
  createPartitionedTopic(name: string, partitions: number): void {
    checkPartitions('createPartitionedTopic', partitions);
    this.#topics.createPartitioned(this.fullName(name), partitions);
  }

  /**
   * Gives a partitioned topic more partitions; as many as it has change nothing. New ones have the subscriptions of the
   * first one, from their first message on. Publishers and subscriptions of clients take them within 60 s (S-43); a key may
   * go to another partition from then on. @throws TransportError NOT_SUPPORTED for less, or without partitions.
   */
  growPartitions(name: string, partitions: number): void {
    checkPartitions('growPartitions', partitions);
    this.#topics.grow(this.fullName(name), partitions);
  }

  /** The full name that a short one stands for. @throws PulseworkError TOPIC_NAME_INVALID. */
  fullName(name: string): string {
    return this.#registry.fullName(name);
  }

  /** Full names of all topics; partitions one by one. */
  topics(): readonly string[] {
    return this.#topics.names();
  }

  /** Whether a topic, or a partition, exists; a partitioned topic itself does not count. */
  hasTopic(name: string): boolean {
    return this.#topics.has(this.fullName(name));
  }

  /** Calls `changed` soon after topics came or went. @returns ends it. */
  watchTopics(changed: TopicsChanged): () => void {
    return this.#topics.watch(changed);
  }

  /** The partitions of a topic, or the topic itself when it has none; created when it does not exist. */
  partitionsOf(name: string): readonly string[] {
    const full = this.fullName(name);
    if (this.#topics.partitions(full) === 0) this.#topics.open(full);
    return this.#topics.parts(full);
  }

  /** How many partitions a topic has; 0 for one without, and for one that does not exist. */
  partitionCount(name: string): number {
    return this.#topics.partitions(this.fullName(name));
  }

  /**
   * Deletes a topic, partitions included, with its subscriptions and all that they have not acknowledged. Whoever is
   * disconnected by it and connects again makes it anew, partitions one by one as topics without a parent.
   * @throws TransportError TOPIC_NOT_FOUND; NOT_ALLOWED while consumers or producers are connected, unless `force`.
   */
  deleteTopic(name: string, options: ForceOption = {}): void {
    checkForce('deleteTopic', options);
    this.#topics.delete(this.fullName(name), options.force === true);
  }

  /**
   * The topic takes no more messages, for good: publishes fail with TOPIC_TERMINATED, and consumers are told of its end once
   * all is acknowledged (G-13). Doing it again changes nothing.
   * @returns the last message by full name, with its partition; undefined where it has none.
   * @throws TransportError TOPIC_NOT_FOUND.
   */
  terminate(name: string): ReadonlyMap<string, MessageId | undefined> {
    const topics = this.#topics.loaded(this.fullName(name));
    return new Map(topics.map((topic) => [topic.name, topic.terminate()]));
  }

  /**
   * Stores one message without a producer, whose rules it need not keep; on a partitioned topic by its key, else in turn.
   * Resolves with the receipt, -1:-1 for a repetition by `origin` where the broker deduplicates (S-44).
   * @throws ConfigurationError for what is no message; TransportError MESSAGE_TOO_LARGE, NOT_SUPPORTED, TOPIC_TERMINATED, NOT_ALLOWED, PRODUCER_BUSY
   *   while a producer has the topic for itself; PulseworkError TOPIC_NAME_INVALID.
   */
  async publish(topic: string, message: EncodedMessage, origin?: EntryOrigin): Promise<MessageId> {
    const copy = this.#entries.message(message);
    if (origin !== undefined) checkOrigin(origin);
    const target = this.#route(topic, copy);
    const { id, stored } = target.append(this.#entries.single(copy, target.name, origin ?? this.#ownOrigin()));
    if (stored !== undefined) await stored;
    return id;
  }

  /**
   * Stores a producer batch: one entry, routed and hashed by its first message (K-01). Delayed messages are refused (Y-01).
   * Its messages have consecutive sequence ids from that of `origin` on.
   */
  async publishBatch(
    topic: string,
    messages: readonly EncodedMessage[],
    origin?: EntryOrigin,
  ): Promise<readonly MessageId[]> {
    const copies = this.#entries.batch(messages);
    if (origin !== undefined) checkOrigin(origin);
    const [first] = copies;
    const target = this.#route(topic, first as EncodedMessage);
    const { id, stored } = target.append(
      this.#entries.batched(copies, target.name, origin ?? this.#ownOrigin(copies.length)),
    );
    if (stored !== undefined) await stored;
    return copies.map((_, batchIndex) => ({ ...id, batchIndex }));
  }

  /**
   * Connects a consumer to one topic or partition. Nothing is sent before it grants permits.
   * @throws TransportError CONSUMER_BUSY, TOPIC_NOT_FOUND; ConfigurationError.
   */
  subscribe(request: ConsumerRequest, sink: ConsumerSink): ConsumerHandle {
    checkConsumerRequest(request, sink);
    const topic = this.#single(request.topic, 'subscribe');
    const subscription = topic.subscription(request.subscription, request.initialPosition);
    const single = request.type === 'exclusive' || request.type === 'failover';
    const maxUnacked = single ? Infinity : this.options.maxUnackedPerConsumer;
    const { consumerName: name, priority = 0, type, stickyRanges, allowOutOfOrder = false } = request;
    const keyShared = type === 'key-shared' ? { stickyRanges, allowOutOfOrder } : undefined;
    const facts = { name, priority, maxUnacked, keyShared, nowMs: this.clock.now() };
    const connection = this.#connection(topic.isVolatile ? placeless(sink) : sink, {
      topic: topic.name,
      subscription: request.subscription,
    });
    const consumer = new BrokerConsumer(facts, connection);
    subscription.connect(request.type, consumer);
    connection.opened(consumer, () => subscription.disconnect(consumer));
    return new ConsumerHandle(topic, subscription, consumer, connection);
  }

  /**
   * Connects a producer to one topic or partition. With `wait-for-exclusive` it may have to wait: see
   * `ProducerHandle.admitted`. @param disconnected called when the broker closed it and it may connect again.
   * @throws TransportError PRODUCER_BUSY when the name is taken or somebody has the topic for itself, PRODUCER_FENCED when
   *   `exclusive` finds others, TOPIC_TERMINATED, TOPIC_NOT_FOUND; ConfigurationError.
   */
  producer(request: ProducerRequest, disconnected: () => void = () => undefined): ProducerHandle {
    checkProducerRequest(request, disconnected);
    const topic = this.#single(request.topic, 'publish');
    const { producerName: name = this.newProducerName(), accessMode = 'shared' } = request;
    const producer = new BrokerProducer({ name, accessMode, disconnected });
    const lastSequenceId = topic.attach(producer);
    return new ProducerHandle({ topic, producer, lastSequenceId, entries: this.#entries, faults: this.#faults });
  }

  /**
   * A subscription that begins at the earliest message, on each partition; one that is there already stays as it is.
   * The topic is created when it does not exist. @throws TransportError NOT_SUPPORTED where nothing is kept for one.
   */
  createSubscription(name: string, subscription: string): void {
    checkSubscriptionName('createSubscription', subscription);
    const full = this.fullName(name);
    if (isVolatileName(full)) throw notSupported(`"${full}" is not persistent and keeps nothing for a subscription`);
    for (const partition of this.partitionsOf(name))
      this.#topics.open(partition).subscription(subscription, 'earliest');
  }

  /**
   * Deletes a subscription, on each partition. Whoever is disconnected by it and subscribes again makes it anew, where its
   * `initialPosition` says. @throws TransportError TOPIC_NOT_FOUND, also for the subscription; NOT_ALLOWED while consumers
   *   are connected, unless `force`.
   */
  deleteSubscription(name: string, subscription: string, options: ForceOption = {}): void {
    checkForce('deleteSubscription', options);
    const force = options.force === true;
    const topics = this.#topics.loaded(this.fullName(name));
    for (const topic of topics) topic.checkDeletable(subscription, force);
    for (const topic of topics) topic.deleteSubscription(subscription);
  }

  /**
   * What was published longer ago than `olderThanMs` counts as acknowledged in this subscription, whoever holds it, as when
   * its time to live is over (S-29); on each partition. @throws TransportError TOPIC_NOT_FOUND, also for the subscription.
   */
  expireMessages(name: string, subscription: string, olderThanMs: number): void {
    checkExpiry(subscription, olderThanMs);
    const topics = this.#topics.loaded(this.fullName(name));
    for (const topic of topics) topic.expire(this.clock.now() - olderThanMs, subscription);
  }

  /**
   * Unloads the topic, or all its partitions, and loads it again, as brokers do when they balance their load: consumers
   * are disconnected and may subscribe again, what they held comes again uncounted, redelivery counts begin anew.
   * Entries, delivery times and acknowledgements stay, but those of single messages of a batch; producers go on, those in
   * line for a topic keep their place (G-14). @throws TransportError TOPIC_NOT_FOUND.
   */
  unload(name: string): void {
    for (const topic of this.#topics.loaded(this.fullName(name))) topic.unload();
  }

  /** The broker stops and comes back: what an unload does, to all topics at once. */
  restart(): void {
    for (const topic of this.#topics.all()) topic.unload();
  }

  /**
   * Makes things go wrong on purpose, for tests: what is delivered, acknowledged and published from now on. Nothing stored
   * is ever lost. Several injections add up. @throws ConfigurationError.
   */
  inject(faults: FaultOptions): InjectedFaults {
    return this.#faults.inject(faults, (name) => this.fullName(name));
  }

  /** @throws TransportError TOPIC_NOT_FOUND. */
  stats(name: string): TopicStats {
    const full = this.fullName(name);
    return topicStats(full, this.#topics.partitions(full), this.#topics.loaded(full), this.clock.now());
  }

  /** A producer name that no other producer of this broker has. */
  newProducerName(): string {
    this.#lastProducerId += 1;
    return `embedded-${this.#lastProducerId}`;
  }

  get #topics(): TopicRegistry {
    if (!this.#life.isOpen) this.#life.check();
    return this.#registry;
  }

  #restore(stored: StoredBroker): void {
    this.#ledgerIds.begunUpTo(stored.lastLedgerId);
    // Names of an earlier broker must not come again: their sequence ids would be known, and its chunks be taken for parts.
    this.#lastProducerId = this.#ledgerIds.next();
    this.#ownProducerName = `embedded-broker-${this.#lastProducerId}`;
    this.#registry.restore(stored);
  }

  async #closeTransactions(): Promise<void> {
    if (this.transactions === undefined) return;
    await Promise.all([...this.#registry.all()].map((topic) => topic.closeTransactions()));
    await this.transactions.close();
  }

  #route(name: string, message: EncodedMessage): BrokerTopic {
    const topic = this.#topics.route(name, message);
    if (topic.producers.isExclusive) throw producerBusy(`topic "${topic.name}" has an existing exclusive producer`);
    return topic;
  }

  /** @throws TransportError NOT_SUPPORTED for a partitioned topic. */
  #single(name: string, call: string): BrokerTopic {
    const full = this.fullName(name);
    if (this.#topics.partitions(full) > 0) {
      throw notSupported(`topic "${full}" is partitioned: ${call} to its partitions`);
    }
    return this.#topics.open(full);
  }

  #makeTopic(name: string): BrokerTopic {
    const { clock, options } = this;
    const facts = { name, clock, options, store: this.#store, pendingAcks: this.#pendingAcks, turn: this.#turn };
    const { buffers: transactionBuffers } = this.transactions ?? {};
    return new BrokerTopic({ ...facts, transactionBuffers }, () => this.#ledgerIds.next());
  }

  #connection(sink: ConsumerSink, place: ConnectionPlace): ConsumerConnection {
    const later = (run: () => void): void => this.#turn.later(run);
    return new ConsumerConnection(sink, { place, faults: this.#faults, clock: this.clock, later });
  }

  #ownOrigin(messages = 1): EntryOrigin {
    const sequenceId = this.#lastSequenceId + 1;
    this.#lastSequenceId += messages;
    return { producerName: this.#ownProducerName, sequenceId };
  }
}
