// One subscription of one topic: its cursor, the rules of who may connect, and the way of an acknowledgement through
// cursor, dispatcher and store.
import { TransportError } from '../core/errors.js';
import type { SubscriptionType } from '../core/subscription-spec.js';
import type { Clock } from '../ports/clock.js';
import type { BrokerConsumer } from './broker-consumer.js';
import { noTransactions } from './broker-errors.js';
import type { ResolvedBrokerOptions } from './broker-options.js';
import type { BrokerStore, Stored } from './broker-store.js';
import { isDurable } from './broker-store.js';
import { Cursor } from './cursor.js';
import type { DispatchContext, Dispatcher, DispatcherStats } from './dispatcher.js';
import type { KeySharedSettings } from './key-selector.js';
import { keySelectorFor, keySharedConflict } from './key-selector.js';
import { KeySharedDispatcher } from './key-shared-dispatcher.js';
import { SharedDispatcher } from './shared-dispatcher.js';
import { SingleActiveDispatcher } from './single-active-dispatcher.js';
import type { TopicLog } from './topic-log.js';
import type { PendingAckStoreProvider } from './transactions/pending-ack-store.js';
import { SubscriptionAcks } from './transactions/subscription-acks.js';
import type { SubscriptionSteps } from './transactions/subscription-acks.js';
import type { TransactionBuffers } from './transactions/topic-transactions.js';
import type { Turn } from './turn.js';

/** Pulsar's names of the types, as its messages have them. */
const TYPE_NAMES: Readonly<Record<SubscriptionType, string>> = {
  exclusive: 'Exclusive',
  failover: 'Failover',
  shared: 'Shared',
  'key-shared': 'Key_Shared',
};

export interface TopicFacts {
  /** Full name, with its partition. */
  readonly name: string;
  readonly log: TopicLog;
  readonly clock: Clock;
  readonly options: ResolvedBrokerOptions;
  readonly store: BrokerStore;
  readonly turn: Turn;
  /** Non-persistent: nothing is kept, and what nobody can take at once is gone. */
  readonly isVolatile: boolean;
  /** Where acknowledgements in transactions are kept; undefined: there are none. */
  readonly pendingAcks: PendingAckStoreProvider | undefined;
  /** What keeps messages of transactions from readers; undefined: there are none. */
  readonly transactionBuffers?: TransactionBuffers | undefined;
  /** A mark-delete position moved past a ledger: it may be trimmed. */
  readonly passed: () => void;
}

/** The place of a message: an entry of the topic, and one message of a batch or -1. */
export interface MessagePlace {
  readonly position: number;
  readonly batchIndex: number;
}

export class TopicSubscription {
  readonly name: string;
  readonly cursor: Cursor;
  readonly #topic: TopicFacts;
  #dispatcher: Dispatcher | undefined;
  /** What is acknowledged in transactions that are open; undefined for as long as there was nothing. */
  #inTransactions: SubscriptionAcks | undefined;
  /** Of a topic that keeps nothing: runs behind the dispatcher, in each turn of the broker in which that runs. */
  readonly #dropper = { dispatch: () => this.#dropAll() };
  /** Its topic takes no more messages. */
  #terminated = false;

  constructor(name: string, topic: TopicFacts, markDelete: number) {
    this.name = name;
    this.#topic = topic;
    this.cursor = new Cursor(markDelete);
    if (topic.pendingAcks?.mayHold?.({ topic: topic.name, subscription: name }) !== false) this.#openAcks();
  }

  get type(): SubscriptionType | undefined {
    return this.#dispatcher?.type;
  }

  get consumers(): readonly BrokerConsumer[] {
    return this.#dispatcher?.consumers ?? [];
  }

  /** Entries that are not acknowledged; a batch counts as one, as in Pulsar's msgBacklog. */
  get backlog(): number {
    return this.#topic.log.end - 1 - this.cursor.markDelete - this.cursor.ackedBeyond;
  }

  get dispatcherStats(): DispatcherStats | undefined {
    return this.#dispatcher?.stats();
  }

  isActive(consumer: BrokerConsumer): boolean {
    return this.#dispatcher?.isActive(consumer) === true;
  }

