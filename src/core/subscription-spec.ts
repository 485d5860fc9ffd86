// What to subscribe to and how, as a handler asks for it and a transport is told.

/**
 * `exclusive`: one consumer. `failover`: one active, others stand by. `shared`: many, no order.
 * `key-shared`: many, one consumer per key at a time.
 */
export type SubscriptionType = 'exclusive' | 'failover' | 'shared' | 'key-shared';
export const SUBSCRIPTION_TYPES: readonly SubscriptionType[] = ['exclusive', 'failover', 'shared', 'key-shared'];

/** `key`: one run per key at a time, in order. `partition`: the same per topic partition. */
export type Ordering = 'none' | 'key' | 'partition';

/** Where a subscription that does not exist yet begins; ignored when it exists (S-27). */
export type InitialPosition = 'earliest' | 'latest';

export interface SubscriptionSpec {
  /** Full topic names, at least one. A partitioned topic is named without its partitions. */
  readonly topics: readonly string[];
  readonly subscription: string;
  readonly type: SubscriptionType;
  readonly initialPosition: InitialPosition;
  /** How many messages may lie in the client beyond those being handled. */
  readonly prefetch: number;
  /** Shown by the broker; unique per process. */
  readonly consumerName: string;
}

/** Types on which one message can be asked back alone; on the others a request resends everything (N-31). */
export function redeliversSingly(type: SubscriptionType): boolean {
  return type === 'shared' || type === 'key-shared';
}
