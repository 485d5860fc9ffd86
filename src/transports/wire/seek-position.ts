// Where a subscription is moved to, as a SEEK says it.
import type { SeekTarget } from '../../core/topic-parts.js';
import { AckSet } from './ack-set.js';
import type { CommandBody } from './protocol/commands.js';
import type { MessageIdData } from './protocol/message-metadata.js';

/** Positions that stand for the ends of a topic. */
export const EARLIEST: MessageIdData = { ledgerId: -1, entryId: -1 };
export const LATEST: MessageIdData = { ledgerId: Infinity, entryId: Infinity };

export function seekPosition(to: SeekTarget): Pick<CommandBody<'SEEK'>, 'messageId' | 'messagePublishTime'> {
  if (to instanceof Date) return { messagePublishTime: to.getTime() };
  if (to === 'earliest') return { messageId: EARLIEST };
  if (to === 'latest') return { messageId: LATEST };
  const { batchIndex, batchSize, firstChunk } = to;
  const { ledgerId, entryId } = firstChunk ?? to;
  if (batchIndex < 1 || batchSize < 1) return { messageId: { ledgerId, entryId } };
  const wanted = new AckSet(batchSize);
  wanted.clearThrough(batchIndex - 1);
  return { messageId: { ledgerId, entryId, ackSet: wanted.words() } };
}
