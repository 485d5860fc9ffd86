// What a subscription of the wire client is asked for: the subscription itself, and how its messages come again.
import type { Backoff } from '../../core/backoff.js';
import type { OptionChecker } from '../../core/options.js';
import type { InitialPosition, SubscriptionSpec, SubscriptionType } from '../../core/subscription-spec.js';
import { fullTopicName } from '../../core/topic-name.js';
import { MIN_ACK_TIMEOUT_MS } from '../../redelivery/ack-timeout-tracker.js';
import { checkSubscriptionSpec } from './subscription-checks.js';
import type { FurtherOptions } from './subscription-checks.js';

export interface WireSubscribeOptions {
  /** Short or full names, at least one. */
  readonly topics: readonly string[];
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
}

export const DEFAULT_WIRE_SUBSCRIPTION = { type: 'shared', initialPosition: 'earliest', prefetch: 1_000 } as const;

/** The part of the options that says how messages come again. */
export type RedeliveryOptions = Pick<WireConsumerOptions, (typeof REDELIVERY_OPTIONS)[number]>;

const REDELIVERY_OPTIONS = [
  'negativeAckRedeliveryDelayMs',
  'negativeAckBackoff',
  'ackTimeoutMs',
  'ackTimeoutBackoff',
] as const satisfies readonly (keyof WireConsumerOptions)[];

/** With full topic names. @throws ConfigurationError with every problem; PulseworkError TOPIC_NAME_INVALID. */
export function resolveSubscribeOptions(options: WireSubscribeOptions, random: () => number): SubscriptionSpec {
  const spec = withDefaults(options, random);
  checkSubscriptionSpec(spec);
  return { ...spec, topics: spec.topics.map((topic) => fullTopicName(topic)) };
}

/** The same for a consumer. @throws as above. */
export function resolveConsumerOptions(
  options: WireConsumerOptions,
  random: () => number,
): { readonly spec: SubscriptionSpec; readonly redelivery: RedeliveryOptions } {
  const all = withDefaults(options, random);
  checkSubscriptionSpec(all, furtherOptions(all));
  const { negativeAckRedeliveryDelayMs, negativeAckBackoff, ackTimeoutMs, ackTimeoutBackoff, ...spec } = all;
  return {
    spec: { ...spec, topics: spec.topics.map((topic) => fullTopicName(topic)) },
    redelivery: { negativeAckRedeliveryDelayMs, negativeAckBackoff, ackTimeoutMs, ackTimeoutBackoff },
  };
}

/** Options set to `undefined` are absent. Unknown ones stay in, so that the check finds them. */
function withDefaults<T extends WireSubscribeOptions>(options: T, random: () => number): T & SubscriptionSpec {
  return {
    ...options,
    type: options.type ?? DEFAULT_WIRE_SUBSCRIPTION.type,
    initialPosition: options.initialPosition ?? DEFAULT_WIRE_SUBSCRIPTION.initialPosition,
    prefetch: options.prefetch ?? DEFAULT_WIRE_SUBSCRIPTION.prefetch,
    consumerName: options.consumerName ?? `pulsework-${random().toString(36).slice(2, 10)}`,
  };
}

function furtherOptions(options: RedeliveryOptions): FurtherOptions {
  const check = (checker: OptionChecker): void => {
    const { ackTimeoutMs } = options;
    checker.durationMs('negativeAckRedeliveryDelayMs', options.negativeAckRedeliveryDelayMs);
    checker.function('negativeAckBackoff', options.negativeAckBackoff);
    if (ackTimeoutMs !== 0) checker.durationMs('ackTimeoutMs', ackTimeoutMs, { minMs: MIN_ACK_TIMEOUT_MS });
    checker.function('ackTimeoutBackoff', options.ackTimeoutBackoff);
    if (options.ackTimeoutBackoff !== undefined && (ackTimeoutMs ?? 0) === 0) {
      checker.problem('"ackTimeoutBackoff" needs "ackTimeoutMs": it is added to it');
    }
  };
  return { names: REDELIVERY_OPTIONS, check };
}