  /** @throws TransportError CONSUMER_BUSY when the type or an exclusive consumer forbids it. */
  connect(type: SubscriptionType, consumer: BrokerConsumer): void {
    this.#checkCompatible(type, consumer);
    // A type, and on Key_Shared a mode, is that of the consumers: without any the next one decides (S-05).
    const known = this.consumers.length === 0 && type === 'key-shared' ? undefined : this.#dispatcher;
    const dispatcher = known?.type === type ? known : this.#newDispatcher(type, consumer.keyShared);
    dispatcher.add(consumer);
    this.#dispatcher = dispatcher;
    this.#inTransactions?.connecting();
    if (this.#terminated) this.#tellEnd();
  }

  disconnect(consumer: BrokerConsumer): void {
    consumer.connected = false;
    this.#dispatcher?.remove(consumer);
  }

  /**
   * Its topic leaves memory and comes back: everyone is disconnected, and only the cursor is still known. Of batches
   * not even that is: Pulsar 4.0.7 does not read back single indexes that it kept with the cursor's metadata.
   */
  unload(): void {
    this.#disconnectAll();
    // Where a receipt says that it is kept, it is.
    if (!isDurable(this.#topic.store)) this.cursor.forgetParts();
    this.#inTransactions?.reopen();
  }

  /** It is deleted: everyone is disconnected, and nothing stays pending. */
  remove(): void {
    this.#disconnectAll();
    this.#inTransactions?.remove();
  }

  /** Its topic takes no more messages: consumers hear of the end once all is acknowledged (G-13). */
  topicTerminated(): void {
    this.#terminated = true;
    this.#tellEnd();
  }

  /** Everything up to `position` counts as acknowledged, whoever holds it (S-29). */
  expireUpTo(position: number): void {
    void this.#acknowledgeEntriesUpTo(position);
  }

  /** There are no entries here, and never will be. */
  skip(positions: readonly number[]): void {
    for (const position of positions) this.cursor.acknowledge(position);
    this.#trim();
  }

  /** New entries came, or permits. */
  wake(): void {
    if (this.consumers.length > 0 && this.#dispatcher !== undefined) this.#schedule(this.#dispatcher);
    else if (this.#topic.isVolatile) this.#dropAll();
  }

  redeliver(consumer: BrokerConsumer, positions: Iterable<number>): void {
    this.#dispatcher?.redeliver(consumer, positions);
  }

  /** In one step: no entry is sent between what `nacked` holds back and what `returned` gives back (K-26). */
  negativeAcknowledgeOrdered(consumer: BrokerConsumer, nacked: Iterable<number>, returned: Iterable<number>): void {
    this.#dispatcher?.negativeAcknowledgeOrdered(consumer, nacked, returned);
  }

  /**
   * Acknowledging again is a silent no-op, but recorded again: that it was recorded before may have failed. An index of an
   * entry that is no batch means the entry. @param consumer undefined: a commit does.
   */
  acknowledge(consumer: BrokerConsumer | undefined, place: MessagePlace): Stored {
    const { position } = place;
    const batchSize = this.#topic.log.entryAt(position)?.batchSize ?? 0;
    const single = place.batchIndex >= 0 && place.batchIndex < batchSize;
    const effect = single
      ? this.cursor.acknowledgeIndex(position, place.batchIndex, batchSize)
      : this.cursor.acknowledge(position);
    if (effect === 'again') return this.#record(position, single ? place.batchIndex : -1, false);
    this.#inTransactions?.acknowledged(position, effect === 'partial' ? place.batchIndex : -1);
    if (effect === 'partial') this.#dispatcher?.acknowledgedOne(consumer, position);
    else this.#dispatcher?.acknowledged(consumer, position);
    const stored = this.#record(position, effect === 'partial' ? place.batchIndex : -1, false);
    this.#trim();
    return stored;
  }

  /** Everything up to and including this message; inside a batch, its indexes up to this one. */
  acknowledgeUpTo(consumer: BrokerConsumer | undefined, place: MessagePlace): Stored {
    const { position, batchIndex } = place;
    const batchSize = this.#topic.log.entryAt(position)?.batchSize ?? 0;
    if (batchIndex < 0 || batchIndex >= batchSize - 1) return this.#acknowledgeEntriesUpTo(position);
    const before = this.#acknowledgeEntriesUpTo(position - 1);
    const inside: Stored[] = [before];
    for (let index = 0; index <= batchIndex; index++) {
      inside.push(this.acknowledge(consumer, { position, batchIndex: index }));
    }
    return allStored(inside);
  }

  /**
   * In a transaction, which is named by its key: all of them or none, and they count once it is committed (T-10 to T-19).
   * @throws TransportError TRANSACTION_CONFLICT, TRANSACTION_ENDED; NOT_ALLOWED where there are no transactions.
   */
  async acknowledgeIn(transaction: string, places: readonly MessagePlace[]): Promise<void> {
    await this.#transactional().acknowledge(transaction, places);
  }

  /** The same of everything up to and including this message. @throws TransportError as `acknowledgeIn`. */
  async acknowledgeUpToIn(transaction: string, place: MessagePlace): Promise<void> {
    await this.#transactional().acknowledgeUpTo(transaction, place);
  }

  /** Waits for what is being acknowledged in transactions; what is open stays open. */
  async closeTransactions(): Promise<void> {
    await this.#inTransactions?.close();
  }

  /** From time to time a reason to look for transactions that have ended, if nobody told. */
  used(): void {
    this.#inTransactions?.used();
  }

  /** Disconnects consumers and starts over at this message: the broker sends it first (S-28). */
  seek({ position, batchIndex }: MessagePlace): void {
    const { log } = this.#topic;
    const disconnected = this.#dispatcher?.removeForSeek() ?? [];
    this.cursor.reset(Math.min(Math.max(position, log.first), log.end) - 1);
    const place = { topic: this.#topic.name, ...log.placeBefore(this.cursor.markDelete + 1) };
    this.#topic.store.changed?.({ kind: 'cursor', subscription: this.name, ...place });
    const batchSize = log.entryAt(position)?.batchSize ?? 0;
    // The messages of the batch before it count as acknowledged.
    if (batchIndex < batchSize) {
      for (let index = 0; index < batchIndex; index++) {
        this.cursor.acknowledgeIndex(position, index, batchSize);
        void this.#record(position, index, false);
      }
    }
    this.#dispatcher?.reset();
    this.#tellDisconnected(disconnected);
    this.#trim();
  }

  #tellDisconnected(consumers: readonly BrokerConsumer[]): void {
    for (const consumer of consumers) {
      consumer.connected = false;
      this.#topic.turn.later(() => consumer.sink.disconnected());
    }
  }

  #acknowledgeEntriesUpTo(position: number): Stored {
    const from = this.cursor.markDelete + 1;
    if (!this.cursor.acknowledgeUpTo(position)) return this.#record(position, -1, true);
    this.#inTransactions?.acknowledgedRange(from, this.cursor.markDelete);
    this.#dispatcher?.acknowledgedUpTo(from, position);
    const stored = this.#record(position, -1, true);
    this.#trim();
    return stored;
  }

  #disconnectAll(): void {
    const disconnected = this.#dispatcher?.removeAll() ?? [];
    this.#dispatcher = undefined;
    this.#tellDisconnected(disconnected);
  }

  #transactional(): SubscriptionAcks {
    const acks = this.#inTransactions ?? this.#openAcks();
    if (acks === undefined) throw noTransactions();
    acks.used();
    return acks;
  }

  #openAcks(): SubscriptionAcks | undefined {
    const { pendingAcks, isVolatile } = this.#topic;
    if (pendingAcks === undefined || isVolatile) return undefined;
    this.#inTransactions = new SubscriptionAcks(this.#topic, this.#transactionSteps(), pendingAcks);
    return this.#inTransactions;
  }

  #transactionSteps(): SubscriptionSteps {
    const { name, cursor } = this;
    return {
      name,
      cursor,
      left: (part) => this.#dispatcher?.left(part),
      acknowledge: (place) => this.acknowledge(undefined, place),
      acknowledgeUpTo: (place) => this.acknowledgeUpTo(undefined, place),
      redeliver: (positions) => this.#dispatcher?.freed(positions),
      ready: () => this.wake(),
      failed: () => this.#disconnectAll(),
    };
  }

