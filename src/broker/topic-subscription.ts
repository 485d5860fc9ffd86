// One subscription of one topic: its cursor, the rules of who may connect, and the way of an acknowledgement through
// cursor, dispatcher and store.
import { TransportError } from '../core/errors.js';
import type { SubscriptionType } from '../core/subscription-spec.js';
import type { Clock } from '../ports/clock.js';
import type { BrokerConsumer } from './broker-consumer.js';
import type { ResolvedBrokerOptions } from './broker-options.js';
import type { BrokerStore, Stored } from './broker-store.js';
import { Cursor } from './cursor.js';
import type { Dispatcher, DispatcherStats } from './dispatcher.js';
import { KeySharedDispatcher } from './key-shared-dispatcher.js';
import { SharedDispatcher } from './shared-dispatcher.js';
import { SingleActiveDispatcher } from './single-active-dispatcher.js';
import type { TopicLog } from './topic-log.js';
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

  constructor(name: string, topic: TopicFacts, markDelete: number) {
    this.name = name;
    this.#topic = topic;
    this.cursor = new Cursor(markDelete);
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
    this.#checkCompatible(type);
    if (this.#dispatcher?.type !== type) this.#dispatcher = this.#newDispatcher(type);
    this.#dispatcher.add(consumer);
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
    const disconnected = [...this.consumers];
    for (const consumer of disconnected) this.disconnect(consumer);
    this.#dispatcher = undefined;
    this.cursor.forgetParts();
    this.#tellDisconnected(disconnected);
  }

  /** New entries came, or permits. */
  wake(): void {
    if (this.consumers.length > 0 && this.#dispatcher !== undefined) this.#topic.turn.schedule(this.#dispatcher);
  }

  redeliver(consumer: BrokerConsumer, positions: Iterable<number>): void {
    this.#dispatcher?.redeliver(consumer, positions);
  }

  /** Acknowledging again is a silent no-op. An index of an entry that is no batch means the entry. */
  acknowledge(consumer: BrokerConsumer, place: MessagePlace): Stored {
    const { position } = place;
    const batchSize = this.#topic.log.entryAt(position)?.batchSize ?? 0;
    const single = place.batchIndex >= 0 && place.batchIndex < batchSize;
    const effect = single
      ? this.cursor.acknowledgeIndex(position, place.batchIndex, batchSize)
      : this.cursor.acknowledge(position);
    if (effect === 'again') return undefined;
    if (effect === 'partial') this.#dispatcher?.acknowledgedOne(consumer, position);
    else this.#dispatcher?.acknowledged(consumer, position);
    const stored = this.#record(position, effect === 'partial' ? place.batchIndex : -1, false);
    this.#trim();
    return stored;
  }

  /** Everything up to and including this message; inside a batch, its indexes up to this one. */
  acknowledgeUpTo(consumer: BrokerConsumer, place: MessagePlace): Stored {
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

  /** Disconnects consumers and starts over at this message: the broker sends it first (S-28). */
  seek({ position, batchIndex }: MessagePlace): void {
    const { log } = this.#topic;
    const disconnected = this.#dispatcher?.disconnectedBySeek ?? [];
    for (const consumer of disconnected) this.disconnect(consumer);
    this.cursor.reset(Math.min(Math.max(position, log.first), log.end) - 1);
    const batchSize = log.entryAt(position)?.batchSize ?? 0;
    // The messages of the batch before it count as acknowledged.
    if (batchIndex < batchSize) {
      for (let index = 0; index < batchIndex; index++) this.cursor.acknowledgeIndex(position, index, batchSize);
    }
    this.#dispatcher?.reset();
    this.#tellDisconnected(disconnected);
    this.#trim();
  }

  #tellDisconnected(consumers: readonly BrokerConsumer[]): void {
    for (const consumer of consumers) this.#topic.turn.later(() => consumer.sink.disconnected());
  }

  #acknowledgeEntriesUpTo(position: number): Stored {
    if (!this.cursor.acknowledgeUpTo(position)) return undefined;
    this.#dispatcher?.acknowledgedUpTo(position);
    const stored = this.#record(position, -1, true);
    this.#trim();
    return stored;
  }

  #record(position: number, batchIndex: number, cumulative: boolean): Stored {
    const { store, name: topic, log } = this.#topic;
    const ledger = log.ledgerOf(position);
    if (ledger === undefined) return undefined;
    const { id: ledgerId } = ledger;
    const entryId = position - ledger.first;
    return store.acknowledge({ topic, subscription: this.name, ledgerId, entryId, batchIndex, cumulative });
  }

  #trim(): void {
    if (this.cursor.markDelete + 1 >= this.#topic.log.oldestLedgerEnd) this.#topic.passed();
  }

  #checkCompatible(type: SubscriptionType): void {
    const current = this.#dispatcher;
    if (current === undefined || current.consumers.length === 0) return;
    if (current.type !== type) {
      throw busy(
        `Subscription is of different type. Active subscription type of '${TYPE_NAMES[current.type]}' ` +
          `is different than the connecting consumer's type '${TYPE_NAMES[type]}'.`,
      );
    }
    if (type === 'exclusive') throw busy('Exclusive consumer is already connected');
  }

  #newDispatcher(type: SubscriptionType): Dispatcher {
    const { name: topic, log, clock, options, turn } = this.#topic;
    const context = {
      topic,
      log,
      clock,
      options,
      cursor: this.cursor,
      schedule: () => turn.schedule(dispatcher),
      later: (report: () => void) => turn.later(report),
      skip: (position: number) => void this.cursor.acknowledge(position),
    };
    const dispatcher = dispatcherFor(type, context);
    return dispatcher;
  }
}

/** Undefined when all are stored already. */
export function allStored(all: readonly Stored[]): Stored {
  const open = all.filter((stored) => stored !== undefined);
  return open.length === 0 ? undefined : Promise.all(open).then(() => undefined);
}

function dispatcherFor(type: SubscriptionType, context: ConstructorParameters<typeof SharedDispatcher>[0]): Dispatcher {
  switch (type) {
    case 'shared':
      return new SharedDispatcher(context);
    case 'key-shared':
      return new KeySharedDispatcher(context);
    case 'exclusive':
    case 'failover':
      return new SingleActiveDispatcher(type, context);
  }
}

function busy(message: string): TransportError {
  return new TransportError('CONSUMER_BUSY', message, { retriable: true });
}
