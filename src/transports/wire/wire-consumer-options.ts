// What a subscription of the wire client is asked for: the subscription itself, and how its messages come again.
import type { Backoff } from '../../core/backoff.js';
import { ConfigurationError, describeValue } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import type {
  InitialPosition,
  OrderedNegativeAckMode,
  SubscriptionSpec,
  SubscriptionType,
} from '../../core/subscription-spec.js';
import { fullTopicName } from '../../core/topic-name.js';
import { MIN_ACK_TIMEOUT_MS } from '../../redelivery/ack-timeout-tracker.js';
import { checkShownProperties, checkUpdateMs, shownProperties, updateMs } from './attachment-options.js';
import { DEFAULT_CHUNK_LIMITS } from '../../chunks/chunk.js';
import type { ChunkLimits } from '../../chunks/chunk.js';
import type { ConsumerSpec } from './subscribe-command.js';
import { checkSubscriptionSpec } from './subscription-checks.js';
import type { ResolvedWireOptions } from './wire-options.js';
import type { FurtherOptions } from './subscription-checks.js';
import { PATTERN_DOMAINS, topicPattern } from '../../core/topic-pattern.js';
import type { PatternDomain, TopicPattern } from '../../core/topic-pattern.js';
import { checkSchema, schemaData } from './topic-schema.js';
import type { WireSchema } from './topic-schema.js';
import type { Intervals } from './topic-source.js';

export interface WireSubscribeOptions {
  /** Short or full names, at least one. Either this or `pattern`. */
  readonly topics?: readonly string[] | undefined;
  /**
   * All topics of one namespace whose local name (without `-partition-N`) matches as a whole: `orders-.*`,
   * `tenant/namespace/orders-.*`, `persistent://tenant/namespace/orders-.*`, or a RegExp of such a text. The namespace is
   * taken literally; without one it is `public/default`. Topics that are made later join, deleted ones leave. Never meant:
   * topics that brokers keep for themselves (`__...`), and those that end in `-<subscription>-RETRY` or
   * `-<subscription>-DLQ`, which are what this subscription itself makes: name them in `topics` to read them.
   */
  readonly pattern?: string | RegExp | undefined;
  /** Which topics `pattern` means: stored ones or not. @default what the pattern begins with, else 'persistent' */
  readonly patternDomain?: PatternDomain | undefined;
  /**
   * How often the broker is asked for the topics of the namespace, in milliseconds; 0 or false: never. Where the broker
   * tells of new topics by itself, which is within a second, this only closes gaps. @default 60 seconds, as Java's client
   */
  readonly patternUpdateMs?: number | false | undefined;
  /**
   * How often a partitioned topic is asked for new partitions, in milliseconds; 0 or false: never. New ones are read from
   * their first message. @default 60 seconds, as Java's client
   */
  readonly partitionsUpdateMs?: number | false | undefined;
  /**
   * Messages that their producers cut into chunks and of which some have not come, per topic or partition. With more, the
   * one that waits longest for a chunk is given up: not acknowledged, told in the log, and asked for again once its last
   * chunk has come. @default 10, as Java's client
   */
  readonly maxIncompleteChunkedMessages?: number | undefined;
  /**
   * How long such a message waits for its next chunk while the broker may send it, in milliseconds; then it is given up as
   * above. `Infinity` waits for ever. @default 1 minute, as Java's client
   */
  readonly expireIncompleteChunksMs?: number | undefined;
  /**
   * The largest message that is joined from chunks, in bytes, compressed and decompressed. The chunks of a larger one stay
   * unacknowledged and are told in the log. Incomplete messages may take `maxIncompleteChunkedMessages` times as much.
   * @default 64 MiB
   */
  readonly maxChunkedMessageBytes?: number | undefined;
  /**
   * What payloads are expected to be. Refused with SCHEMA_INCOMPATIBLE where it does not fit what the topic has; a topic
   * without a schema gets it. Payloads are not touched. @default any
   */
  readonly schema?: WireSchema | undefined;
  /** What the broker shows beside the consumer, e.g. the version of the service. @default none */
  readonly properties?: Readonly<Record<string, string>> | undefined;
  readonly subscription: string;
  /** @default 'shared' */
  readonly type?: SubscriptionType | undefined;
  /** Only for a subscription that does not exist yet. @default 'earliest' */
  readonly initialPosition?: InitialPosition | undefined;
  /** How many messages may lie in the client beyond those handed on. @default 1000, as Java's client */
  readonly prefetch?: number | undefined;
  /** Unique on the subscription: Failover and Key_Shared choose by it. @default pulsework-<random> */
  readonly consumerName?: string | undefined;
}

