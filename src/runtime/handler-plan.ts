// A handler as the machine runs it: names full, defaults filled in, everything checked. The checks of all handlers
// are collected, so that one ConfigurationError at start names them all.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Backoff } from '../core/backoff.js';
import type { BatchHandlerFunction, BatchLimits } from '../core/batch-handler.js';
import { resolveBatchOptions } from '../core/batch-handler.js';
import type { Codec } from '../core/codec.js';
import { jsonCodec } from '../core/codec.js';
import type { DeliveryPausePolicy } from '../core/delivery-pause.js';
import { resolveDeliveryPause } from '../core/delivery-pause.js';
import type { FairnessOptions } from '../core/fairness.js';
import type { HandlerDefinition, HandlerFunction, HandlerOptions, OutageRule } from '../core/handler-definition.js';
import { patternOf } from '../core/handler-definition.js';
import type { ErrorRule } from '../core/outcome.js';
import { withoutAbsent } from '../core/options.js';
import type { Redact } from '../core/redaction.js';
import type { RedeliveryPolicy, RedeliveryPolicyOptions } from '../core/redelivery-policy.js';
import { resolveRedeliveryPolicy } from '../core/redelivery-policy.js';
import type { DeadLetterChoice } from '../core/settlement.js';
import type { Ordering, SubscriptionSpec } from '../core/subscription-spec.js';
import { redeliversSingly } from '../core/subscription-spec.js';
import { isTopic } from '../core/topic.js';
import { deadLetterTopicName, fullTopicName, retryTopicName } from '../core/topic-name.js';
import { qualifiedPattern } from '../core/topic-pattern.js';
import type { TransactionalPlan } from '../core/transactional-options.js';
import { resolveTransactional } from '../core/transactional-options.js';
import type { Capability } from '../ports/transport.js';
import { delaysInClient } from './delayed-delivery.js';
import { Effects } from './effects.js';
import { Idempotency } from './idempotent.js';

/** How payloads of one topic are read. */
export interface PayloadReader {
  readonly codec: Codec;
  readonly schema: StandardSchemaV1 | undefined;
}

/** `errors` is empty where the rule has none. */
export type PlannedOutage = OutageRule & { readonly errors: NonNullable<OutageRule['errors']> };

export interface HandlerPlan {
  readonly name: string;
  readonly spec: SubscriptionSpec;
  /** By full topic name; none where there is a pattern. */
  readonly readers: ReadonlyMap<string, PayloadReader>;
  /** The pattern, for what must not tell its topics apart; undefined where topics are named. */
  readonly topicTemplate: string | undefined;
  /** How payloads of the topics that a pattern means are read. */
  readonly patternReader: PayloadReader | undefined;
  /** A BatchHandlerFunction where there is a `batch`. */
  readonly handle: HandlerFunction<never> | BatchHandlerFunction<never>;
  /** Runs at a time; of a batch handler, batches. */
  readonly concurrency: number;
  /** Limits of a batch; undefined: the handler takes one delivery. */
  readonly batch: BatchLimits | undefined;
  /** Deliveries in the Dispatcher at a time, so that `concurrency` runs of full batches are possible. */
  readonly maxInFlight: number;
  readonly ordering: Ordering;
  /** Whether a broker may be asked to keep the order of a key that failed (PIP-493). */
  readonly brokerMayKeepOrder: boolean;
  readonly policy: RedeliveryPolicy;
  readonly timeoutMs: number | undefined;
  readonly abandonAfterMs: number;
  readonly onError: readonly ErrorRule[];
  readonly outage: readonly PlannedOutage[];
  readonly idempotent: Idempotency | undefined;
  /** Not beside `idempotent`. */
  readonly effects: Effects | undefined;
  /** How a success with messages is settled in one transaction; undefined: it is not. */
  readonly transactional: TransactionalPlan | undefined;
  /** Full names of the topics this handler may send to; undefined: anywhere. */
  readonly publishes: ReadonlySet<string> | undefined;
  readonly deadLetter: DeadLetterChoice;
  /** Whether what is given up keeps its key waiting for a person. */
  readonly keyBlocks: boolean;
  readonly deadLetterSubscription: string | undefined;
  readonly onDeadLetterRefused: NonNullable<HandlerOptions['onDeadLetterRefused']>;
  /** Full name of the dead letter topic for messages of `topic`. */
  readonly deadLetterTopic: (topic: string) => string;
  /** Where long waits are published to; undefined: they are held. */
  readonly retry: RetryPlan | undefined;
  readonly ackTimeoutMs: number | undefined;
  readonly ackTimeoutBackoff: Backoff | undefined;
  /** Whether messages that are not to be delivered yet wait here. */
  readonly delaysInClient: boolean;
  readonly maxHeld: number;
  readonly maxHeldBytes: number;
  readonly maxLaneMessages: number;
  /** What one key may take; undefined: all. */
  readonly fairness: FairnessOptions | undefined;
  /** When nothing more is taken because nearly everything fails; undefined: never. */
  readonly deliveryPause: DeliveryPausePolicy | undefined;
  readonly redact: Redact | undefined;
}

