// The identity of a message on a broker: one text form, one equality, one order (S-46: all four numbers count).
import { PulseworkError, describeValue } from './errors.js';

/** Where a message is kept. Numbers are whole, up to 2^53-1; larger ones are refused by name. */
export interface MessageId {
  readonly ledgerId: number;
  readonly entryId: number;
  /** The partition of a partitioned topic, -1 when the topic has none. */
  readonly partition: number;
  /** The place inside a producer batch, -1 when the entry is not a batch. */
  readonly batchIndex: number;
  /** How many messages the entry holds, 0 when it is not a batch. */
  readonly batchSize: number;
  /** Full name of the topic the message came from, with `-partition-N` where it has one; '' when unknown. */
  readonly topic: string;
  /**
   * Of a message that its producer cut into chunks, which the other fields name by its last one: the entry of the first.
   * Not part of the text form, of equality or of order, as in Java: the last chunk alone tells messages apart. Absent for
   * a message that lies in one entry.
   */
  readonly firstChunk?: EntryPosition | undefined;
}

/** The entry of a message: what brokers redeliver. Messages of one producer batch share it. */
export interface EntryPosition {
  readonly ledgerId: number;
  readonly entryId: number;
  readonly partition: number;
}

/** Java's text form: `ledger:entry:partition`, with `:batchIndex` for a message of a batch. */
export function formatMessageId(id: MessageId): string {
  const entry = `${id.ledgerId}:${id.entryId}:${id.partition}`;
  return id.batchIndex < 0 ? entry : `${entry}:${id.batchIndex}`;
}

/**
 * Reads the text form. The batch size and the topic are not part of it.
 * @throws PulseworkError MESSAGE_ID_INVALID on another form or a number above 2^53-1.
 */
export function parseMessageId(text: string, topic = ''): MessageId {
  const match = /^(-?\d+):(-?\d+):(-?\d+)(?::(-?\d+))?$/.exec(text);
  if (match === null) {
    throw new PulseworkError(
      'MESSAGE_ID_INVALID',
      `message id must be ledger:entry:partition[:batch], got ${describeValue(text)}`,
    );
  }
  const [ledgerId = 0, entryId = 0, partition = 0, batchIndex = -1] = match
    .slice(1)
    .filter((part) => (part as string | undefined) !== undefined)
    .map(Number);
  const id = { ledgerId, entryId, partition, batchIndex, batchSize: 0, topic };
  checkMessageId(id);
  return id;
}

/** @throws PulseworkError MESSAGE_ID_INVALID naming the field that is not a whole number within 2^53-1. */
export function checkMessageId(id: MessageId): void {
  if (typeof id !== 'object' || (id as unknown) === null)
    throw new PulseworkError('MESSAGE_ID_INVALID', `message id must be an object, got ${describeValue(id)}`);
  const { ledgerId, entryId, partition, batchIndex, batchSize, firstChunk } = id;
  // One by one in the good case: it is asked of each acknowledgement.
  const isWhole = Number.isSafeInteger;
  if (!isWhole(ledgerId) || !isWhole(entryId) || !isWhole(partition) || !isWhole(batchIndex) || !isWhole(batchSize)) {
    const fields = Object.entries({ ledgerId, entryId, partition, batchIndex, batchSize });
    const [field, value] = fields.find(([, number]) => !isWhole(number)) ?? [];
    const rule = `message id field ${field} must be a whole number up to 2^53-1`;
    throw new PulseworkError('MESSAGE_ID_INVALID', `${rule}, got ${describeValue(value)}`);
  }
  if (firstChunk === undefined) return;
  if (Number.isSafeInteger(firstChunk.ledgerId) && Number.isSafeInteger(firstChunk.entryId)) return;
  const rule = 'message id field firstChunk must name an entry by whole numbers up to 2^53-1';
  throw new PulseworkError('MESSAGE_ID_INVALID', `${rule}, got ${describeValue(firstChunk)}`);
}

/** @throws PulseworkError MESSAGE_ID_INVALID for what is no list; its items are for `checkMessageId`. */
export function checkMessageIdList(ids: readonly MessageId[]): void {
  if (Array.isArray(ids)) return;
  throw new PulseworkError('MESSAGE_ID_INVALID', `message ids must be a list, got ${describeValue(ids)}`);
}

/**
 * The place of a message on its topic (partitions each for itself) as text of one length, which sorts as the topic is
 * ordered: ledger, entry, place in a batch.
 */
export function positionText({ ledgerId, entryId, batchIndex }: MessageId): string {
  return `${digits(ledgerId, 16)}-${digits(entryId, 16)}-${digits(batchIndex + 1, 8)}`;
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0');
}

/** The same message: ledger, entry, partition and batch index are equal. */
export function sameMessageId(a: MessageId, b: MessageId): boolean {
  return sameEntry(a, b) && a.batchIndex === b.batchIndex;
}

/** The same entry, whatever the batch index. */
export function sameEntry(a: EntryPosition, b: EntryPosition): boolean {
  return a.ledgerId === b.ledgerId && a.entryId === b.entryId && a.partition === b.partition;
}

/** Negative when `a` comes first on its topic: by ledger, entry, batch index; the partition only breaks ties. */
export function compareMessageIds(a: MessageId, b: MessageId): number {
  return a.ledgerId - b.ledgerId || a.entryId - b.entryId || a.batchIndex - b.batchIndex || a.partition - b.partition;
}
