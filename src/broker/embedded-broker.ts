// The embedded Pulsar broker: topics and partitions in this process, on a clock that is passed in. Everything that
// happens follows from calls and timers in their order, so a test with a FakeClock always sees the same.
import { ConfigurationError, TransportError, describeValue } from '../core/errors.js';
import type { EncodedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { OptionChecker } from '../core/options.js';
import type { InitialPosition, SubscriptionType } from '../core/subscription-spec.js';
import { SUBSCRIPTION_TYPES } from '../core/subscription-spec.js';
import { fullTopicName, partitionName, partitionOf, withoutPartition } from '../core/topic-name.js';
import type { Clock } from '../ports/clock.js';
import type { ConsumerSink } from './broker-consumer.js';
import { BrokerConsumer } from './broker-consumer.js';
import type { BrokerOptions, ResolvedBrokerOptions } from './broker-options.js';
import { resolveBrokerOptions } from './broker-options.js';
import type { BrokerStore } from './broker-store.js';
import { memoryStore } from './broker-store.js';
import { BytePool } from './byte-pool.js';
import { BrokerTopic } from './broker-topic.js';
import { ConsumerHandle } from './consumer-handle.js';
import type { EntryOrigin } from './entry.js';
import { Entry } from './entry.js';
import { partitionFor } from './routing.js';
import { messageBytes, storedMessage } from './stored-message.js';
import type { TopicStats } from './topic-stats.js';
import { topicStats } from './topic-stats.js';
import { Turn } from './turn.js';

/** 2026-01-01T00:00:00Z, from which ledgers are numbered. */
const LEDGERS_SINCE_MS = Date.UTC(2026, 0, 1);
/** More than any process makes for as long as it lives: tests make the most, some hundred a second. */
const LEDGERS_PER_SECOND = 1_000;

export interface EmbeddedBrokerOptions extends BrokerOptions {
  readonly clock: Clock;
  /** Where entries and acknowledgements are kept beyond memory. @default memoryStore */
  readonly store?: BrokerStore | undefined;
}

export interface ConsumerRequest {
  /** Short or full name of a topic or of one partition. */
  readonly topic: string;
  readonly subscription: string;
  readonly type: SubscriptionType;
  readonly initialPosition: InitialPosition;
  readonly consumerName: string;
  /** Lower is served first. @default 0 */
  readonly priority?: number | undefined;
}

interface PartitionedTopic {
  readonly partitions: number;
  /** Counts messages without a key: they go to the partitions in turn. */
  turn: number;
}

export class EmbeddedBroker {
  readonly options: ResolvedBrokerOptions;
  readonly clock: Clock;
  readonly #store: BrokerStore;
  readonly #turn = new Turn();
  readonly #pool = new BytePool();
  readonly #topics = new Map<string, BrokerTopic>();
  readonly #partitioned = new Map<string, PartitionedTopic>();
  /** Full names by the names that callers use: parsing one per message costs more than storing it. */
  readonly #fullNames = new Map<string, string>();
  #lastLedgerId: number;
  #lastProducerId = 0;
  #lastSequenceId = -1;

  /** @throws ConfigurationError */
  constructor(options: EmbeddedBrokerOptions) {
    this.options = resolveBrokerOptions(options, ['clock', 'store']);
    if (typeof (options.clock as Clock | undefined)?.setTimer !== 'function') {
      throw new ConfigurationError(['EmbeddedBroker: "clock" must be a Clock']);
    }
    this.clock = options.clock;
    this.#lastLedgerId = ledgersBefore(this.clock.now());
    this.#store = options.store ?? memoryStore;
  }

  /** Short or full name. @throws TransportError NOT_SUPPORTED when the topic exists. */
  createPartitionedTopic(name: string, partitions: number): void {
    const check = new OptionChecker('createPartitionedTopic');
    const given: unknown = partitions;
    check.positiveInteger('partitions', given ?? null);
    check.throwIfAny();
    const topic = this.fullName(name);
    if (partitionOf(topic) >= 0) throw notSupported(`"${topic}" names a partition, it cannot have partitions itself`);
    if (this.#partitioned.has(topic) || this.#topics.has(topic)) throw notSupported(`topic "${topic}" exists already`);
    this.#partitioned.set(topic, { partitions, turn: 0 });
    for (let i = 0; i < partitions; i++) this.#open(partitionName(topic, i));
  }

  /** The full name that a short one stands for. @throws PulseworkError TOPIC_NAME_INVALID; TransportError NOT_SUPPORTED. */
  fullName(name: string): string {
    const known = this.#fullNames.get(name);
    if (known !== undefined) return known;
    const full = fullTopicName(name);
    if (!full.startsWith('persistent://')) throw notSupported(`the embedded broker has no topics like "${full}"`);
    this.#fullNames.set(name, full);
    return full;
  }

  /** Full names of all topics; partitions one by one. */
  topics(): readonly string[] {
    return [...this.#topics.keys()];
  }

  /** The partitions of a topic, or the topic itself when it has none; created when it does not exist. */
  partitionsOf(name: string): readonly string[] {
    const topic = this.fullName(name);
    const partitioned = this.#partitioned.get(topic);
    if (partitioned === undefined) return [this.#open(topic).name];
    return Array.from({ length: partitioned.partitions }, (_, i) => partitionName(topic, i));
  }

  /**
   * Stores one message; on a partitioned topic by its key, else in turn. Resolves with the receipt.
   * @throws TransportError PUBLISH_REFUSED, MESSAGE_TOO_LARGE, NOT_SUPPORTED; PulseworkError TOPIC_NAME_INVALID.
   */
  async publish(topic: string, message: EncodedMessage, origin: EntryOrigin = this.#ownOrigin()): Promise<MessageId> {
    const stored = storedMessage(message, this.#pool);
    const { id, stored: receipt } = this.#append(topic, [stored], false, origin);
    if (receipt !== undefined) await receipt;
    return id;
  }

  /** Stores a producer batch: one entry, routed and hashed by its first message (K-01). Delayed messages are refused (Y-01). */
  async publishBatch(
    topic: string,
    messages: readonly EncodedMessage[],
    origin: EntryOrigin = this.#ownOrigin(),
  ): Promise<readonly MessageId[]> {
    if (messages.length === 0) throw refused('a batch must hold at least one message');
    const stored = messages.map((message) => storedMessage(message, this.#pool));
    if (stored.some((message) => message.deliverAtMs !== undefined)) throw refused('a batch holds no delayed messages');
    const { id, stored: receipt } = this.#append(topic, stored, true, origin);
    if (receipt !== undefined) await receipt;
    return stored.map((_, batchIndex) => ({ ...id, batchIndex }));
  }

  /**
   * Connects a consumer to one topic or partition. Nothing is sent before it grants permits.
   * @throws TransportError CONSUMER_BUSY, TOPIC_NOT_FOUND; ConfigurationError.
   */
  subscribe(request: ConsumerRequest, sink: ConsumerSink): ConsumerHandle {
    checkRequest(request);
    const name = this.fullName(request.topic);
    if (this.#partitioned.has(name)) throw notSupported(`topic "${name}" is partitioned: subscribe to its partitions`);
    const topic = this.#open(name);
    const subscription = topic.subscription(request.subscription, request.initialPosition);
    const single = request.type === 'exclusive' || request.type === 'failover';
    const maxUnacked = single ? Infinity : this.options.maxUnackedPerConsumer;
    const facts = { name: request.consumerName, priority: request.priority ?? 0, maxUnacked };
    const consumer = new BrokerConsumer(facts, sink);
    subscription.connect(request.type, consumer);
    return new ConsumerHandle(topic, subscription, consumer);
  }

  /**
   * A subscription that begins at the earliest message, on each partition; one that is there already stays as it is.
   * The topic is created when it does not exist.
   */
  createSubscription(name: string, subscription: string): void {
    for (const partition of this.partitionsOf(name)) this.#open(partition).subscription(subscription, 'earliest');
  }

  /**
   * Unloads the topic, or all its partitions, and loads it again, as brokers do when they balance their load: consumers
   * are disconnected and may subscribe again, what they held comes again uncounted, redelivery counts begin anew.
   * Entries, delivery times and acknowledgements stay, but those of single messages of a batch; producers go on. @throws TransportError TOPIC_NOT_FOUND.
   */
  unload(name: string): void {
    for (const topic of this.#loaded(name)) topic.unload();
  }

  /** @throws TransportError TOPIC_NOT_FOUND. */
  stats(name: string): TopicStats {
    const full = this.fullName(name);
    return topicStats(full, this.#partitioned.get(full)?.partitions ?? 0, this.#loaded(full));
  }

  /** A producer name that no other producer of this broker has. */
  newProducerName(): string {
    this.#lastProducerId += 1;
    return `embedded-${this.#lastProducerId}`;
  }

  #append(
    name: string,
    messages: readonly EncodedMessage[],
    batched: boolean,
    origin: EntryOrigin,
  ): ReturnType<BrokerTopic['append']> {
    const topic = this.#route(name, messages);
    let bytes = 0;
    for (const message of messages) bytes += messageBytes(message);
    const { maxMessageBytes } = this.options;
    if (bytes > maxMessageBytes) {
      const text = `a message of ${bytes} bytes is larger than the ${maxMessageBytes} bytes that topic "${topic.name}" takes`;
      throw new TransportError('MESSAGE_TOO_LARGE', text, { retriable: false });
    }
    return topic.append(new Entry(messages, { batched, bytes, publishTimeMs: this.clock.now() }, origin));
  }

  #route(name: string, messages: readonly EncodedMessage[]): BrokerTopic {
    const full = this.fullName(name);
    const partitioned = this.#partitioned.get(full);
    const [first] = messages;
    if (partitioned === undefined || first === undefined) return this.#open(full);
    const index = partitionFor(first, partitioned.partitions, partitioned.turn);
    if (first.key === undefined) partitioned.turn += 1;
    return this.#open(partitionName(full, index));
  }

  #open(full: string): BrokerTopic {
    const known = this.#topics.get(full);
    if (known !== undefined) return known;
    const parent = this.#partitioned.get(withoutPartition(full));
    if (parent !== undefined && partitionOf(full) >= parent.partitions) throw notFound(full);
    const facts = {
      name: full,
      clock: this.clock,
      options: this.options,
      store: this.#store,
      turn: this.#turn,
    };
    const made = new BrokerTopic(facts, () => (this.#lastLedgerId += 1));
    this.#topics.set(full, made);
    return made;
  }

  /** The topic, or its partitions. @throws TransportError TOPIC_NOT_FOUND. */
  #loaded(name: string): readonly BrokerTopic[] {
    const full = this.fullName(name);
    const names = this.#partitioned.has(full) ? this.partitionsOf(full) : [full];
    const topics = names.map((topic) => this.#topics.get(topic)).filter((topic) => topic !== undefined);
    if (topics.length === 0) throw notFound(full);
    return topics;
  }

  #ownOrigin(): EntryOrigin {
    this.#lastSequenceId += 1;
    return { producerName: 'embedded-broker', sequenceId: this.#lastSequenceId };
  }
}

function checkRequest(request: { readonly [K in keyof ConsumerRequest]: unknown }): void {
  const check = new OptionChecker('subscribe');
  check.required(request, {
    subscription: 'a text that is not empty',
    consumerName: 'a text that is not empty',
    type: `one of ${SUBSCRIPTION_TYPES.join(', ')}`,
    initialPosition: 'one of earliest, latest',
  });
  check.nonEmptyString('subscription', request.subscription);
  check.nonEmptyString('consumerName', request.consumerName);
  check.oneOf('type', request.type, SUBSCRIPTION_TYPES);
  check.oneOf('initialPosition', request.initialPosition, ['earliest', 'latest']);
  const { priority } = request;
  if (priority !== undefined && !(Number.isSafeInteger(priority) && Number(priority) >= 0)) {
    check.problem(`"priority" must be a whole number of 0 or more, got ${describeValue(priority)}`);
  }
  check.throwIfAny();
}

function notSupported(message: string): TransportError {
  return new TransportError('NOT_SUPPORTED', message, { retriable: false });
}

function notFound(topic: string): TransportError {
  return new TransportError('TOPIC_NOT_FOUND', `topic "${topic}" does not exist`, { retriable: false });
}

function refused(message: string): TransportError {
  return new TransportError('PUBLISH_REFUSED', message, { retriable: false });
}

/**
 * Ids must not come again with the next process: what outlives this one (an AttemptStore, somebody else's notes) would take
 * other messages for those it knows. Numbered by the clock, so that a test's ids are the same in each run.
 */
function ledgersBefore(nowMs: number): number {
  return Math.max(0, Math.floor(((nowMs - LEDGERS_SINCE_MS) / 1_000) * LEDGERS_PER_SECOND));
}
