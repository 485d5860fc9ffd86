// One topic, or one partition of a partitioned topic: its log, its subscriptions and its producers.
import type { MessageId } from '../core/message-id.js';
import type { InitialPosition } from '../core/subscription-spec.js';
import { partitionOf } from '../core/topic-name.js';
import { notSupported, stillInUse, subscriptionNotFound, topicTerminated } from './broker-errors.js';
import type { BrokerProducer } from './broker-producer.js';
import type { Stored } from './broker-store.js';
import { isDurable } from './broker-store.js';
import type { StoredTopic } from '../ports/broker-store.js';
import { Deduplication } from './deduplication.js';
import type { Entry } from './entry.js';
import { gapsOf, restoreAcknowledged, restoredLedgers } from './restored-topic.js';
import { TopicLog } from './topic-log.js';
import { TopicProducers } from './topic-producers.js';
import type { TopicFacts } from './topic-subscription.js';
import { TopicSubscription } from './topic-subscription.js';
import { TopicTransactions } from './transactions/topic-transactions.js';
import { VOLATILE_OPTIONS, VOLATILE_PLACE, isVolatileName, volatileStore } from './volatile-topic.js';

export interface Appended {
  /** -1:-1 for a repetition, of which nothing is stored (S-44). */
  readonly id: MessageId;
  readonly stored: Stored;
}

export class BrokerTopic {
  readonly name: string;
  readonly partition: number;
  /** Non-persistent: nothing is kept, and what nobody can take at once is gone. */
  readonly isVolatile: boolean;
  readonly log: TopicLog;
  readonly producers: TopicProducers;
  readonly transactions: TopicTransactions;
  readonly #facts: TopicFacts;
  readonly #subscriptions = new Map<string, TopicSubscription>();
  readonly #deduplication: Deduplication | undefined;
  #messagesIn = 0;
  #terminated = false;

  constructor(facts: Omit<TopicFacts, 'log' | 'passed' | 'isVolatile'>, nextLedgerId: () => number) {
    const { name, clock } = facts;
    this.name = name;
    this.partition = partitionOf(name);
    this.isVolatile = isVolatileName(name);
    const options = this.isVolatile ? { ...facts.options, ...VOLATILE_OPTIONS } : facts.options;
    this.log = new TopicLog({ entries: options.maxLedgerEntries, bytes: options.maxLedgerBytes }, nextLedgerId);
    this.producers = new TopicProducers(name);
    this.#deduplication = options.deduplication
      ? new Deduplication(clock, (producerName) =>
          this.#facts.store.changed?.({ kind: 'producer-forgotten', topic: name, producerName }),
        )
      : undefined;
    const store = this.isVolatile ? volatileStore(facts.store) : facts.store;
    const { isVolatile, log } = this;
    this.#facts = { ...facts, options, store, isVolatile, log, passed: () => this.#passed() };
    const readable = (): void => this.#wake();
    const dropped = (positions: readonly number[]): void => this.#dropped(positions);
    const written = (): Stored => (isDurable(store) ? store.written() : undefined);
    const buffered = { name, log, clock, written, readable, dropped };
    this.transactions = new TopicTransactions(buffered, isVolatile, facts.transactionBuffers);
  }

  /** What an earlier broker kept of it. Comes first. */
  restore({ ledgers, subscriptions, sequenceIds, isTerminated }: StoredTopic): void {
    this.log.restore(restoredLedgers(ledgers));
    this.#deduplication?.restore(sequenceIds);
    this.#terminated = isTerminated;
    const gaps = gapsOf(ledgers);
    for (const stored of subscriptions) {
      const markDelete = this.log.lastPositionUpTo(stored.ledgerId, stored.entryId);
      const made = this.#makeSubscription(stored.name, markDelete);
      restoreAcknowledged(made.cursor, this.log, stored);
      for (const position of gaps) made.cursor.acknowledge(position);
    }
    const entries = ledgers.flatMap((ledger) => ledger.entries);
    for (const entry of entries) this.#messagesIn += entry?.messages.length ?? 0;
    if (entries.some((entry) => entry?.transaction !== undefined) || this.transactions.mayBeLeft)
      this.transactions.load();
    this.#trim();
  }

  get subscriptions(): ReadonlyMap<string, TopicSubscription> {
    return this.#subscriptions;
  }

  /** Messages stored since the topic exists. */
  get messagesIn(): number {
    return this.#messagesIn;
  }

  get isTerminated(): boolean {
    return this.#terminated;
  }