/** The retry letter topic of a handler, and the subscription that brings the letters back. */
export interface RetryPlan {
  /** Always Shared: only there brokers keep a message until it is due (D-20, Y-02). */
  readonly spec: SubscriptionSpec;
  /** Full name of the retry letter topic for messages of `topic`. */
  readonly topicFor: (topic: string) => string;
}

export interface PlanContext {
  /** From a name in code to a full topic name. @throws PulseworkError TOPIC_NAME_INVALID */
  readonly fullName: (name: string) => string;
  /** Of a pattern that names none. */
  readonly namespace: string;
  readonly redelivery: RedeliveryPolicyOptions | undefined;
  readonly capabilities: ReadonlySet<Capability>;
  /** Unique per process, shown by the broker. */
  readonly consumerName: (handler: string) => string;
}

export const DEFAULT_HANDLER_OPTIONS = {
  type: 'shared',
  initialPosition: 'earliest',
  concurrency: 16,
  ordering: 'none',
  onError: [],
  outage: [],
  deadLetter: 'publish',
  onDeadLetter: 'continue',
  orderedNegativeAck: 'best-effort',
  onDeadLetterRefused: 'hold',
  retryTopic: false,
  delayedDelivery: 'auto',
  maxHeld: 1_000,
  maxHeldBytes: 64 * 1024 * 1024,
  maxLaneMessages: 1_000,
} as const satisfies HandlerOptions;

type PlannedSpecOptions = Required<
  Pick<
    { [K in keyof HandlerOptions]: NonNullable<HandlerOptions[K]> },
    'type' | 'initialPosition' | 'prefetch' | 'ordering' | 'orderedNegativeAck'
  >
>;

/** Only for definitions that `checkHandler` found nothing wrong with. */
export function planHandler(definition: HandlerDefinition, context: PlanContext): HandlerPlan {
  const { subscription, name } = definition;
  const { fullName } = context;
  const options = {
    ...DEFAULT_HANDLER_OPTIONS,
    deadLetterSubscription: subscription,
    ...withoutAbsent(definition.options),
  };
  const { type, deadLetterSubscription, timeoutMs, abandonAfterMs = timeoutMs ?? 0, idempotent } = options;
  const concurrency = redeliversSingly(type) ? options.concurrency : (definition.options.concurrency ?? 1);
  const batch = definition.batch && resolveBatchOptions(definition.batch);
  const maxInFlight = concurrency * (batch?.maxMessages ?? 1);
  const readers = readersOf(definition, fullName);
  const pattern = patternOf(definition.source);
  const spec = specOf(
    definition,
    { ...options, prefetch: options.prefetch ?? maxInFlight },
    [...readers.keys()],
    context,
  );
  return {
    name,
    spec,
    readers,
    topicTemplate: spec.pattern?.source.replaceAll('\\/', '/'),
    patternReader: pattern && payloadReader(definition),
    handle: definition.handle,
    concurrency,
    batch,
    maxInFlight,
    ordering: options.ordering,
    brokerMayKeepOrder: brokerMayKeepOrder(spec, context.capabilities),
    policy: resolveRedeliveryPolicy(options.redelivery, resolveRedeliveryPolicy(context.redelivery)),
    timeoutMs,
    abandonAfterMs,
    onError: options.onError,
    outage: options.outage.map((rule: OutageRule) => ({ ...rule, errors: rule.errors ?? [] })),
    idempotent: idempotent instanceof Idempotency ? idempotent : undefined,
    effects: options.effects instanceof Effects ? options.effects : undefined,
    transactional: resolveTransactional(options.transactional),
    publishes: options.publishes && new Set(options.publishes.map((topic) => fullName(topic.name))),
    deadLetter: options.deadLetter,
    keyBlocks: options.onDeadLetter === 'block-key',
    deadLetterSubscription: deadLetterSubscription === false ? undefined : deadLetterSubscription,
    onDeadLetterRefused: refusalRule(options.onDeadLetterRefused, fullName),
    deadLetterTopic: deadLetterNames(options, subscription, fullName),
    retry: retryPlan(options.retryTopic, spec, fullName),
    ackTimeoutMs: options.ackTimeoutMs,
    ackTimeoutBackoff: options.ackTimeoutBackoff,
    delaysInClient: delaysInClient(options.delayedDelivery, type, context.capabilities),
    maxHeld: options.maxHeld,
    maxHeldBytes: options.maxHeldBytes,
    maxLaneMessages: options.maxLaneMessages,
    fairness: options.fairness,
    deliveryPause: options.deliveryPause && resolveDeliveryPause(options.deliveryPause),
    redact: options.redact,
  };
}

