// From messages to the SEND frame that carries them: a single message, or a batch with the metadata of each.
import { keyText } from '../../core/key-hash.js';
import type { EncodedMessage } from '../../core/message.js';
import type { PendingEntry } from './pending-entries.js';
import type { OutgoingBatch } from './outgoing-batch.js';
import type { CompressionCodec } from './protocol/compression.js';
import { encodeSend } from './protocol/frames.js';
import type { KeyValue, MessageMetadata } from './protocol/message-metadata.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';

const NO_BYTES = Buffer.alloc(0);

export interface EntryOrigin {
  readonly producerId: number;
  readonly producerName: string;
  readonly publishTimeMs: number;
  /** The broker's number of the schema that the payloads are by. */
  readonly schemaVersion?: Uint8Array | undefined;
  readonly compression?: { readonly number: number; readonly codec: CompressionCodec } | undefined;
  /** What the entry is a part of. */
  readonly transaction?: OpenTransaction | undefined;
}

/** One entry for all of `batch`. @param byKey its messages share their key, see `encodeBatch`. */
export function entryOf(batch: OutgoingBatch, byKey: boolean, origin: EntryOrigin): PendingEntry {
  const { size, receipts } = batch;
  const sequenceId = batchSequenceId(batch, byKey);
  origin.transaction?.checkMayChange();
  const frame = size > 1 ? encodeBatch(batch, byKey, origin) : encodeSingle(batch.first, sequenceId, origin);
  return { sequenceId, frame, receipts, sentBefore: false, transaction: origin.transaction };
}

/** One message as one entry. */
export function encodeSingle(message: EncodedMessage, sequenceId: number, origin: EntryOrigin): Buffer {
  const body = compressed(message.payload ?? NO_BYTES, origin);
  const metadata = singleMetadata(message, sequenceId, origin, body);
  return encodeSend(
    { producerId: origin.producerId, sequenceId, ...transactionFields(origin) },
    metadata,
    body.payload,
  );
}

/** What stands beside the payload of a message that is not in a batch. */
export function singleMetadata(
  message: EncodedMessage,
  sequenceId: number,
  origin: EntryOrigin,
  { compression, uncompressedSize }: CompressedPayload,
): MessageMetadata {
  return {
    producerName: origin.producerName,
    sequenceId,
    publishTime: origin.publishTimeMs,
    ...keyFields(message),
    properties: propertyList(message.properties),
    eventTime: message.eventTimeMs,
    deliverAtTime: message.deliverAtMs,
    nullValue: message.payload === null ? true : undefined,
    compression,
    uncompressedSize,
    schemaVersion: origin.schemaVersion,
    ...transactionFields(origin),
  };
}

/**
 * Several messages as one entry. @param byKey all have one key: the entry then goes by its highest sequence id and does
 * not tell another (G-02), since the batches of other keys hold ids in between. Otherwise by its lowest, and tells both.
 */
export function encodeBatch(batch: OutgoingBatch, byKey: boolean, origin: EntryOrigin): Buffer {
  const { payload, compression, uncompressedSize } = compressed(batch.payload(), origin);
  const sequenceId = batchSequenceId(batch, byKey);
  const highestSequenceId = byKey ? undefined : batch.highestId;
  const { producerId, producerName, publishTimeMs, schemaVersion } = origin;
  const inTransaction = transactionFields(origin);
  const metadata: MessageMetadata = {
    producerName,
    sequenceId,
    publishTime: publishTimeMs,
    ...keyFields(batch.first),
    compression,
    uncompressedSize,
    schemaVersion,
    numMessagesInBatch: batch.size,
    highestSequenceId,
    ...inTransaction,
  };
  const send = { producerId, sequenceId, numMessages: batch.size, highestSequenceId, ...inTransaction };
  return encodeSend(send, metadata, payload);
}

/** The same in the command and in the metadata; none for an entry that is no part of a transaction. */
export function transactionFields({
  transaction,
}: EntryOrigin): { readonly txnidMostBits: bigint; readonly txnidLeastBits: bigint } | undefined {
  if (transaction === undefined) return undefined;
  return { txnidMostBits: transaction.id.mostBits, txnidLeastBits: transaction.id.leastBits };
}

/** The id that stands for a batch, in its frame and in its receipt. */
export function batchSequenceId({ lowestId, highestId }: OutgoingBatch, byKey: boolean): number {
  return byKey ? highestId : lowestId;
}

/** A payload as it is sent, and what says how to read it. */
export interface CompressedPayload {
  readonly payload: Uint8Array;
  readonly compression?: number;
  readonly uncompressedSize?: number;
}

/** The payload of an entry; compression that does not make it smaller would only cost those who read it. */
export function compressed(payload: Uint8Array, { compression }: EntryOrigin): CompressedPayload {
  if (compression === undefined || payload.length === 0) return { payload };
  const smaller = compression.codec.compress(payload);
  if (smaller.length >= payload.length) return { payload };
  return { payload: smaller, compression: compression.number, uncompressedSize: payload.length };
}

/** The key fields, the same in the metadata of an entry and of a message in a batch. */
function keyFields({ key, orderingKey }: Pick<EncodedMessage, 'key' | 'orderingKey'>): {
  partitionKey?: string | undefined;
  partitionKeyB64Encoded?: true | undefined;
  orderingKey?: Uint8Array | undefined;
} {
  return {
    partitionKey: key === undefined ? undefined : keyText(key),
    partitionKeyB64Encoded: key === undefined || typeof key === 'string' ? undefined : true,
    orderingKey,
  };
}

function propertyList(properties: Readonly<Record<string, string>>): KeyValue[] | undefined {
  let list: KeyValue[] | undefined;
  for (const key in properties) (list ??= []).push({ key, value: properties[key] ?? '' });
  return list;
}
