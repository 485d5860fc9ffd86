// Time to live of messages (S-29): at an interval everything published too long ago counts as acknowledged, in each
// subscription, whoever holds it. There is a timer only where messages expire.
import { minutes } from '../core/options.js';
import type { Clock } from '../ports/clock.js';
import type { BrokerTopic } from './broker-topic.js';

/** As Pulsar's messageExpiryCheckIntervalInMinutes. */
const CHECK_EVERY_MS = minutes(5);

/** @param ttlMs 0: messages never expire. */
export function startMessageExpiry(clock: Clock, ttlMs: number, topics: () => Iterable<BrokerTopic>): void {
  if (ttlMs === 0) return;
  const check = (): void => {
    for (const topic of topics()) topic.expire(clock.now() - ttlMs);
    clock.setTimer(CHECK_EVERY_MS, check);
  };
  clock.setTimer(CHECK_EVERY_MS, check);
}