export interface WireConsumerOptions extends WireSubscribeOptions {
  /**
   * Milliseconds that a negatively acknowledged message waits where no backoff applies: always without
   * `negativeAckBackoff`, and by id (N-13). 0 asks for it at once. @default 60 seconds, as other Pulsar clients (N-10)
   */
  readonly negativeAckRedeliveryDelayMs?: number | undefined;
  /**
   * The wait by the broker's redelivery count, 0 on the first delivery (N-09); called once per negative
   * acknowledgement of a message. May be given beside the fixed delay (N-14). @default none: the fixed delay
   */
  readonly negativeAckBackoff?: Backoff | undefined;
  /**
   * Milliseconds after which a message is asked back that was handed on and is neither acknowledged nor negatively
   * acknowledged; at least 1,000, or 0 for none. Counted per entry: from the first message of a producer batch
   * that was handed on. @default none
   */
  readonly ackTimeoutMs?: number | undefined;
  /** A further wait by redelivery count, added to `ackTimeoutMs`. @default none */
  readonly ackTimeoutBackoff?: Backoff | undefined;
  /**
   * Key_Shared only: whether brokers are told which message of a key failed, so that nothing later of it is received before
   * that one is acknowledged (PIP-493, an open proposal). `best-effort`: where a broker can; elsewhere later messages pass.
   * `required`: opening fails with NOT_SUPPORTED when the broker of one topic or partition cannot, and one that comes to such
   * a broker later is suspended (K-50). @default 'best-effort' with the client's `experimentalOrderedNegativeAck`, else
   * 'disabled'
   */
  readonly orderedNegativeAck?: OrderedNegativeAckMode | undefined;
  /**
   * Whether all messages are tracked from their arrival, so that `acquireForOrderedProcessing` can be asked before each is
   * handled; about 400 bytes per message that is here (K-51). Needs the type 'key-shared' and an `orderedNegativeAck` other
   * than 'disabled'. @default false
   */
  readonly orderedProcessingAdmission?: boolean | undefined;
}

/** With what only an owner can ask for that keeps later messages of a failed key from its handlers. */
export type OwnerSubscribeOptions = WireSubscribeOptions & Pick<SubscriptionSpec, 'orderedNegativeAck'>;

/** What of the client's options decides about a consumer's. */
type ClientOptions = Pick<ResolvedWireOptions, 'random' | 'experimentalOrderedNegativeAck'>;

export const DEFAULT_WIRE_SUBSCRIPTION = { type: 'shared', initialPosition: 'earliest', prefetch: 1_000 } as const;

/** The part of the options that says how messages come again. */
export type RedeliveryOptions = Pick<WireConsumerOptions, (typeof REDELIVERY_OPTIONS)[number]>;

const SUBSCRIBE_OPTIONS = [
  'pattern',
  'patternDomain',
  'patternUpdateMs',
  'partitionsUpdateMs',
  'properties',
  'maxIncompleteChunkedMessages',
  'expireIncompleteChunksMs',
  'maxChunkedMessageBytes',
  'schema',
] as const satisfies readonly (keyof WireSubscribeOptions)[];

const REDELIVERY_OPTIONS = [
  'negativeAckRedeliveryDelayMs',
  'negativeAckBackoff',
  'ackTimeoutMs',
  'ackTimeoutBackoff',
] as const satisfies readonly (keyof WireConsumerOptions)[];

/** What is subscribed to, checked. */
export interface ResolvedSubscription extends Intervals {
  readonly spec: ConsumerSpec;
  /** Instead of `spec.topics`, which are none then. */
  readonly pattern: TopicPattern | undefined;
}

