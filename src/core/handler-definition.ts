// What a handler is: a source, options and a function. Decorators and defineHandler() both end here.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Backoff } from './backoff.js';
import type { BatchHandlerFunction, BatchOptions } from './batch-handler.js';
import type { Codec } from './codec.js';
import type { DeadLetterCause } from './dead-letter.js';
import type { Delivery } from './delivery.js';
import type { DeliveryPauseOptions } from './delivery-pause.js';
import type { FairnessOptions } from './fairness.js';
import type { EncodedMessage } from './message.js';
import type { ErrorRule, Outcome } from './outcome.js';
import type { Redact } from './redaction.js';
import { OptionChecker } from './options.js';
import type { RedeliveryPolicyOptions } from './redelivery-policy.js';
import type { DeadLetterChoice } from './settlement.js';
import type { InitialPosition, OrderedNegativeAckMode, Ordering, SubscriptionType } from './subscription-spec.js';
import type { Topic } from './topic.js';
import type { TransactionalOptions } from './transactional-options.js';

/**
 * A topic, several topics, a topic name, or all topics of one namespace that a pattern means, those that come later too:
 * `/orders-.+/` in the runtime's own namespace, `/acme\/prod\/orders-.+/` in another one. The whole local name has to match.
 * The retry and dead letter topics of the handler's own subscription are never meant.
 */
export type Source = Topic<never> | readonly Topic<never>[] | string | { readonly pattern: RegExp };

export function patternOf(source: Source): RegExp | undefined {
  return typeof source === 'object' && 'pattern' in source ? source.pattern : undefined;
}

/**
 * What a handler of this source gets. A name or a pattern says nothing about payloads: see the option `payload`. `ByCodec` is
 * what a source's codec makes of one without a topic.
 */
export type PayloadOf<S, ByCodec = unknown> = S extends {
  readonly kind: 'topic';
  readonly schema: StandardSchemaV1<unknown, infer Out> | undefined;
}
  ? Out
  : S extends readonly (infer T)[]
    ? PayloadOf<T>
    : ByCodec;

/** What `idempotent()` and `effects()` make; the runtime knows them by their classes. */
export interface IdempotencyGuard {
  around(...args: never[]): Promise<Outcome>;
}

/** Errors of these classes (subclasses included) mean that `dependency` is down. */
export interface OutageRule {
  readonly dependency: string;
  /** @default none: this handler does not find out, but waits while another one of the runtime finds `dependency` down */
  readonly errors?: readonly (abstract new (...args: never[]) => Error)[] | undefined;
  /** Milliseconds until it is probed first; then doubling up to a minute. @default 1 second */
  readonly retryAfterMs?: number | undefined;
}

export type DelayedDelivery = 'client' | 'broker' | 'auto';

/** Whether a key goes on when one of its messages is given up, or waits for a person. */
export type OnDeadLetter = 'continue' | 'block-key';

/** `hold`: the message stays, and publishing is tried again with a long backoff. */
export type RefusalChoice = 'hold' | { readonly fallbackTopic: string };
/** `acknowledge`: it was dealt with elsewhere, the message may go. What is thrown or rejected means `hold`. */
export type RefusalDecision = RefusalChoice | 'acknowledge' | Promise<RefusalChoice | 'acknowledge'>;

/** A dead letter that can never be published as it is: too large, no permission, topic terminated. */
export interface DeadLetterRefusal {
  /** Full name of the dead letter topic. */
  readonly topic: string;
  readonly message: EncodedMessage;
  readonly cause: DeadLetterCause;
  readonly error: Error;
  /** The message's id as it came first, as text. */
  readonly originId: string;
}

