// Topic names: short and full forms, partitions, and the names derived from a topic and a subscription.
import { PulseworkError, describeValue } from './errors.js';
import type { Topic } from './topic.js';

export const DEFAULT_NAMESPACE = 'public/default';

const DOMAINS = ['persistent', 'non-persistent'];
/** `-partition-0`, `-partition-12`; not `-partition-01` or `-partition--1` (S-40). */
const PARTITION_SUFFIX = /-partition-(0|[1-9]\d*)$/;

/**
 * The full name `persistent://tenant/namespace/topic` of a topic (S-41: `t` and `tenant/ns/t` are short forms).
 * @param namespace where a name without a tenant belongs, `tenant/namespace`.
 * @throws PulseworkError TOPIC_NAME_INVALID
 */
export function fullTopicName(name: string, namespace: string = DEFAULT_NAMESPACE): string {
  const [domain, path] = splitDomain(name);
  const parts = path.split('/');
  if (parts.some((part) => part.trim() === '')) throw invalidName(name, 'no part of it may be empty');
  if (parts.length === 3) return `${domain}://${path}`;
  if (parts.length === 1 && !name.includes('://')) return `persistent://${namespace}/${path}`;
  throw invalidName(name, 'use "topic", "tenant/namespace/topic" or "persistent://tenant/namespace/topic"');
}

/** What is wrong with a namespace, or undefined: it must be `tenant/namespace`. */
export function namespaceProblem(namespace: unknown): string | undefined {
  if (typeof namespace === 'string' && /^[^/\s]+\/[^/\s]+$/.test(namespace)) return undefined;
  return `"namespace" must be "tenant/namespace", got ${describeValue(namespace)}`;
}

/** The number of the partition that a topic name ends in, -1 when it names no partition. */
export function partitionOf(topic: string): number {
  const match = PARTITION_SUFFIX.exec(topic);
  return match === null ? -1 : Number(match[1]);
}

export function withoutPartition(topic: string): string {
  return topic.replace(PARTITION_SUFFIX, '');
}

/** The name of partition `index`; a name that already ends in a partition stays as it is (S-40). */
export function partitionName(topic: string, index: number): string {
  return PARTITION_SUFFIX.test(topic) ? topic : `${topic}-partition-${index}`;
}

/** The last part of a topic name, e.g. `orders`: what people call it. */
export function localName(topic: string): string {
  return topic.slice(topic.lastIndexOf('/') + 1);
}

/**
 * `<topic>-<subscription>-DLQ` with the full topic name and without a partition, as Java names it (D-08).
 * @param topic a name or a `topic()`; of a short one the result is short too.
 */
export function deadLetterTopicName(topic: string | Topic<never>, subscription: string): string {
  return `${withoutPartition(nameOf(topic))}-${subscription}-DLQ`;
}

/** `<topic>-<subscription>-RETRY`, named alike (D-08). @param topic a name or a `topic()`. */
export function retryTopicName(topic: string | Topic<never>, subscription: string): string {
  return `${withoutPartition(nameOf(topic))}-${subscription}-RETRY`;
}

function nameOf(topic: string | Topic<never>): string {
  return typeof topic === 'string' ? topic : topic.name;
}

function splitDomain(name: string): [domain: string, path: string] {
  if (typeof (name as unknown) !== 'string') throw invalidName(name, 'it must be a text');
  const at = name.indexOf('://');
  if (at < 0) return ['persistent', name];
  const domain = name.slice(0, at);
  if (!DOMAINS.includes(domain)) throw invalidName(name, `the domain must be one of ${DOMAINS.join(', ')}`);
  return [domain, name.slice(at + 3)];
}

function invalidName(name: unknown, rule: string): PulseworkError {
  return new PulseworkError('TOPIC_NAME_INVALID', `topic name ${describeValue(name)} is not valid: ${rule}`);
}
