// What a namespace lists, where the partitions of a topic stand one by one, and the topics that this means.
import { partitionName, partitionOf, withoutPartition } from '../../core/topic-name.js';

/**
 * The topics to attach to: those of a partitioned topic are all of its partitions, and neither twice nor together with a
 * plain topic of the same name, which is an accident of a client that did not ask for partitions. @param partitions their number by topic; 0 or absent where it has none.
 */
export function attachable(listed: Iterable<string>, partitions: ReadonlyMap<string, number>): readonly string[] {
  const topics = new Set<string>();
  for (const name of listed) {
    const base = withoutPartition(name);
    const count = partitions.get(base) ?? 0;
    if (count === 0) topics.add(name);
    for (let index = 0; index < count; index++) topics.add(partitionName(base, index));
  }
  return [...topics];
}

/** Topics of which single partitions are listed: how many of each. */
export function listedPartitions(listed: Iterable<string>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of listed) {
    if (partitionOf(name) < 0) continue;
    const base = withoutPartition(name);
    counts.set(base, (counts.get(base) ?? 0) + 1);
  }
  return counts;
}