/** The options of one handler; those of `@Handler` are the class's defaults for them. */
export interface HandlerOptions {
  /** @default 'shared' */
  readonly type?: SubscriptionType | undefined;
  /** Where a subscription that does not exist yet begins. @default 'earliest': what was sent before the first start counts */
  readonly initialPosition?: InitialPosition | undefined;
  /** How many runs at a time; of a batch handler, how many batches. @default 16; 1 on Exclusive and Failover */
  readonly concurrency?: number | undefined;
  /** `key`: one run per key at a time, in order. `partition`: the same per partition. @default 'none' */
  readonly ordering?: Ordering | undefined;
  /** Messages lying in the client beyond those being handled. @default `concurrency`, × `maxMessages` with `batch` */
  readonly prefetch?: number | undefined;
  readonly redelivery?: RedeliveryPolicyOptions | undefined;
  /** Milliseconds one run may take: then its signal aborts and it counts as failed. @default none */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds a timed-out run may go on before it is given up and its slot freed. @default the same as `timeoutMs` */
  readonly abandonAfterMs?: number | undefined;
  /** From thrown errors to outcomes, first match wins. @default every error is `retry` */
  readonly onError?: readonly ErrorRule[] | undefined;
  /**
   * Errors that mean that something this handler needs is down, where `onError` says nothing of them: they become
   * `dependencyDown`. All subscriptions of the runtime whose rules name that dependency pause with it. @default none
   */
  readonly outage?: readonly OutageRule[] | undefined;
  /** Made by `idempotent()`: a message whose key was worked on already gets the outcome of that work. @default none */
  readonly idempotent?: IdempotencyGuard | undefined;
  /**
   * Made by `effects()`: the handler writes in a transaction of a database, which is committed together with the record that
   * the message was done; messages that follow go into an outbox in it. Not with `batch`, `idempotent` or `transactional`.
   * @default none
   */
  readonly effects?: IdempotencyGuard | undefined;
  /**
   * What `success(...)` carries is published and the message acknowledged in one transaction: all of it counts, or nothing
   * and the message comes again. It begins once the handler has returned; other outcomes, and a success without messages,
   * need none. Refused at start where the transport or its broker has no transactions. @default false
   */
  readonly transactional?: boolean | TransactionalOptions | undefined;
  /** Where this handler may send; sending elsewhere is a failed run. @default anywhere */
  readonly publishes?: readonly Topic<never>[] | undefined;
  /**
   * What becomes of a message that is given up (`poison`, undecodable, `maxDeliveries` reached). `skip` acknowledges it and
   * it is gone; `block`, without `ordering`, keeps it unacknowledged until a restart. @default 'publish'
   */
  readonly deadLetter?: DeadLetterChoice | undefined;
  /**
   * With `ordering`: whether the key (or partition) goes on when one of its messages is given up. `block-key` keeps that
   * message unacknowledged and its key waiting until `release(key)` or `skip(key)` of the subscription's handle, or a
   * restart; what `deadLetter` says happens at `skip`, and at once to a message without a key. @default 'continue'
   */
  readonly onDeadLetter?: OnDeadLetter | undefined;
  /**
   * With `ordering: 'key'`: whether a broker that can is told which message of a key failed (PIP-493), so that the message
   * need not stay here while it waits, and its key may move meanwhile. `required` fails at start where the transport or a
   * broker cannot. Elsewhere the failed message waits in place, and its key behind it. @default 'best-effort'
   */
  readonly orderedNegativeAck?: OrderedNegativeAckMode | undefined;
  /** Name of the dead letter topic. @default `<topic>-<subscription>-DLQ` */
  readonly deadLetterTopic?: string | undefined;
  /**
   * A subscription that dead letters are kept for from the first one on, made with their producer: without any
   * subscription brokers drop what is published. `false` makes none. @default the handler's subscription
   */
  readonly deadLetterSubscription?: string | false | undefined;
  /** When the broker refuses a dead letter for good: keep the message and ask again, or what is decided. @default 'hold' */
  readonly onDeadLetterRefused?: RefusalChoice | ((refusal: DeadLetterRefusal) => RefusalDecision) | undefined;
  /**
   * Publishes waits of more than 10 minutes (1 minute on Key_Shared), and those beyond `maxHeld`, to a retry letter topic
   * instead of holding them: `true` for `<topic>-<subscription>-RETRY`, or a name. Shared and Key_Shared without
   * `ordering` only. @default false
   */
  readonly retryTopic?: boolean | string | undefined;
  /**
   * Milliseconds a run may take before the broker is asked for the message again, so that another consumer can take it;
   * the run goes on. At least 1,000 and above `timeoutMs`. Shared and Key_Shared without `ordering` only. @default none
   */
  readonly ackTimeoutMs?: number | undefined;
  /** Added to `ackTimeoutMs` by the broker's redelivery count. @default nothing */
  readonly ackTimeoutBackoff?: Backoff | undefined;
  /**
   * Who keeps a message until its `deliverAt`: the broker (`broker`), which may be early by its tick; this process
   * (`client`), never early; or the broker where it and the subscription type can (`auto`). @default 'auto'
   */
  readonly delayedDelivery?: DelayedDelivery | undefined;
  /** Deliveries waiting unacknowledged for a due time; at the limit the subscription pauses. @default 1000 */
  readonly maxHeld?: number | undefined;
  /** Payload bytes of deliveries kept in place. @default 64 MiB */
  readonly maxHeldBytes?: number | undefined;
  /** Messages of one key waiting behind its head, with `ordering`, or for their share, with `fairness`. @default 1000 */
  readonly maxLaneMessages?: number | undefined;
  /** How much one key or tenant may take of `concurrency`, and how fast: what is beyond waits, the others go on. @default all */
  readonly fairness?: FairnessOptions | undefined;
  /**
   * Takes nothing more while nearly everything fails, and tries with a few messages after a while; `{}` takes the defaults.
   * @default it goes on taking
   */
  readonly deliveryPause?: DeliveryPauseOptions | undefined;
  /** Applied to reason, message and stack on dead letters. @default nothing is redacted */
  readonly redact?: Redact | undefined;
}

export const HANDLER_OPTION_NAMES = [
  'type',
  'initialPosition',
  'concurrency',
  'ordering',
  'prefetch',
  'redelivery',
  'timeoutMs',
  'abandonAfterMs',
  'onError',
  'outage',
  'idempotent',
  'effects',
  'transactional',
  'publishes',
  'deadLetter',
  'onDeadLetter',
  'orderedNegativeAck',
  'deadLetterTopic',
  'deadLetterSubscription',
  'onDeadLetterRefused',
  'retryTopic',
  'ackTimeoutMs',
  'ackTimeoutBackoff',
  'delayedDelivery',
  'maxHeld',
  'maxHeldBytes',
  'maxLaneMessages',
  'fairness',
  'deliveryPause',
  'redact',
] as const satisfies readonly (keyof HandlerOptions)[];

