// What the broker tells about a topic: backlog, permits, counts. Used by tests and operators.
import type { AccessMode } from '../core/access-mode.js';
import type { SubscriptionType } from '../core/subscription-spec.js';
import type { BrokerTopic } from './broker-topic.js';
import { NOTHING_WAITS } from './dispatcher.js';
import type { TopicSubscription } from './topic-subscription.js';

export interface ConsumerStats {
  readonly name: string;
  /** Messages it may get; below zero after a batch. */
  readonly permits: number;
  /** Messages it holds unacknowledged. */
  readonly unacked: number;
  /** True when it holds too many and gets no more for now. */
  readonly blocked: boolean;
  /** False for a Failover consumer that stands by. */
  readonly active: boolean;
  /** Messages sent to it since it connected. */
  readonly delivered: number;
  /** Messages that it asked back since it connected, each time anew. */
  readonly redelivered: number;
  /** Messages per second that it asked back in the last full minute, as Pulsar's msgRateRedeliver. */
  readonly redeliveryRate: number;
}

export interface SubscriptionStats {
  readonly name: string;
  /** Undefined before its first consumer. */
  readonly type: SubscriptionType | undefined;
  /** Entries not acknowledged; a producer batch counts as one. */
  readonly backlog: number;
  /** Messages that consumers hold unacknowledged. */
  readonly unacked: number;
  /** Entries that wait to be delivered again. */
  readonly replay: number;
  /** Entries parked until their delivery time. */
  readonly delayed: number;
  /** Redelivery requests counted for entries that are still unacknowledged. */
  readonly redeliveries: number;
  /** Messages per second that its consumers asked back in the last full minute, as Pulsar's msgRateRedeliver. */
  readonly redeliveryRate: number;
  /** True when too much is unacknowledged and no new entries are read. */
  readonly blocked: boolean;
  /** Key hashes whose old owner still holds entries (Key_Shared). */
  readonly drainingHashes: number;
  /** Key hashes of which nothing later than a failed entry is sent, as Pulsar's retryingHashesCount (K-31). */
  readonly retryingHashes: number;
  /** Failed entries that they wait for, as Pulsar's retryingPositionsCount (K-31). */
  readonly retryingPositions: number;
  readonly consumers: readonly ConsumerStats[];
}

export interface ProducerStats {
  readonly name: string;
  readonly accessMode: AccessMode;
}

export interface TopicStats {
  /** Full name. */
  readonly topic: string;
  /** 0 for a topic without partitions. The figures of a partitioned topic are sums over its partitions. */
  readonly partitions: number;
  readonly messagesIn: number;
  readonly ledgers: number;
  /** Entries that are kept, acknowledged or not. */
  readonly entries: number;
  readonly subscriptions: ReadonlyMap<string, SubscriptionStats>;
  /** Of each partition those that may publish. */
  readonly producers: readonly ProducerStats[];
  /** Producers in line for exclusive access. */
  readonly waitingProducers: number;
  /** Whether it, or each of its partitions, takes no more messages. */
  readonly terminated: boolean;
}

export function topicStats(
  name: string,
  partitions: number,
  topics: readonly BrokerTopic[],
  nowMs: number,
): TopicStats {
  const subscriptions = new Map<string, SubscriptionStats>();
  for (const topic of topics) {
    for (const subscription of topic.subscriptions.values()) {
      const own = subscriptionStats(subscription, nowMs);
      const known = subscriptions.get(own.name);
      subscriptions.set(own.name, known === undefined ? own : sum(known, own));
    }
  }
  const stored = topics.filter(({ isVolatile }) => !isVolatile);
  return {
    topic: name,
    partitions,
    messagesIn: topics.reduce((total, topic) => total + topic.messagesIn, 0),
    ledgers: stored.reduce((total, topic) => total + topic.log.ledgerCount, 0),
    entries: stored.reduce((total, topic) => total + topic.log.end - topic.log.first, 0),
    subscriptions,
    producers: topics.flatMap(({ producers }) => producers.live.map(({ name, accessMode }) => ({ name, accessMode }))),
    waitingProducers: topics.reduce((total, topic) => total + topic.producers.waiting, 0),
    terminated: topics.every(({ isTerminated }) => isTerminated),
  };
}

function subscriptionStats(subscription: TopicSubscription, nowMs: number): SubscriptionStats {
  const consumers = subscription.consumers.map((consumer) => ({
    name: consumer.name,
    permits: consumer.permits,
    unacked: consumer.unacked,
    blocked: consumer.blocked,
    active: subscription.isActive(consumer),
    delivered: consumer.delivered,
    redelivered: consumer.redeliveries.total,
    redeliveryRate: consumer.redeliveries.perSecond(nowMs),
  }));
  return {
    name: subscription.name,
    type: subscription.type,
    backlog: subscription.backlog,
    unacked: consumers.reduce((total, consumer) => total + consumer.unacked, 0),
    redeliveryRate: consumers.reduce((total, consumer) => total + consumer.redeliveryRate, 0),
    ...(subscription.dispatcherStats ?? NOTHING_WAITS),
    consumers,
  };
}

function sum(a: SubscriptionStats, b: SubscriptionStats): SubscriptionStats {
  return {
    name: a.name,
    type: a.type ?? b.type,
    backlog: a.backlog + b.backlog,
    unacked: a.unacked + b.unacked,
    replay: a.replay + b.replay,
    delayed: a.delayed + b.delayed,
    redeliveries: a.redeliveries + b.redeliveries,
    redeliveryRate: a.redeliveryRate + b.redeliveryRate,
    blocked: a.blocked || b.blocked,
    drainingHashes: a.drainingHashes + b.drainingHashes,
    retryingHashes: a.retryingHashes + b.retryingHashes,
    retryingPositions: a.retryingPositions + b.retryingPositions,
    consumers: [...a.consumers, ...b.consumers],
  };
}
