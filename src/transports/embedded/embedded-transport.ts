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
import { keepAlive } from '../../system/keep-alive.js';
import { safeLogger } from '../../system/safe-logger.js';
import { systemClock } from '../../system/system-clock.js';
import { notSupported } from '../../broker/broker-errors.js';
import { EmbeddedBroker } from '../../broker/embedded-broker.js';
import { isVolatileName } from '../../broker/volatile-topic.js';
import { checkChunking, resolvedChunkBytes } from '../../chunks/chunk-options.js';
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
  /** Of the broker that is made here; with `broker`, it must be that broker's. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Told of messages in chunks that cannot be joined. @default none */
  readonly logger?: Logger | undefined;
}

const CAPABILITIES: readonly Capability[] = [
  'ack-receipts',
  'cumulative-ack',
  'redelivery-count',
  'delayed-delivery',
  'flow-pause',
  'pattern-subscriptions',
];

/** A transport on an embedded broker in this process. @throws ConfigurationError. */
export function embedded(options: EmbeddedOptions = {}): EmbeddedTransport {
  const check = new OptionChecker('embedded');
  if (check.object('options', options)) check.unknownOptions(options, ['broker', 'clock', 'logger']);
  check.methods('logger', options.logger, ['debug', 'info', 'warn', 'error'], 'e.g. consoleLogger()');
  check.throwIfAny();
  const { broker, clock } = options;
  const logger = options.logger === undefined ? undefined : safeLogger(options.logger);
  if (broker === undefined) return new EmbeddedTransport(new EmbeddedBroker({ clock: clock ?? systemClock }), logger);
  if (!((broker as unknown) instanceof EmbeddedBroker)) {
    throw new ConfigurationError([`embedded: "broker" must be an EmbeddedBroker, got ${describeValue(broker)}`]);
  }
  if (clock !== undefined && clock !== broker.clock) {
    throw new ConfigurationError(['embedded: "clock" must be the clock of "broker"; leave it out']);
  }
  return new EmbeddedTransport(broker, logger);
}

export class EmbeddedTransport implements Transport {
  readonly name = 'embedded';
  /** With 'ordered-negative-ack' unless the broker's `keySharedNegativeAckOrdering` is off. */
  readonly capabilities: ReadonlySet<Capability>;
  readonly broker: EmbeddedBroker;
  readonly #logger: Logger | undefined;
  readonly #open = new Set<{ close(): Promise<void> }>();
  #closed = false;
  /** Subscriptions have no socket here: without this a process that only waits for messages would end. */
  #letProcessEnd: (() => void) | undefined;

  constructor(broker: EmbeddedBroker, logger?: Logger) {
    this.#logger = logger;
    const { keySharedNegativeAckOrdering } = broker.options;
    this.broker = broker;
    this.capabilities = new Set(
      keySharedNegativeAckOrdering ? [...CAPABILITIES, 'ordered-negative-ack'] : CAPABILITIES,
    );
  }

  get clock(): Clock {
    return this.broker.clock;
  }

  get maxMessageBytes(): number {
    return this.broker.options.maxMessageBytes;
  }

  async subscribe(spec: SubscriptionSpec): Promise<EmbeddedSubscription> {
    this.#checkOpen('subscribe');
    const source = checkedSource(this.broker, spec);
    const forget = (): void => void this.#open.delete(subscription);
    const subscription = new EmbeddedSubscription({
      ...{ broker: this.broker, spec: { ...spec }, source, logger: this.#logger, forget },
    });
    this.#open.add(subscription);
    if (this.broker.clock === systemClock) this.#letProcessEnd ??= keepAlive();
    return subscription;
  }

  async publisher(topic: string, options: EmbeddedPublisherOptions = {}): Promise<EmbeddedPublisher> {
    this.#checkOpen('publisher');
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
    return publisher;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open].map((opened) => opened.close()));
    this.#letProcessEnd?.();
    this.#letProcessEnd = undefined;
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
