// Which Failover consumer is the active one (S-02): on a partition by its number, elsewhere by a hash ring over the
// topic name. Not the first to subscribe.
import type { BrokerConsumer } from './broker-consumer.js';
import { partitionOf } from '../core/topic-name.js';
import { murmur3 } from '../core/key-hash.js';

const POINTS_PER_CONSUMER = 100;

/** @param consumers in any order; only those of the lowest priority number count. @returns undefined for no consumers. */
export function chooseActive<C extends Pick<BrokerConsumer, 'name' | 'priority'>>(
  topic: string,
  consumers: readonly C[],
): C | undefined {
  const sorted = consumers.toSorted((a, b) => a.priority - b.priority || compareText(a.name, b.name));
  const top = sorted.filter((consumer) => consumer.priority === sorted[0]?.priority);
  const partition = partitionOf(topic);
  return partition >= 0 ? top[partition % top.length] : ownerOnRing(murmur3(topic), top);
}

function ownerOnRing<C extends { readonly name: string }>(hash: number, consumers: readonly C[]): C | undefined {
  const points = new Map<number, C>();
  for (const consumer of consumers) {
    for (let i = 0; i < POINTS_PER_CONSUMER; i++) points.set(murmur3(`${consumer.name}${i}`), consumer);
  }
  const sorted = [...points.keys()].sort((a, b) => a - b);
  const ceiling = sorted.find((point) => point >= hash) ?? sorted[0];
  return ceiling === undefined ? undefined : points.get(ceiling);
}

/** By UTF-16 unit, as Java compares names. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
