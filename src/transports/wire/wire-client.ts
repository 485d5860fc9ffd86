// The public client on Pulsar's binary protocol, for use without the runtime: connections, lookup, and what was opened
// on them. The transport is a thin face of it.
import { fullTopicName } from '../../core/topic-name.js';
import { redeliversSingly } from '../../core/subscription-spec.js';
import type { Transaction, TransactionOptions } from '../../ports/transaction.js';
import { ConnectionPool } from './connection-pool.js';
import { Lookup } from './lookup.js';
import { repeatPassing } from './repeat-passing.js';
import { PendingBytes } from './pending-message.js';
import { resolvePublisherOptions } from './publisher-options.js';
import type { WirePublisherOptions } from './publisher-options.js';
import { alreadyClosed } from './server-errors.js';
import { NamedTopics, PatternTopics } from './topic-source.js';
import { askSchema } from './topic-schema.js';
import type { TopicSchema } from './topic-schema.js';
import { resolveTransactionOptions } from '../../transactions/transaction-options.js';
import { TransactionCoordinators } from './transaction-coordinators.js';
import { WireConsumer } from './wire-consumer.js';
import { ConsumerOrder } from './wire-consumer-order.js';
import { resolveConsumerOptions, resolveSubscribeOptions } from './wire-consumer-options.js';
import type {
  OwnerSubscribeOptions,
  ResolvedConsumer,
  ResolvedSubscription,
  WireConsumerOptions,
} from './wire-consumer-options.js';
import { ConsumerRedelivery } from './wire-consumer-redelivery.js';
import type { WireContext } from './wire-context.js';
import { resolveWireOptions } from './wire-options.js';
import type { WireOptions } from './wire-options.js';
import { WirePublisher } from './wire-publisher.js';
import { WireReader } from './wire-reader.js';
import { resolveReaderOptions } from './wire-reader-options.js';
import type { WireReaderOptions } from './wire-reader-options.js';
import { WireSubscription } from './wire-subscription.js';

/** What brokers take unless configured otherwise; the true limit is known once a broker was asked. */
const DEFAULT_MAX_MESSAGE_BYTES = 5 * 1024 * 1024;

export class WireClient {
  readonly #context: WireContext;
  readonly #open = new Set<{ close(): Promise<void> }>();
  readonly #coordinators: TransactionCoordinators;
  #maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES;
  #closed = false;