/** With full topic names. @throws ConfigurationError with every problem; PulseworkError TOPIC_NAME_INVALID. */
export function resolveSubscribeOptions(options: OwnerSubscribeOptions, random: () => number): ResolvedSubscription {
  const check = (checker: OptionChecker): void => checkOrderedNegativeAck(options, checker);
  const resolved = resolve(options, random, { names: ['orderedNegativeAck'], check });
  return withOrder(resolved, options.orderedNegativeAck);
}

/** Without keys that are kept together there is no order of a key to keep (K-40). */
function withOrder(resolved: ResolvedSubscription, mode: OrderedNegativeAckMode | undefined): ResolvedSubscription {
  const orderedNegativeAck = resolved.spec.type === 'key-shared' ? mode : undefined;
  return { ...resolved, spec: { ...resolved.spec, orderedNegativeAck } };
}

export interface ResolvedConsumer extends ResolvedSubscription {
  readonly redelivery: RedeliveryOptions;
  readonly hasAdmission: boolean;
}

/** The same for a consumer. @throws as above. */
export function resolveConsumerOptions(options: WireConsumerOptions, client: ClientOptions): ResolvedConsumer {
  const check = (checker: OptionChecker): void => {
    checkRedelivery(options, checker);
    checkOrderedNegativeAck(options, checker);
    checkAdmission(options, client, checker);
  };
  const names = [...REDELIVERY_OPTIONS, 'orderedNegativeAck', 'orderedProcessingAdmission'];
  const resolved = withOrder(resolve(options, client.random, { names, check }), orderMode(options, client));
  const { negativeAckRedeliveryDelayMs, negativeAckBackoff, ackTimeoutMs, ackTimeoutBackoff } = options;
  const redelivery = { negativeAckRedeliveryDelayMs, negativeAckBackoff, ackTimeoutMs, ackTimeoutBackoff };
  return { ...resolved, redelivery, hasAdmission: options.orderedProcessingAdmission === true };
}

function resolve(options: WireSubscribeOptions, random: () => number, own: FurtherOptions): ResolvedSubscription {
  const given = new OptionChecker('subscribe');
  if (!given.object('options', options)) throw new ConfigurationError(given.problems);
  let pattern: TopicPattern | undefined;
  const all = withDefaults(options, random);
  const check = (checker: OptionChecker): void => {
    pattern = checkedPattern(options, checker);
    checkUpdateMs('patternUpdateMs', options.patternUpdateMs, checker);
    checkUpdateMs('partitionsUpdateMs', options.partitionsUpdateMs, checker);
    checkShownProperties(options.properties, checker);
    checkChunkLimits(options, checker);
    checkSchema(options.schema, checker);
    own.check(checker);
  };
  checkSubscriptionSpec(all, {
    names: [...SUBSCRIBE_OPTIONS, ...own.names],
    check,
    hasTopics: options.pattern === undefined,
  });
  const { subscription, type, initialPosition, prefetch, consumerName } = all;
  const topics = (options.topics ?? []).map((topic) => fullTopicName(topic));
  const properties = shownProperties(options.properties);
  // A topic that was deleted must not be made again by who only looks for topics that are there.
  const createTopics = pattern === undefined ? undefined : false;
  return {
    spec: {
      ...{ topics, subscription, type, initialPosition, prefetch, consumerName, properties, createTopics },
      chunkLimits: chunkLimitsOf(options),
      schema: schemaData(options.schema),
    },
    pattern,
    patternUpdateMs: updateMs(options.patternUpdateMs),
    partitionsUpdateMs: updateMs(options.partitionsUpdateMs),
  };
}

type ChunkOptions = Pick<
  WireSubscribeOptions,
  'maxIncompleteChunkedMessages' | 'expireIncompleteChunksMs' | 'maxChunkedMessageBytes'
>;

function checkChunkLimits(options: ChunkOptions, check: OptionChecker): void {
  check.positiveInteger('maxIncompleteChunkedMessages', options.maxIncompleteChunkedMessages);
  check.durationMs('expireIncompleteChunksMs', options.expireIncompleteChunksMs, { minMs: 1, infinite: true });
  check.positiveInteger('maxChunkedMessageBytes', options.maxChunkedMessageBytes);
}