/** A handler's function. It must say how it ended: returning nothing does not compile. */
export type HandlerFunction<P> = (delivery: Delivery<P>) => Outcome | Promise<Outcome>;

export interface HandlerDefinitionOptions<S extends Source, P> extends HandlerOptions {
  /** Shown in logs, traces and dead letters. */
  readonly name: string;
  readonly source: S;
  /** The subscription's name. */
  readonly subscription: string;
  readonly batch?: undefined;
  readonly handle: HandlerFunction<P>;
}

export interface BatchHandlerDefinitionOptions<S extends Source, P> extends Omit<
  HandlerDefinitionOptions<S, P>,
  'batch' | 'handle'
> {
  /** Makes it a batch handler: `handle` gets a list of deliveries. With `ordering` at most one of each key or partition. */
  readonly batch: BatchOptions;
  readonly handle: BatchHandlerFunction<P>;
}

/** A schema and codec for a source given by name or pattern. */
export interface SourcePayload<Schema extends StandardSchemaV1 = StandardSchemaV1> {
  readonly payload?: Schema | undefined;
  readonly codec?: Codec | undefined;
}

/** Without a schema: the codec of a source given by name or pattern, and what it makes. */
export interface SourceCodec<T = unknown> {
  readonly payload?: undefined;
  readonly codec?: Codec<T> | undefined;
}

/** A handler as the runtime takes it; nothing has been checked yet, all checks happen together at start. */
export interface HandlerDefinition {
  readonly kind: 'handler';
  readonly name: string;
  readonly source: Source;
  readonly subscription: string;
  readonly payload: StandardSchemaV1 | undefined;
  readonly codec: Codec | undefined;
  readonly options: HandlerOptions;
  /** Where it is set, `handle` is a BatchHandlerFunction. */
  readonly batch?: BatchOptions | undefined;
  readonly handle: HandlerFunction<never> | BatchHandlerFunction<never>;
}

/** Declares a batch handler whose source is a name or a pattern, with a schema. */
export function defineHandler<Schema extends StandardSchemaV1>(
  options: BatchHandlerDefinitionOptions<string | { readonly pattern: RegExp }, StandardSchemaV1.InferOutput<Schema>> &
    SourcePayload<Schema> & { readonly payload: Schema },
): HandlerDefinition;
/** Declares a batch handler: `handle` gets a list of deliveries, and gives one outcome for all or one each. */
export function defineHandler<const S extends Source, T = unknown>(
  options: BatchHandlerDefinitionOptions<S, PayloadOf<S, NoInfer<T>>> & SourceCodec<T>,
): HandlerDefinition;
/** Declares a handler whose source is a name or a pattern, with a schema. */
export function defineHandler<Schema extends StandardSchemaV1>(
  options: HandlerDefinitionOptions<string | { readonly pattern: RegExp }, StandardSchemaV1.InferOutput<Schema>> &
    SourcePayload<Schema> & { readonly payload: Schema },
): HandlerDefinition;
// The most common form is the last: it is the one that the compiler explains when none fits.
/**
 * Declares a handler without decorators. Options are checked when the runtime starts, all of them together; here it throws a
 * ConfigurationError only where `options` is no object.
 * The payload's type follows from the topic, or from the schema in `payload` where the source is a name or a pattern.
 */
export function defineHandler<const S extends Source, T = unknown>(
  options: HandlerDefinitionOptions<S, PayloadOf<S, NoInfer<T>>> & SourceCodec<T>,
): HandlerDefinition;
export function defineHandler(
  options: (HandlerDefinitionOptions<Source, never> | BatchHandlerDefinitionOptions<Source, never>) & SourcePayload,
): HandlerDefinition {
  const check = new OptionChecker('defineHandler');
  check.object('options', options, '{ name, source, subscription, handle }');
  check.throwIfAny();
  const { name, source, subscription, batch, handle, payload, codec, ...rest } = options;
  return { kind: 'handler', name, source, subscription, payload, codec, options: rest, batch, handle };
}

/** Where decorators leave what they know about a class. The runtime reads nothing else of them. */
export const HANDLER_CLASS: unique symbol = Symbol.for('pulsework.handler-class') as never;

/** One decorated method. */
export interface HandlerMethod {
  readonly method: string | symbol;
  readonly source: Source;
  readonly options: HandlerOptions &
    SourcePayload & { readonly subscription?: string | undefined; readonly batch?: BatchOptions | undefined };
}

/** A class with handler methods. `defaults` is absent when the class itself was not decorated: an error at start. */
export interface HandlerClassDefinition {
  readonly defaults: (HandlerOptions & { readonly subscription?: string | undefined }) | undefined;
  readonly methods: readonly HandlerMethod[];
}

export type HandlerClass = abstract new (...args: never[]) => object;
