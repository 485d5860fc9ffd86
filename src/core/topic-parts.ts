// A subscription on several topics has a part for each, partitions one by one: which parts a call is about, the same for
// every transport.
import { PulseworkError, describeValue } from './errors.js';
import type { MessageId } from './message-id.js';
import { checkMessageId, checkMessageIdList } from './message-id.js';

/** By full topic name; a Map is one. */
export interface TopicParts<P> {
  readonly size: number;
  get(topic: string): P | undefined;
  values(): Iterable<P>;
}

export type SeekTarget = MessageId | Date | 'earliest' | 'latest';

/**
 * The part that a message came from; of an id without a topic the only one. Undefined where there is none.
 * @throws PulseworkError MESSAGE_ID_INVALID
 */
export function partOf<P>(parts: TopicParts<P>, id: MessageId): P | undefined {
  checkMessageId(id);
  const part = parts.get(id.topic);
  if (part !== undefined || id.topic !== '' || parts.size !== 1) return part;
  const [only] = parts.values();
  return only;
}

/** What is wrong with an id whose topic has no part. */
export function notOfSubscription(subscription: string, id: MessageId): PulseworkError {
  const rule = `subscription "${subscription}" has no topic ${describeValue(id.topic)} that this message id names`;
  return new PulseworkError('MESSAGE_ID_INVALID', rule);
}

/** Each part with its ids, in their order. @throws PulseworkError MESSAGE_ID_INVALID for what is no list */
export function groupedByPart<P>(ids: readonly MessageId[], partFor: (id: MessageId) => P): Map<P, MessageId[]> {
  checkMessageIdList(ids);
  const byPart = new Map<P, MessageId[]>();
  for (const id of ids) {
    const part = partFor(id);
    const own = byPart.get(part);
    if (own === undefined) byPart.set(part, [id]);
    else own.push(id);
  }
  return byPart;
}

/**
 * Whether a seek moves the one part that a message came from; false: it moves all of them.
 * @throws PulseworkError MESSAGE_ID_INVALID for what is no target
 */
export function seeksMessage(to: SeekTarget): to is MessageId {
  if (to === 'earliest' || to === 'latest') return false;
  if (to instanceof Date && !Number.isNaN(to.getTime())) return false;
  if (typeof to === 'object' && (to as unknown) !== null && !(to instanceof Date)) return true;
  const rule = `seek takes a message id, a valid Date, "earliest" or "latest", got ${describeValue(to)}`;
  throw new PulseworkError('MESSAGE_ID_INVALID', rule);
}
