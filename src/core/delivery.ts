// One arrival of a message at a handler: what user code sees.
import type { MessageId } from './message-id.js';
import type { MessageProperties } from './properties.js';

export interface Delivery<P = unknown> {
  /** Decoded, and checked by the topic's schema where it has one. */
  readonly payload: P;
  readonly id: MessageId;
  /**
   * The place of the message on its topic (of a partitioned one, its partition) as text that sorts as the topic is ordered. A
   * fencing token: a store that keeps the last one of each key with what it wrote for it refuses what comes too late.
   */
  readonly position: string;
  /** Full topic name without a partition. */
  readonly topic: string;
  /** The id of the message as it came first, as text: the same on every attempt, published again or not. */
  readonly originId: string;
  readonly subscription: string;
  /** The handler's name, e.g. `Billing.charge`. */
  readonly handler: string;
  /** Text; base64 where the producer wrote bytes, as other clients show it. */
  readonly key: string | undefined;
  readonly orderingKey: Uint8Array | undefined;
  /** The original properties, the same on every attempt. */
  readonly properties: MessageProperties;
  /** Epoch milliseconds. */
  readonly publishTimeMs: number;
  /** Epoch milliseconds, as the publisher set it. */
  readonly eventTimeMs: number | undefined;
  /**
   * 1 on the first delivery, one more after each failed one. Never lower than what this process has seen and never
   * counting what was not a failure; across a crash it is a lower bound.
   */
  readonly attempt: number;
  readonly maxDeliveries: number;
  /** The broker's own count, for the record; see `attempt`. */
  readonly redeliveryCount: number;
  readonly correlationId: string | undefined;
  /** Aborted when the run's time is up or a drain's deadline has passed. Made only when read. */
  readonly signal: AbortSignal;
}
