// How a subscription's messages reach its consumers: one dispatcher per type, replaced when the type changes (S-05).
import type { SubscriptionType } from '../core/subscription-spec.js';
import type { Clock } from '../ports/clock.js';
import type { AckSet } from './ack-set.js';
import type { BrokerConsumer } from './broker-consumer.js';
import type { ResolvedBrokerOptions } from './broker-options.js';
import type { Cursor } from './cursor.js';
import type { TopicLog } from './topic-log.js';
import type { EntryPart } from './transactions/pending-positions.js';

/** What dispatchers get from their subscription. */
export interface DispatchContext {
  /** Full topic name. */
  readonly topic: string;
  readonly log: TopicLog;
  readonly cursor: Cursor;
  readonly clock: Clock;
  readonly options: ResolvedBrokerOptions;
  /** Whether delivery times are honoured at all: on topics that keep nothing they are not. */
  readonly honoursDelays: boolean;
  /** Asks for a call of `dispatch` in the broker's next turn. */
  schedule(): void;
  /** Runs `report` in the next turn: clients are never called inside a call that they make. */
  later(report: () => void): void;
  /** The store refused the entry at this position: it counts as acknowledged. */
  skip(position: number): void;
  /** No message of the entry may be sent: acknowledged in a transaction that is open (T-15). It comes by `freed`, or never. */
  withholds(position: number): boolean;
  /** The messages of a batch that may be sent; undefined for all. */
  unackedOf(position: number): AckSet | undefined;
}

export interface DispatcherStats {
  /** Entries that wait to be delivered again. */
  readonly replay: number;
  /** Entries parked until their delivery time. */
  readonly delayed: number;
  /** Redelivery requests counted for entries that are still unacknowledged. */
  readonly redeliveries: number;
  readonly blocked: boolean;
  readonly drainingHashes: number;
  readonly retryingHashes: number;
  readonly retryingPositions: number;
}

export const NOTHING_WAITS: DispatcherStats = {
  replay: 0,
  delayed: 0,
  redeliveries: 0,
  blocked: false,
  drainingHashes: 0,
  retryingHashes: 0,
  retryingPositions: 0,
};

export interface Dispatcher {
  readonly type: SubscriptionType;
  readonly consumers: readonly BrokerConsumer[];
  /** @throws TransportError NOT_ALLOWED when Key_Shared has no hashes for it; then nothing has changed (G-09). */
  add(consumer: BrokerConsumer): void;
  /** What it holds goes back, uncounted (S-24, A-18). */
  remove(consumer: BrokerConsumer): void;
  isActive(consumer: BrokerConsumer): boolean;
  /** Ids that are not pending at this consumer are ignored (S-22). Exclusive and Failover send everything again. */
  redeliver(consumer: BrokerConsumer, positions: Iterable<number>): void;
  /**
   * Of `nacked` it learns that they failed: on ordered Key_Shared nothing later of their keys is sent until they are
   * acknowledged (K-24). `returned` come again uncounted (K-27), where single entries can. What is not pending at this
   * consumer is ignored.
   */
  negativeAcknowledgeOrdered(consumer: BrokerConsumer, nacked: Iterable<number>, returned: Iterable<number>): void;
  /** The whole entry was acknowledged by `consumer`, by someone else on its behalf or, undefined, by a commit. */
  acknowledged(consumer: BrokerConsumer | undefined, position: number): void;
  /** One message of a batch was acknowledged. */
  acknowledgedOne(consumer: BrokerConsumer | undefined, position: number): void;
  /** Acknowledged in a transaction: whoever holds it does so no more (T-19). What waits for its key still waits. */
  left(part: EntryPart): void;
  /**
   * A transaction aborted, these were acknowledged in it: sent again with their count raised (T-17). On Exclusive and Failover
   * what the active consumer was sent is not sent again by itself, but what was withheld from it is.
   */
  freed(positions: readonly number[]): void;
  /** Everything in `from` to `to`, both included, was acknowledged; what lies before was already. */
  acknowledgedUpTo(from: number, to: number): void;
  /** Takes out all consumers: what they hold is forgotten in one step. @returns them */
  removeAll(): readonly BrokerConsumer[];
  /** Takes out the consumers that a seek disconnects (S-28). @returns them */
  removeForSeek(): readonly BrokerConsumer[];
  /** The cursor was set anew. */
  reset(): void;
  /** Sends what can be sent. */
  dispatch(): void;
  stats(): DispatcherStats;
}
