// From messages to the SEND frame that carries them: a single message, or a batch with the metadata of each.
import { keyText } from '../../core/key-hash.js';
import type { EncodedMessage } from '../../core/message.js';
import type { PendingEntry } from './pending-entries.js';
import type { PendingMessage } from './pending-message.js';
import { BatchWriter } from './protocol/batch.js';
import type { CompressionCodec } from './protocol/compression.js';
import { encodeSend } from './protocol/frames.js';
import type { KeyValue, MessageMetadata } from './protocol/message-metadata.js';

const NO_BYTES = Buffer.alloc(0);

export interface EntryOrigin {
  readonly producerId: number;
  readonly producerName: string;
  readonly publishTimeMs: number;
  readonly compression?: { readonly number: number; readonly codec: CompressionCodec } | undefined;
}

/** Reused for every batch: nothing waits between the first write and the frame. */
const batchWriter = new BatchWriter();

/** One entry for all of `messages`. @param byKey they share their key, see `encodeBatch`. */
export function entryOf(messages: readonly PendingMessage[], byKey: boolean, origin: EntryOrigin): PendingEntry {
  const [first] = messages;
  if (messages.length === 1 && first !== undefined) {
    const { message, sequenceId } = first;
    return { sequenceId, frame: encodeSingle(message, sequenceId, origin), messages };
  }
  return { sequenceId: batchSequenceId(messages, byKey), frame: encodeBatch(messages, byKey, origin), messages };
}

/** One message as one entry. */
export function encodeSingle(message: EncodedMessage, sequenceId: number, origin: EntryOrigin): Buffer {
  const { payload, compression, uncompressedSize } = compressed(message.payload ?? NO_BYTES, origin);
  const metadata: MessageMetadata = {
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
  };
  return encodeSend({ producerId: origin.producerId, sequenceId }, metadata, payload);
}

/**
 * Several messages as one entry. @param byKey all have one key: the entry then goes by its highest sequence id and does
 * not tell another (G-02), since the batches of other keys hold ids in between. Otherwise by its lowest, and tells both.
 */
export function encodeBatch(messages: readonly PendingMessage[], byKey: boolean, origin: EntryOrigin): Buffer {
  batchWriter.reset();
  for (const { message, sequenceId } of messages) writeBatched(message, sequenceId);
  const { payload, compression, uncompressedSize } = compressed(batchWriter.view(), origin);
  const sequenceId = batchSequenceId(messages, byKey);
  const highestSequenceId = byKey ? undefined : messages[messages.length - 1]?.sequenceId;
  const { producerId, producerName, publishTimeMs } = origin;
  const metadata: MessageMetadata = {
    producerName,
    sequenceId,
    publishTime: publishTimeMs,
    ...keyFields(messages[0]?.message ?? {}),
    compression,
    uncompressedSize,
    numMessagesInBatch: messages.length,
    highestSequenceId,
  };
  return encodeSend({ producerId, sequenceId, numMessages: messages.length, highestSequenceId }, metadata, payload);
}

/** The id that stands for a batch, in its frame and in its receipt. */
export function batchSequenceId(messages: readonly PendingMessage[], byKey: boolean): number {
  return messages[byKey ? messages.length - 1 : 0]?.sequenceId ?? -1;
}

/** One literal, and the short one for what most messages are: this runs for each message of each batch. */
function writeBatched(message: EncodedMessage, sequenceId: number): void {
  const { key, orderingKey, properties, eventTimeMs } = message;
  const payload = message.payload ?? NO_BYTES;
  const list = propertyList(properties);
  if (key === undefined && orderingKey === undefined && list === undefined && eventTimeMs === undefined) {
    const nullValue = message.payload === null ? true : undefined;
    return batchWriter.add({ payloadSize: payload.length, sequenceId, nullValue }, payload);
  }
  const metadata = {
    properties: list,
    partitionKey: key === undefined ? undefined : keyText(key),
    partitionKeyB64Encoded: key === undefined || typeof key === 'string' ? undefined : true,
    orderingKey,
    payloadSize: payload.length,
    eventTime: eventTimeMs,
    sequenceId,
    nullValue: message.payload === null ? true : undefined,
  };
  batchWriter.add(metadata, payload);
}

/** The payload of an entry; compression that does not make it smaller would only cost those who read it. */
function compressed(
  payload: Uint8Array,
  { compression }: EntryOrigin,
): { payload: Uint8Array; compression?: number; uncompressedSize?: number } {
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