function specOf(
  { name, source, subscription }: HandlerDefinition,
  { type, initialPosition, prefetch, ordering, orderedNegativeAck }: PlannedSpecOptions,
  topics: readonly string[],
  context: PlanContext,
): SubscriptionSpec {
  const pattern = patternOf(source);
  return {
    topics,
    ...(pattern !== undefined && { pattern: qualifiedPattern(pattern, context.namespace) }),
    subscription,
    type,
    initialPosition,
    prefetch,
    consumerName: context.consumerName(name),
    ...(type === 'key-shared' && ordering === 'key' && { orderedNegativeAck }),
  };
}

function brokerMayKeepOrder(
  { orderedNegativeAck: mode = 'disabled' }: SubscriptionSpec,
  capabilities: PlanContext['capabilities'],
): boolean {
  return mode !== 'disabled' && capabilities.has('ordered-negative-ack');
}

function readersOf(
  { source, codec, payload }: HandlerDefinition,
  fullName: PlanContext['fullName'],
): Map<string, PayloadReader> {
  const readers = new Map<string, PayloadReader>();
  if (typeof source === 'string') readers.set(fullName(source), payloadReader({ codec, payload }));
  const topics = isTopic(source) ? [source] : Array.isArray(source) ? source : [];
  for (const topic of topics.filter(isTopic))
    readers.set(fullName(topic.name), { codec: topic.codec, schema: topic.schema });
  return readers;
}

function payloadReader({ codec = jsonCodec, payload }: Pick<HandlerDefinition, 'codec' | 'payload'>): PayloadReader {
  return { codec, schema: payload };
}

function deadLetterNames(
  options: HandlerOptions,
  subscription: string,
  fullName: PlanContext['fullName'],
): (topic: string) => string {
  const named = options.deadLetterTopic;
  if (named === undefined) return (topic) => deadLetterTopicName(topic, subscription);
  const name = fullName(named);
  return () => name;
}

function refusalRule(
  rule: HandlerPlan['onDeadLetterRefused'],
  fullName: PlanContext['fullName'],
): HandlerPlan['onDeadLetterRefused'] {
  return typeof rule === 'object' ? { fallbackTopic: fullName(rule.fallbackTopic) } : rule;
}

function retryPlan(
  retryTopic: boolean | string,
  spec: SubscriptionSpec,
  fullName: (name: string) => string,
): RetryPlan | undefined {
  if (retryTopic === false) return undefined;
  const named = retryTopic === true ? undefined : fullName(retryTopic);
  const topicFor = (topic: string): string => named ?? retryTopicName(topic, spec.subscription);
  const topics = named === undefined ? [...new Set(spec.topics.map(topicFor))] : [named];
  const { subscription, prefetch, consumerName } = spec;
  const shared = { type: 'shared', initialPosition: 'earliest' } as const;
  return { spec: { topics, subscription, prefetch, consumerName, ...shared }, topicFor };
}

/** The full name behind a name in code. */
export function topicResolver(topics: (name: string) => string, namespace: string): (name: string) => string {
  return (name) => fullTopicName(topics(name), namespace);
}
