// What the broker tells about a topic: backlog, permits, counts. Used by tests and operators.
import type { SubscriptionType } from '../core/subscription-spec.js';
import type { BrokerTopic } from './broker-topic.js';
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
  /** True when too much is unacknowledged and no new entries are read. */
  readonly blocked: boolean;
  /** Key hashes whose old owner still holds entries (Key_Shared). */
  readonly drainingHashes: number;
  readonly consumers: readonly ConsumerStats[];
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
}

export function topicStats(name: string, partitions: number, topics: readonly BrokerTopic[]): TopicStats {
  const subscriptions = new Map<string, SubscriptionStats>();
  for (const topic of topics) {
    for (const subscription of topic.subscriptions.values()) {
      const own = subscriptionStats(subscription);
      const known = subscriptions.get(own.name);
      subscriptions.set(own.name, known === undefined ? own : sum(known, own));
    }
  }
  return {
    topic: name,
    partitions,
    messagesIn: topics.reduce((total, topic) => total + topic.messagesIn, 0),
    ledgers: topics.reduce((total, topic) => total + topic.log.ledgerCount, 0),
    entries: topics.reduce((total, topic) => total + topic.log.end - topic.log.first, 0),
    subscriptions,
  };
}

function subscriptionStats(subscription: TopicSubscription): SubscriptionStats {
  const consumers = subscription.consumers.map((consumer) => ({
    name: consumer.name,
    permits: consumer.permits,
    unacked: consumer.unacked,
    blocked: consumer.blocked,
    active: subscription.isActive(consumer),
    delivered: consumer.delivered,
  }));
  const none = { replay: 0, delayed: 0, redeliveries: 0, blocked: false, drainingHashes: 0 };
  return {
    name: subscription.name,
    type: subscription.type,
    backlog: subscription.backlog,
    unacked: consumers.reduce((total, consumer) => total + consumer.unacked, 0),
    ...(subscription.dispatcherStats ?? none),
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
    blocked: a.blocked || b.blocked,
    drainingHashes: a.drainingHashes + b.drainingHashes,
    consumers: [...a.consumers, ...b.consumers],
  };
}