function chunkLimitsOf(options: ChunkOptions): ChunkLimits {
  return {
    maxIncomplete: options.maxIncompleteChunkedMessages ?? DEFAULT_CHUNK_LIMITS.maxIncomplete,
    expireMs: options.expireIncompleteChunksMs ?? DEFAULT_CHUNK_LIMITS.expireMs,
    maxMessageBytes: options.maxChunkedMessageBytes ?? DEFAULT_CHUNK_LIMITS.maxMessageBytes,
  };
}

function checkedPattern(options: WireSubscribeOptions, check: OptionChecker): TopicPattern | undefined {
  const { pattern, patternDomain, topics, subscription } = options;
  check.oneOf('patternDomain', patternDomain, PATTERN_DOMAINS);
  if (pattern === undefined) {
    if (patternDomain !== undefined) check.problem('"patternDomain" needs "pattern"');
    return undefined;
  }
  if (topics !== undefined) check.problem('"topics" and "pattern" exclude each other: give one of them');
  if (typeof (pattern as unknown) !== 'string' && !((pattern as unknown) instanceof RegExp)) {
    check.problem(`"pattern" must be a text or a RegExp, got ${describeValue(pattern)}`);
    return undefined;
  }
  const parsed = topicPattern(pattern, subscription, patternDomain);
  if (typeof parsed !== 'string') return parsed;
  check.problem(`"pattern" ${parsed}, got ${describeValue(String(pattern))}`);
  return undefined;
}

/** Options set to `undefined` are absent. Unknown ones stay in, so that the check finds them. */
function withDefaults<T extends WireSubscribeOptions>(options: T, random: () => number): T & SubscriptionDefaults {
  return {
    ...options,
    type: options.type ?? DEFAULT_WIRE_SUBSCRIPTION.type,
    initialPosition: options.initialPosition ?? DEFAULT_WIRE_SUBSCRIPTION.initialPosition,
    prefetch: options.prefetch ?? DEFAULT_WIRE_SUBSCRIPTION.prefetch,
    consumerName: options.consumerName ?? `pulsework-${random().toString(36).slice(2, 10)}`,
  };
}

function checkOrderedNegativeAck({ type, orderedNegativeAck }: OwnerSubscribeOptions, check: OptionChecker): void {
  if (orderedNegativeAck !== 'required' || type === 'key-shared') return;
  check.problem('"orderedNegativeAck" of "required" needs the type "key-shared"');
}

function orderMode({ orderedNegativeAck }: WireConsumerOptions, client: ClientOptions): OrderedNegativeAckMode {
  return orderedNegativeAck ?? (client.experimentalOrderedNegativeAck ? 'best-effort' : 'disabled');
}

/** Where the order can never be kept, nothing could ever be admitted with it (K-52). */
function checkAdmission(options: WireConsumerOptions, client: ClientOptions, check: OptionChecker): void {
  check.boolean('orderedProcessingAdmission', options.orderedProcessingAdmission);
  if (options.orderedProcessingAdmission !== true) return;
  if (options.type !== 'key-shared') check.problem('"orderedProcessingAdmission" needs the type "key-shared"');
  if (orderMode(options, client) !== 'disabled') return;
  const remedy = client.experimentalOrderedNegativeAck ? '' : ': see "experimentalOrderedNegativeAck" of the client';
  check.problem(`"orderedProcessingAdmission" needs an "orderedNegativeAck" that is not "disabled"${remedy}`);
}

type SubscriptionDefaults = Omit<SubscriptionSpec, 'topics' | 'pattern'>;

function checkRedelivery(options: RedeliveryOptions, check: OptionChecker): void {
  const { ackTimeoutMs } = options;
  check.durationMs('negativeAckRedeliveryDelayMs', options.negativeAckRedeliveryDelayMs);
  check.function('negativeAckBackoff', options.negativeAckBackoff);
  if (ackTimeoutMs !== 0) check.durationMs('ackTimeoutMs', ackTimeoutMs, { minMs: MIN_ACK_TIMEOUT_MS });
  check.function('ackTimeoutBackoff', options.ackTimeoutBackoff);
  if (options.ackTimeoutBackoff !== undefined && (ackTimeoutMs ?? 0) === 0) {
    check.problem('"ackTimeoutBackoff" needs "ackTimeoutMs": it is added to it');
  }
}