  /** Consumers and producers that are connected; as on Pulsar those in line do not count. */
  get clients(): number {
    let clients = this.producers.live.length;
    for (const { consumers } of this.#subscriptions.values()) clients += consumers.length;
    return clients;
  }

  /**
   * Appends an entry. It is readable, and its receipt given, once the store has it.
   * @throws TransportError TOPIC_TERMINATED; BROKER_ERROR while it cannot be told whether it is a repetition; TRANSACTION_ENDED
   *   where its transaction has not joined, see `transactions`.
   */
  append(entry: Entry): Appended {
    if (this.#terminated) throw topicTerminated(this.name);
    const { transaction } = entry;
    if (transaction !== undefined) this.transactions.checkJoined(transaction);
    if (this.#deduplication?.pushed(entry) === false) return this.#repetition(entry);
    const position = this.log.append(entry);
    const id = this.#idOf(position, entry.batchSize);
    const stored = this.#facts.store.append(id, entry, this.#deduplication?.highestSequenceId(entry));
    if (stored === undefined) {
      if (transaction !== undefined) this.transactions.appended(transaction, position, stored);
      this.#appended(position, entry);
      return { id, stored };
    }
    const confirmed = stored.then(
      () => this.#appended(position, entry),
      (error: unknown) => {
        this.log.confirm(position, false);
        this.#deduplication?.failed(entry);
        throw error;
      },
    );
    if (transaction !== undefined) this.transactions.appended(transaction, position, confirmed);
    return { id, stored: confirmed };
  }

  /** The subscription of this name, created at `initialPosition` when there is none (S-27). */
  subscription(name: string, initialPosition: InitialPosition): TopicSubscription {
    const known = this.#subscriptions.get(name);
    if (known !== undefined) return known;
    const next = initialPosition === 'earliest' && !this.isVolatile ? this.log.first : this.log.end;
    const place = { topic: this.name, ...this.log.placeBefore(next) };
    this.#facts.store.changed?.({ kind: 'cursor', subscription: name, ...place });
    return this.#makeSubscription(name, next - 1);
  }

  /** @throws TransportError TOPIC_NOT_FOUND; NOT_ALLOWED, unless `force`, while consumers are connected. */
  checkDeletable(subscription: string, force: boolean): void {
    const known = this.#subscriptions.get(subscription);
    if (known === undefined) throw subscriptionNotFound(subscription, this.name);
    const { length } = known.consumers;
    if (length === 0 || force) return;
    const whose = `subscription "${subscription}" of topic "${this.name}"`;
    throw stillInUse(`${whose} has ${length} connected consumers; "force" disconnects them`);
  }

  /** Removes it, and whoever is connected: what was kept for it alone can go. */
  deleteSubscription(name: string): void {
    const subscription = this.#subscriptions.get(name);
    // Gone before anyone is told, so that who comes again makes it anew.
    this.#subscriptions.delete(name);
    this.#facts.store.changed?.({ kind: 'subscription-deleted', topic: this.name, subscription: name });
    subscription?.remove();
    this.#trim();
  }

  /**
   * Takes a producer, or puts it in line for the topic. @returns the highest sequence id that is known of its name, or -1.
   * @throws TransportError PRODUCER_BUSY, PRODUCER_FENCED, TOPIC_TERMINATED.
   */
  attach(producer: BrokerProducer): number {
    if (this.#terminated) throw topicTerminated(this.name);
    const before = this.#deduplication === undefined ? [] : this.producers.live;
    this.#tellDisconnected(this.producers.attach(producer));
    for (const { name } of before) if (!this.producers.has(name)) this.#deduplication?.producerLeft(name);
    this.#deduplication?.producerCame(producer.name);
    return this.#deduplication?.lastSequenceId(producer.name) ?? -1;
  }

  detach(producer: BrokerProducer): void {
    this.producers.detach(producer);
    // One that only waited may have the name of one that is still there.
    if (!this.producers.has(producer.name)) this.#deduplication?.producerLeft(producer.name);
  }

  /** Takes no more messages (G-13). Doing it again changes nothing. @returns the last message; undefined when it has none. */
  terminate(): MessageId | undefined {
    if (this.isVolatile) throw notSupported(`"${this.name}" is not persistent, it cannot be terminated`);
    this.#terminated = true;
    this.#facts.store.changed?.({ kind: 'topic-terminated', topic: this.name });
    for (const subscription of this.#subscriptions.values()) subscription.topicTerminated();
    return this.#lastMessage();
  }

  /**
   * What was published before `timeMs` counts as acknowledged, in all subscriptions or in one (S-29).
   * @throws TransportError TOPIC_NOT_FOUND for a subscription that is not there.
   */
  expire(timeMs: number, only?: string): void {
    if (only !== undefined && !this.#subscriptions.has(only)) throw subscriptionNotFound(only, this.name);
    if (this.#subscriptions.size === 0) return;
    // What a transaction keeps from readers stays for them.
    const last = Math.min(this.log.positionAt(timeMs), this.log.readEnd) - 1;
    for (const [name, subscription] of this.#subscriptions) {
      if (only === undefined || name === only) subscription.expireUpTo(last);
    }
  }

  /**
   * All consumers are disconnected, what is published from now on goes to a new ledger. Ledgers that everyone has passed go,
   * the newest as well; nothing else that is stored is lost.
   */
  unload(): void {
    for (const subscription of this.#subscriptions.values()) subscription.unload();
    if (this.isVolatile) this.#subscriptions.clear();
    this.transactions.unload();
    this.log.seal();
    this.#trim();
  }

  /** It is deleted: whoever is connected is disconnected and told so. */
  disconnectAll(): void {
    for (const subscription of this.#subscriptions.values()) subscription.remove();
    this.transactions.remove();
    this.#tellDisconnected(this.producers.disconnectAll());
  }

  #makeSubscription(name: string, markDelete: number): TopicSubscription {
    const made = new TopicSubscription(name, this.#facts, markDelete);
    if (this.#terminated) made.topicTerminated();
    this.#subscriptions.set(name, made);
    return made;
  }

  /** Waits for what its transactions are doing; what is open stays open. */
  async closeTransactions(): Promise<void> {
    const closing = [...this.#subscriptions.values()].map((subscription) => subscription.closeTransactions());
    await Promise.all([this.transactions.close(), ...closing]);
  }

  #tellDisconnected(producers: readonly BrokerProducer[]): void {
    for (const producer of producers) this.#facts.turn.later(() => producer.tellDisconnected());
  }

  /** Where the store refused an entry there is none. */
  #lastMessage(): MessageId | undefined {
    for (let position = this.log.end - 1; position >= this.log.first; position--) {
      const entry = this.log.entryAt(position);
      if (entry !== undefined) return this.#idOf(position, entry.batchSize);
    }
    return undefined;
  }

  #repetition({ batchSize }: Entry): Appended {
    const { partition, name: topic } = this;
    return { id: { ledgerId: -1, entryId: -1, partition, batchIndex: -1, batchSize, topic }, stored: undefined };
  }

  #appended(position: number, entry: Entry): void {
    this.log.confirm(position, true);
    this.#deduplication?.stored(entry);
    this.#messagesIn += entry.messageCount;
    this.#wake();
    if (this.#subscriptions.size === 0) this.#trim();
  }

  #wake(): void {
    for (const subscription of this.#subscriptions.values()) subscription.wake();
  }

  /** Their transaction was aborted (T-07). */
  #dropped(positions: readonly number[]): void {
    for (const position of positions) this.log.remove(position);
    for (const subscription of this.#subscriptions.values()) subscription.skip(positions);
  }

  /** Brokers look for ledgers to remove when the slowest cursor comes into another ledger, not before (S-25). */
  #passed(): void {
    for (const { cursor } of this.#subscriptions.values()) if (cursor.place < this.log.oldestLedgerEnd) return;
    this.#trim();
  }

  #trim(): void {
    let passed = this.log.end;
    for (const { cursor } of this.#subscriptions.values()) passed = Math.min(passed, cursor.markDelete + 1);
    const { firstLedgerId: before } = this.log;
    this.log.trim(passed);
    const { firstLedgerId } = this.log;
    if (firstLedgerId !== before) this.#facts.store.changed?.({ kind: 'trimmed', topic: this.name, firstLedgerId });
    this.transactions.trimmed();
  }

  #idOf(position: number, batchSize: number): MessageId {
    const ledger = this.log.ledgerOf(position);
    const entryId = position - (ledger?.first ?? 0);
    const { partition, name: topic } = this;
    if (this.isVolatile) return { ...VOLATILE_PLACE, partition, batchIndex: -1, batchSize, topic };
    return { ledgerId: ledger?.id ?? -1, entryId, partition, batchIndex: -1, batchSize, topic };
  }
}
