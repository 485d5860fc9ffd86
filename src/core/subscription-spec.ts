// What to subscribe to and how, as a handler asks for it and a transport is told.

import { describeValue } from './errors.js';
import type { OptionChecker } from './options.js';

/**
 * `exclusive`: one consumer. `failover`: one active, others stand by. `shared`: many, no order.
 * `key-shared`: many, one consumer per key at a time.
 */
export type SubscriptionType = 'exclusive' | 'failover' | 'shared' | 'key-shared';
export const SUBSCRIPTION_TYPES: readonly SubscriptionType[] = ['exclusive', 'failover', 'shared', 'key-shared'];

/** `key`: one run per key at a time, in order. `partition`: the same per topic partition. */
export type Ordering = 'none' | 'key' | 'partition';

/**
 * Whether the broker is told which message of a key failed, so that it sends nothing later of the key meanwhile (PIP-493,
 * K-50). `best-effort`: where it can. `required`: opening fails on a broker that cannot, and a topic that moves to one
 * is suspended.
 */
export type OrderedNegativeAckMode = 'disabled' | 'best-effort' | 'required';
export const ORDERED_NEGATIVE_ACK_MODES: readonly OrderedNegativeAckMode[] = ['disabled', 'best-effort', 'required'];

/** Where a subscription that does not exist yet begins; ignored when it exists (S-27). */
export type InitialPosition = 'earliest' | 'latest';

export interface SubscriptionSpec {
  /** Full topic names, at least one; none with `pattern`. A partitioned topic is named without its partitions. */
  readonly topics: readonly string[];
  /**
   * In place of names, where the transport has `pattern-subscriptions`: all topics of one namespace that it means, those
   * that come later too (S-42). It names its namespace: see `topicPattern`. @default none
   */
  readonly pattern?: RegExp | undefined;
  readonly subscription: string;
  readonly type: SubscriptionType;
  readonly initialPosition: InitialPosition;
  /** How many messages may lie in the client beyond those being handled. */
  readonly prefetch: number;
  /** Shown by the broker; unique per process. */
  readonly consumerName: string;
  /** Key_Shared only. @default 'disabled' */
  readonly orderedNegativeAck?: OrderedNegativeAckMode | undefined;
}

/** All that a specification may have. */
export const SUBSCRIPTION_FIELDS: readonly (keyof SubscriptionSpec)[] = [
  'topics',
  'pattern',
  'subscription',
  'type',
  'initialPosition',
  'prefetch',
  'consumerName',
  'orderedNegativeAck',
];

/** What it takes from, in words: for logs and errors. */
export function sourceText({ topics, pattern }: Pick<SubscriptionSpec, 'topics' | 'pattern'>): string {
  return pattern === undefined ? topics.join(', ') : `pattern ${String(pattern)}`;
}

/** Types on which one message can be asked back alone; on the others a request resends everything (N-31). */
export function redeliversSingly(type: SubscriptionType): boolean {
  return type === 'shared' || type === 'key-shared';
}

/** What is wrong with the values of a specification, which may come from anywhere. Whether others are there is not asked. */
export function checkSubscriptionFields(
  spec: { readonly [K in keyof SubscriptionSpec]: unknown },
  check: OptionChecker,
): void {
  const { topics, pattern, prefetch } = spec;
  check.required(spec, {
    topics: 'a list of at least one topic name',
    subscription: 'the name of a subscription',
    consumerName: 'a text that is not empty',
    type: `one of ${SUBSCRIPTION_TYPES.join(', ')}`,
    initialPosition: 'earliest or latest',
    prefetch: 'a whole number of 0 or more',
  });
  if (pattern !== undefined) {
    if (!(pattern instanceof RegExp)) check.problem(`"pattern" must be a RegExp, got ${describeValue(pattern)}`);
    if (!Array.isArray(topics) || topics.length > 0) check.problem('"topics" must be an empty list beside "pattern"');
  } else if (topics !== undefined && (!Array.isArray(topics) || topics.length === 0)) {
    check.problem(`"topics" must be a list of at least one topic name, got ${describeValue(topics)}`);
  }
  check.nonEmptyString('subscription', spec.subscription);
  check.nonEmptyString('consumerName', spec.consumerName);
  check.oneOf('type', spec.type, SUBSCRIPTION_TYPES);
  check.oneOf('initialPosition', spec.initialPosition, ['earliest', 'latest']);
  check.oneOf('orderedNegativeAck', spec.orderedNegativeAck, ORDERED_NEGATIVE_ACK_MODES);
  if (prefetch !== undefined && (!Number.isSafeInteger(prefetch) || Number(prefetch) < 0)) {
    check.problem(`"prefetch" must be a whole number of 0 or more, got ${describeValue(prefetch)}`);
  }
}
