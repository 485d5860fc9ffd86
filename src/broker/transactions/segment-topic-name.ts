// Names of segments, the parts of a scalable topic: `segment://tenant/namespace/topic/0000-7fff-3` holds the keys whose hashes
// lie in the range, both ends included, and has a number of its own (T-48).
import { PulseworkError } from '../../core/errors.js';

export interface SegmentTopicName {
  readonly tenant: string;
  readonly namespace: string;
  /** The topic that it is a part of, without tenant and namespace. */
  readonly topic: string;
  /** 0 to 65,535, as is `hashEnd`. */
  readonly hashStart: number;
  readonly hashEnd: number;
  readonly segmentId: number;
}

const DOMAIN = 'segment://';

/** Whether a full topic name is one of a segment, by its domain. */
export function isSegmentTopic(name: string): boolean {
  // Callers without types are answered by whoever checks the name.
  return typeof (name as unknown) === 'string' && name.startsWith(DOMAIN);
}

/** Hashes with four hexadecimal digits, the number with as many as it needs. */
export function formatSegmentTopicName(name: SegmentTopicName): string {
  const { tenant, namespace, topic, hashStart, hashEnd, segmentId } = name;
  return `${DOMAIN}${tenant}/${namespace}/${topic}/${hexadecimal(hashStart)}-${hexadecimal(hashEnd)}-${segmentId}`;
}

/** @throws PulseworkError TOPIC_NAME_INVALID */
export function parseSegmentTopicName(name: string): SegmentTopicName {
  if (!isSegmentTopic(name)) throw invalid(`Invalid segment topic name: it must start with ${DOMAIN}. Got: ${name}`);
  const [tenant = '', namespace = '', ...local] = name.slice(DOMAIN.length).split('/');
  const descriptor = local.pop() ?? '';
  const topic = local.join('/');
  if (tenant === '' || namespace === '' || topic === '' || descriptor === '') {
    const expected = "local name must contain '<parent-topic>/<hashStart>-<hashEnd>-<segmentId>'";
    throw invalid(`Invalid segment topic name: ${expected}. Got: ${name}`);
  }
  return { tenant, namespace, topic, ...parseDescriptor(descriptor) };
}

function parseDescriptor(descriptor: string): Pick<SegmentTopicName, 'hashStart' | 'hashEnd' | 'segmentId'> {
  const match = /^([0-9a-f]{1,4})-([0-9a-f]{1,4})-(\d+)$/i.exec(descriptor);
  const [hashStart, hashEnd, segmentId] = [
    parseInt(match?.[1] ?? '', 16),
    parseInt(match?.[2] ?? '', 16),
    Number(match?.[3]),
  ];
  if (match === null || hashStart > hashEnd || !Number.isSafeInteger(segmentId)) {
    throw invalid(`Invalid segment descriptor: expected '<hexStart>-<hexEnd>-<segmentId>', got: '${descriptor}'`);
  }
  return { hashStart, hashEnd, segmentId };
}

function hexadecimal(hash: number): string {
  return hash.toString(16).padStart(4, '0');
}

function invalid(text: string): PulseworkError {
  return new PulseworkError('TOPIC_NAME_INVALID', text);
}