  /** Nothing is connected before it is needed. @throws ConfigurationError. */
  constructor(options: WireOptions) {
    const resolved = resolveWireOptions(options);
    const pool = new ConnectionPool(resolved);
    let lastId = 0;
    this.#context = {
      options: resolved,
      pool,
      lookup: new Lookup(pool, resolved),
      pendingBytes: new PendingBytes(resolved.maxPendingBytes),
      nextId: () => ++lastId,
    };
    this.#coordinators = new TransactionCoordinators(this.#context);
  }

  /** What the broker takes for one message, in bytes; Pulsar's default before a broker was asked. */
  get maxMessageBytes(): number {
    return this.#maxMessageBytes;
  }

  /** Whether `experimentalOrderedNegativeAck` is set; whether a broker has it is in the states of a subscription. */
  get speaksOrderedNegativeAck(): boolean {
    return this.#context.options.experimentalOrderedNegativeAck;
  }

  /**
   * Opens a consumer per topic or partition. Resolves once the broker has confirmed all of them.
   * @throws ConfigurationError; TransportError, see `Transport.subscribe`.
   */
  async subscribe(options: WireConsumerOptions): Promise<WireConsumer> {
    this.#checkOpen();
    const resolved = resolveConsumerOptions(options, this.#context.options);
    return this.#keep(this.#consumerOf(await this.#attach(resolved), resolved));
  }

  /** The same without redelivery delays and ack timeout, for an owner that has its own, as the runtime has. */
  async openSubscription(options: OwnerSubscribeOptions): Promise<WireSubscription> {
    this.#checkOpen();
    return this.#keep(await this.#attach(resolveSubscribeOptions(options, this.#context.options.random)));
  }

  /**
   * Opens a producer per partition. @param topic short or full. @throws ConfigurationError; TransportError, see
   * `Transport.publisher`.
   */
  async publisher(topic: string, options: WirePublisherOptions = {}): Promise<WirePublisher> {
    this.#checkOpen();
    const full = fullTopicName(topic);
    const resolved = resolvePublisherOptions(full, options);
    await this.#learnLimit();
    const publisher = await WirePublisher.open(this.#context, full, {
      options: resolved,
      maxMessageBytes: () => this.#maxMessageBytes,
      forget: (closed) => void this.#open.delete(closed),
    });
    return this.#keep(publisher);
  }

  /**
   * Reads a topic without a position that the broker keeps: nothing is acknowledged, and nothing of it is left when the
   * reader is closed. @throws ConfigurationError; TransportError, see `Transport.subscribe`.
   */
  async reader(options: WireReaderOptions): Promise<WireReader> {
    this.#checkOpen();
    const resolved = resolveReaderOptions(options, this.#context.options.random);
    await this.#learnLimit();
    const reader = await WireReader.open(this.#context, resolved, (closed) => void this.#open.delete(closed));
    return this.#keep(reader);
  }

  /**
   * The newest schema that the broker has for a topic; undefined when it has none. @param topic short or full.
   * @throws PulseworkError TOPIC_NAME_INVALID; TransportError
   */
  async topicSchema(topic: string): Promise<TopicSchema | undefined> {
    this.#checkOpen();
    const full = fullTopicName(topic);
    const { options, pool } = this.#context;
    return repeatPassing(() => askSchema(pool, full), options);
  }

  /**
   * Begins a transaction: give it to `publish` and `acknowledge`, then commit or abort it. Readers of the topics that are
   * published to in it see nothing behind its first message until it ends, so keep it short (T-07).
   * @throws ConfigurationError; TransportError TRANSACTIONS_UNAVAILABLE, CALL_TIMED_OUT, also when the broker has too many.
   */
  async newTransaction(options: TransactionOptions = {}): Promise<Transaction> {
    this.#checkOpen();
    const { timeoutMs } = resolveTransactionOptions(options);
    return this.#keep(await this.#coordinators.begin(timeoutMs, (ended) => void this.#open.delete(ended)));
  }

  /** Aborts transactions that are open, closes what is still open, then the connections. Calling it twice is allowed. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open].map((opened) => opened.close()));
    await this.#context.pool.close();
    this.#context.options.logger?.close();
  }

  async #attach(resolved: ResolvedSubscription): Promise<WireSubscription> {
    await this.#learnLimit();
    const { spec, pattern } = resolved;
    const source =
      pattern === undefined
        ? new NamedTopics(this.#context, spec.topics, resolved)
        : new PatternTopics(this.#context, pattern, resolved);
    const forget = (closed: WireSubscription): void => void this.#open.delete(closed);
    return WireSubscription.open(this.#context, spec, { source, forget });
  }

  #consumerOf(subscription: WireSubscription, { spec, ...resolved }: ResolvedConsumer): WireConsumer {
    const { options } = this.#context;
    const redelivery = new ConsumerRedelivery(
      {
        subscription,
        singly: redeliversSingly(spec.type),
        subject: `subscription "${spec.subscription}"`,
        askedFor: (ids) => order?.askedBack(ids),
      },
      resolved.redelivery,
      options,
    );
    const keepsOrder = (spec.orderedNegativeAck ?? 'disabled') !== 'disabled';
    const { hasAdmission } = resolved;
    const parts = { subscription, redelivery, clock: options.clock, hasAdmission };
    const order = keepsOrder ? new ConsumerOrder(parts) : undefined;
    const forget = (closed: WireConsumer): void => void this.#open.delete(closed);
    return new WireConsumer(subscription, { redelivery, order, forget });
  }

  async #learnLimit(): Promise<void> {
    const { options, pool } = this.#context;
    this.#maxMessageBytes = (await repeatPassing(() => pool.toService(), options)).maxMessageBytes;
  }

  /** What was opened while the client closed must not stay. */
  async #keep<T extends { close(): Promise<void> }>(opened: T): Promise<T> {
    this.#open.add(opened);
    if (!this.#closed) return opened;
    await opened.close();
    throw alreadyClosed('the wire client');
  }

  #checkOpen(): void {
    if (this.#closed) throw alreadyClosed('the wire client');
  }
}
