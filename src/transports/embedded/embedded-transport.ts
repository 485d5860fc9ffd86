// The in-process transport: the Transport port on an embedded broker. Several transports may share one broker, as
// several processes share a Pulsar.
import type { AccessMode } from '../../core/access-mode.js';
import { ACCESS_MODES } from '../../core/access-mode.js';
import { ConfigurationError, TransportError, describeValue } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type { SubscriptionSpec } from '../../core/subscription-spec.js';
import { SUBSCRIPTION_FIELDS, checkSubscriptionFields, sourceText } from '../../core/subscription-spec.js';
import { topicPattern } from '../../core/topic-pattern.js';
import type { Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { Capability, PublisherRequest, Transport } from '../../ports/transport.js';
import type { MetadataStore } from '../../ports/metadata-store.js';
import type { Transaction, TransactionOptions } from '../../ports/transaction.js';
import { keepAlive } from '../../system/keep-alive.js';
import { safeLogger } from '../../system/safe-logger.js';
import { systemClock } from '../../system/system-clock.js';
import { notSupported } from '../../broker/broker-errors.js';
import type { BrokerOptions } from '../../broker/broker-options.js';
import type { BrokerStore, DurableBrokerStore } from '../../broker/broker-store.js';
import { EmbeddedBroker } from '../../broker/embedded-broker.js';
import { resolveCoordinatorOptions } from '../../broker/transactions/coordinator-options.js';
import type { CoordinatorOptions } from '../../broker/transactions/coordinator-options.js';
import { isVolatileName } from '../../broker/volatile-topic.js';
import { checkChunking, resolvedChunkBytes } from '../../chunks/chunk-options.js';
import { transactionsUnavailable } from '../../transactions/transaction-errors.js';
import { resolveTransactionOptions } from '../../transactions/transaction-options.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';
import { beginOn } from './embedded-transaction.js';
import { EmbeddedPublisher } from './embedded-publisher.js';
import { EmbeddedSubscription } from './embedded-subscription.js';
import { NamedTopics, PatternTopics } from './topic-source.js';
import type { TopicSource } from './topic-source.js';

export interface EmbeddedPublisherOptions extends PublisherRequest {
  /** Unique on the topic. A broker that deduplicates knows a producer by it. @default the broker makes one */
  readonly producerName?: string | undefined;
  /**
   * With `wait-for-exclusive`, `publisher()` resolves when its turn has come, however long that takes; closing the transport
   * ends the wait. @default 'shared'
   */
  readonly accessMode?: AccessMode | undefined;
  /**
   * Cuts a message that is larger than the broker takes for one entry into chunks, which consumers join again, as the
   * publishers of `pulsework/wire` do. Needs a persistent topic. The receipt is that of the last chunk. A chunk that fails
   * fails the message; chunks that are stored then stay on the topic, and consumers get rid of them once the message is
   * published again. Consumers join up to 64 MiB. @default false
   */
  readonly chunking?: boolean | undefined;
  /** Payload bytes in one chunk, at least 1,024. @default what the broker takes, less properties and keys */
  readonly maxChunkBytes?: number | undefined;
}

export interface EmbeddedOptions {
  /** Shared with other transports. @default a broker of its own */
  readonly broker?: EmbeddedBroker | undefined;
  /** Where the broker that is made here keeps its topics, e.g. `sqliteStore({ dir })`; closed with the transport. @default memory alone */
  readonly store?: BrokerStore | undefined;
  /** The limits and switches of the broker that is made here. @default those of a Pulsar broker */
  readonly options?: BrokerOptions | undefined;
  /** How transactions are looked after by the broker that is made here. @default as a Pulsar broker does */
  readonly transactions?: CoordinatorOptions | undefined;
  /** Of the broker that is made here; with `broker`, it must be that broker's. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Told of messages in chunks that cannot be joined. @default none */
  readonly logger?: Logger | undefined;
}

const EMBEDDED_OPTIONS = ['broker', 'store', 'options', 'transactions', 'clock', 'logger'];

const CAPABILITIES: readonly Capability[] = [
  'ack-receipts',
  'cumulative-ack',
  'redelivery-count',
  'delayed-delivery',
  'flow-pause',
  'pattern-subscriptions',
];

/**
 * A transport on an embedded broker in this process.
 * @param metadata where a broker that is made here and has no durable store keeps transactions; without it, it has none.
 * @throws ConfigurationError.
 */
export function embedded(options: EmbeddedOptions = {}, metadata?: () => MetadataStore): EmbeddedTransport {
  const check = new OptionChecker('embedded');
  if (check.object('options', options)) check.unknownOptions(options, EMBEDDED_OPTIONS);
  check.methods('logger', options.logger, ['debug', 'info', 'warn', 'error'], 'e.g. consoleLogger()');
  check.throwIfAny();
  const { broker, store, transactions, clock } = options;
  const logger = options.logger === undefined ? undefined : safeLogger(options.logger);
  if (broker === undefined) {
    const own = ownBroker(options, metadata);
    return new EmbeddedTransport(own, logger, () => own.close());
  }
  if (!((broker as unknown) instanceof EmbeddedBroker)) {
    throw new ConfigurationError([`embedded: "broker" must be an EmbeddedBroker, got ${describeValue(broker)}`]);
  }
  if (clock !== undefined && clock !== broker.clock) {
    throw new ConfigurationError(['embedded: "clock" must be the clock of "broker"; leave it out']);
  }
  if (store !== undefined || options.options !== undefined || transactions !== undefined) {
    const rule = '"store", "options" and "transactions" are for a broker that is made here; give them to "broker"';
    throw new ConfigurationError([`embedded: ${rule}`]);
  }
  return new EmbeddedTransport(broker, logger);
}

/** Transactions are kept where topics are, or in memory as those. */
function ownBroker(
  { store, options, transactions, clock = systemClock }: EmbeddedOptions,
  metadata: (() => MetadataStore) | undefined,
): EmbeddedBroker {
  const coordinator = resolveCoordinatorOptions(transactions ?? {});
  const kept = (store as Partial<DurableBrokerStore> | null | undefined)?.metadata ?? metadata?.();
  return new EmbeddedBroker({ ...options, store, clock, transactions: kept && { store: kept, ...coordinator } });
}

export class EmbeddedTransport implements Transport {
  readonly name = 'embedded';
  /** With 'ordered-negative-ack' unless the broker's `keySharedNegativeAckOrdering` is off, with 'transactions' where it has them. */
  readonly capabilities: ReadonlySet<Capability>;
  readonly broker: EmbeddedBroker;
  readonly #logger: Logger | undefined;
  readonly #closeBroker: () => Promise<void>;
  readonly #open = new Set<{ close(): Promise<void> }>();
  /** Until they end. */
  readonly #transactions = new Set<OpenTransaction>();
  #closed = false;
  /** Subscriptions have no socket here: without this a process that only waits for messages would end. */
  #letProcessEnd: (() => void) | undefined;

  /** @param closeBroker of a broker that nobody else has. */
  constructor(broker: EmbeddedBroker, logger?: Logger, closeBroker: () => Promise<void> = () => Promise.resolve()) {
    this.#logger = logger;
    this.#closeBroker = closeBroker;
    const { keySharedNegativeAckOrdering } = broker.options;
    this.broker = broker;
    const capabilities = new Set(CAPABILITIES);
    if (keySharedNegativeAckOrdering) capabilities.add('ordered-negative-ack');
    if (broker.transactions !== undefined) capabilities.add('transactions');
    this.capabilities = capabilities;
  }

  get clock(): Clock {
    return this.broker.clock;
  }

  get maxMessageBytes(): number {
    return this.broker.options.maxMessageBytes;
  }

  async newTransaction(options: TransactionOptions = {}): Promise<Transaction> {
    const { timeoutMs } = resolveTransactionOptions(options);
    this.#checkOpen('newTransaction');
    if (!this.broker.isOpen) await this.#openBroker('newTransaction');
    const { transactions } = this.broker;
    if (transactions === undefined)
      throw transactionsUnavailable(
        'this embedded broker has none; give it a store for them, the option "transactions"',
      );
    const forget = (ended: OpenTransaction): void => void this.#transactions.delete(ended);
    const transaction = await beginOn(transactions, { clock: this.clock, timeoutMs, forget });
    this.#transactions.add(transaction);
    if (this.#closed) await transaction.close();
    this.#checkOpen('newTransaction');
    return transaction;
  }

  /** What is wrong with the store of the broker is said here, and by `publisher`. */
  async subscribe(spec: SubscriptionSpec): Promise<EmbeddedSubscription> {
    this.#checkOpen('subscribe');
    if (!this.broker.isOpen) await this.#openBroker('subscribe');
    const source = checkedSource(this.broker, spec);
    const forget = (): void => void this.#open.delete(subscription);
    const subscription = new EmbeddedSubscription({
      ...{ broker: this.broker, spec: { ...spec }, source, logger: this.#logger, forget },
    });
    this.#open.add(subscription);
    if (this.broker.clock === systemClock) this.#letProcessEnd ??= keepAlive();
    await this.#whenWritten(subscription);
    return subscription;
  }

  async publisher(topic: string, options: EmbeddedPublisherOptions = {}): Promise<EmbeddedPublisher> {
    this.#checkOpen('publisher');
    if (!this.broker.isOpen) await this.#openBroker('publisher');
    const { initialSubscription, producerName, accessMode = 'shared' } = checkedOptions(topic, options);
    const full = this.broker.fullName(topic);
    const forget = (): void => void this.#open.delete(publisher);
    const publisher = new EmbeddedPublisher({
      ...{ broker: this.broker, topic: full, producerName, accessMode, forget },
      maxChunkBytes: resolvedChunkBytes(options),
    });
    // As on Pulsar: where nothing is kept there is nothing to keep it for.
    if (initialSubscription !== undefined && !isVolatileName(full))
      this.broker.createSubscription(full, initialSubscription);
    this.#open.add(publisher);
    await publisher.open();
    await this.#whenWritten(publisher);
    return publisher;
  }

  async close(): Promise<void> {
    this.#closed = true;
    // First: who reads on is not kept waiting for what nobody can end any more.
    if (this.#transactions.size > 0)
      await Promise.all([...this.#transactions].map((transaction) => transaction.close()));
    await Promise.all([...this.#open].map((opened) => opened.close()));
    this.#letProcessEnd?.();
    this.#letProcessEnd = undefined;
    await this.#closeBroker();
  }

  async #openBroker(call: string): Promise<void> {
    await this.broker.open();
    this.#checkOpen(call);
  }

  /** A subscription that was made would be there after a crash, and keep what is published from now on. */
  async #whenWritten(opened: { close(): Promise<void> }): Promise<void> {
    const written = this.broker.written();
    if (written === undefined) return;
    try {
      await written;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  #checkOpen(call: string): void {
    if (!this.#closed) return;
    throw new TransportError('ALREADY_CLOSED', `${call}: the embedded transport is closed`, { retriable: false });
  }
}

function checkedSource(broker: EmbeddedBroker, spec: SubscriptionSpec): TopicSource {
  const check = new OptionChecker('subscribe');
  const given: unknown = spec;
  if (!check.object('spec', given)) throw new ConfigurationError(check.problems);
  check.unknownOptions(spec, SUBSCRIPTION_FIELDS);
  checkSubscriptionFields(spec, check);
  if (spec.orderedNegativeAck === 'required' && spec.type !== 'key-shared')
    check.problem('"orderedNegativeAck" of "required" needs the type "key-shared"');
  check.throwIfAny();
  if (spec.orderedNegativeAck === 'required' && !broker.options.keySharedNegativeAckOrdering)
    throw notSupported(`${sourceText(spec)}: "orderedNegativeAck" is "required", and its broker does not have it`);
  const { pattern, topics, subscription } = spec;
  if (pattern === undefined) return new NamedTopics(broker, topics);
  const parsed = topicPattern(pattern, subscription, undefined);
  if (typeof parsed !== 'string') return new PatternTopics(broker, parsed);
  throw new ConfigurationError([`subscribe: "pattern" ${parsed}, got ${describeValue(String(pattern))}`]);
}

function checkedOptions(topic: string, options: EmbeddedPublisherOptions): EmbeddedPublisherOptions {
  const check = new OptionChecker('publisher');
  const given: unknown = options;
  if (check.object('options', given)) {
    check.unknownOptions(options, ['initialSubscription', 'producerName', 'accessMode', 'chunking', 'maxChunkBytes']);
    check.nonEmptyString('initialSubscription', options.initialSubscription);
    check.nonEmptyString('producerName', options.producerName);
    check.oneOf('accessMode', options.accessMode, ACCESS_MODES);
    checkChunking(topic, options, check);
  }
  check.throwIfAny();
  return options;
}