  #record(position: number, batchIndex: number, cumulative: boolean): Stored {
    const { store, name: topic, log } = this.#topic;
    const ledger = log.ledgerOf(position);
    // What is trimmed was acknowledged, and that may be on its way to the disk.
    if (ledger === undefined) return isDurable(store) ? store.written() : undefined;
    const { id: ledgerId } = ledger;
    const entryId = position - ledger.first;
    return store.acknowledge({ topic, subscription: this.name, ledgerId, entryId, batchIndex, cumulative });
  }

  #tellEnd(): void {
    if (this.backlog > 0) return;
    for (const consumer of this.consumers) this.#topic.turn.later(() => consumer.sink.endOfTopic?.());
  }

  #trim(): void {
    if (this.#terminated) this.#tellEnd();
    if (this.cursor.place >= this.#topic.log.oldestLedgerEnd) this.#topic.passed();
  }

  #checkCompatible(type: SubscriptionType, { keyShared }: BrokerConsumer): void {
    const current = this.#dispatcher;
    if (current === undefined || current.consumers.length === 0) return;
    if (current.type !== type) {
      throw busy(
        `Subscription is of different type. Active subscription type of '${TYPE_NAMES[current.type]}' ` +
          `is different than the connecting consumer's type '${TYPE_NAMES[type]}'.`,
      );
    }
    if (type === 'exclusive') throw busy('Exclusive consumer is already connected');
    const problem = keySharedConflict(current.consumers[0]?.keyShared, keyShared);
    if (problem !== undefined) throw busy(problem);
  }

  #newDispatcher(type: SubscriptionType, keyShared: KeySharedSettings | undefined): Dispatcher {
    const { name: topic, log, clock, options, turn, isVolatile } = this.#topic;
    const context = {
      topic,
      log,
      clock,
      options,
      cursor: this.cursor,
      honoursDelays: !isVolatile,
      schedule: () => this.#schedule(dispatcher),
      later: (report: () => void) => turn.later(report),
      skip: (position: number) => this.skip([position]),
      withholds: (position: number) => this.#inTransactions?.withholds(position) === true,
      unackedOf: (position: number) => (this.#inTransactions ?? this.cursor).unackedOf(position),
    };
    const dispatcher = dispatcherFor(type, context, keyShared);
    return dispatcher;
  }

  #schedule(dispatcher: Dispatcher): void {
    const { turn, isVolatile } = this.#topic;
    if (this.#inTransactions?.isReady === false) return;
    turn.schedule(dispatcher);
    if (isVolatile) turn.schedule(this.#dropper);
  }

  /** What was sent is not waited for, and what was not is gone. */
  #dropAll(): void {
    void this.#acknowledgeEntriesUpTo(this.#topic.log.end - 1);
  }
}

/** Undefined when all are stored already. */
export function allStored(all: readonly Stored[]): Stored {
  if (all.length === 0) return undefined;
  const open = all.filter((stored) => stored !== undefined);
  return open.length === 0 ? undefined : Promise.all(open).then(() => undefined);
}

function dispatcherFor(
  type: SubscriptionType,
  context: DispatchContext,
  keyShared: KeySharedSettings | undefined,
): Dispatcher {
  switch (type) {
    case 'shared':
      return new SharedDispatcher(context);
    case 'key-shared': {
      const isSticky = keyShared?.stickyRanges !== undefined;
      const selector = keySelectorFor<BrokerConsumer>(isSticky, context.options.keySharedConsistentHashing);
      return new KeySharedDispatcher(context, selector, keyShared?.allowOutOfOrder !== true);
    }
    case 'exclusive':
    case 'failover':
      return new SingleActiveDispatcher(type, context);
  }
}

function busy(message: string): TransportError {
  return new TransportError('CONSUMER_BUSY', message, { retriable: true });
}
