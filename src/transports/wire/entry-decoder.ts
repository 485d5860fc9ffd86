// From an entry as the broker sends it to the messages in it: checksum, codec, batch, keys and properties. Codecs may
// have to be loaded first; entries then wait in line, so that their order stays.
import type { MessageKey, ReceivedMessage } from '../../core/message.js';
import type { MessageProperties } from '../../core/properties.js';
import { NO_PROPERTIES } from '../../core/properties.js';
import { AckSet } from './ack-set.js';
import { decodeBatch } from './protocol/batch.js';
import type { BatchedMessage } from './protocol/batch.js';
import type { CommandBody } from './protocol/commands.js';
import { decompress, loadCodec, loadedCodec } from './protocol/compression.js';
import { VALIDATION_ERRORS, decodeEntry } from './protocol/frames.js';
import type { CorruptEntry, Entry } from './protocol/frames.js';
import type { KeyValue, MessageMetadata } from './protocol/message-metadata.js';
import { WireFormatError } from './protocol/wire-format-error.js';

export type DecodedEntry =
  | {
      readonly kind: 'messages';
      /** Those that are still to be acknowledged, in order. */
      readonly messages: readonly ReceivedMessage[];
      /** Permits that the broker took for the entry. */
      readonly charged: number;
      /** Of a batch: which are left. */
      readonly left: AckSet | undefined;
    }
  /** Not for applications: acknowledge it, give its permits back. */
  | { readonly kind: 'marker'; readonly charged: number }
  /** Ciphertext without a key: neither delivered nor acknowledged. */
  | { readonly kind: 'encrypted'; readonly charged: number }
  | { readonly kind: 'corrupt'; readonly charged: number; readonly fault: CorruptEntry };

export interface EntryPlace {
  readonly topic: string;
  readonly partition: number;
  readonly connection: number;
  readonly maxMessageBytes: number;
}

/** Decodes one entry; a promise only when its codec is not loaded yet. Never throws or rejects. */
export function decodeArrival(
  message: CommandBody<'MESSAGE'>,
  section: Buffer,
  place: EntryPlace,
): DecodedEntry | Promise<DecodedEntry> {
  const entry = decodeEntry(section);
  if ('reason' in entry) return { kind: 'corrupt', charged: 1, fault: entry };
  const { metadata } = entry;
  const left = batchLeft(metadata, message.ackSet);
  const charged = left === undefined ? 1 : countOf(left);
  if (metadata.markerType !== undefined) return { kind: 'marker', charged };
  if (metadata.encryptionKeys !== undefined) return { kind: 'encrypted', charged };
  const whole = { entry, message, place, left, charged };
  const codecNumber = metadata.compression ?? 0;
  if (codecNumber === 0 || loadedCodec(codecNumber) !== undefined) return decodeWhole(whole);
  return loadCodec(codecNumber).then(
    () => decodeWhole(whole),
    (error: unknown) => corrupt(charged, VALIDATION_ERRORS.decompression, String(error)),
  );
}

interface WholeEntry {
  readonly entry: Entry;
  readonly message: CommandBody<'MESSAGE'>;
  readonly place: EntryPlace;
  readonly left: AckSet | undefined;
  readonly charged: number;
}

function decodeWhole(whole: WholeEntry): DecodedEntry {
  const { entry, left, charged, place } = whole;
  const size = entry.metadata.uncompressedSize ?? 0;
  if (size > place.maxMessageBytes) {
    return corrupt(charged, VALIDATION_ERRORS.uncompressedSize, `a payload of ${size} bytes after decompression`);
  }
  let step: number = VALIDATION_ERRORS.decompression;
  try {
    const codec = loadedCodec(entry.metadata.compression ?? 0);
    const payload = codec === undefined ? entry.payload : decompress(codec, entry.payload, size);
    step = VALIDATION_ERRORS.batch;
    const messages = left === undefined ? [single(whole, payload)] : batched(whole, payload, left);
    return { kind: 'messages', messages, charged, left };
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
    return corrupt(charged, step, error.message);
  }
}

function single({ entry: { metadata }, message, place }: WholeEntry, payload: Buffer): ReceivedMessage {
  return {
    id: { ...positionOf(message), partition: place.partition, batchIndex: -1, batchSize: 0, topic: place.topic },
    payload: metadata.nullValue === true ? null : Buffer.from(payload),
    key: keyOf(metadata),
    orderingKey: copyOf(metadata.orderingKey),
    properties: propertiesOf(metadata.properties),
    eventTimeMs: timeOf(metadata.eventTime),
    ...fromEntry(metadata, message, place),
  };
}

function batched(whole: WholeEntry, payload: Buffer, left: AckSet): ReceivedMessage[] {
  const { metadata } = whole.entry;
  const messages: ReceivedMessage[] = [];
  for (const one of decodeBatch(payload, left.size, metadata.compactedBatchIndexes)) {
    if (one.metadata.compactedOut === true) left.clear(one.index);
    else if (left.has(one.index)) messages.push(batchedMessage(whole, one, left.size));
  }
  return messages;
}

function batchedMessage(whole: WholeEntry, one: BatchedMessage, batchSize: number): ReceivedMessage {
  const { message, place, entry } = whole;
  const { index: batchIndex, metadata, payload } = one;
  return {
    id: { ...positionOf(message), partition: place.partition, batchIndex, batchSize, topic: place.topic },
    payload: metadata.nullValue === true ? null : Buffer.from(payload),
    key: keyOf(metadata),
    orderingKey: copyOf(metadata.orderingKey),
    properties: propertiesOf(metadata.properties),
    eventTimeMs: timeOf(metadata.eventTime),
    ...fromEntry(entry.metadata, message, place),
  };
}

/** What all messages of an entry share. */
function fromEntry(metadata: MessageMetadata, message: CommandBody<'MESSAGE'>, place: EntryPlace) {
  return {
    deliverAtMs: metadata.deliverAtTime,
    publishTimeMs: metadata.publishTime,
    redeliveryCount: message.redeliveryCount ?? 0,
    producerName: metadata.producerName,
    connection: place.connection,
  };
}

function batchLeft(metadata: MessageMetadata, ackSet: readonly bigint[] | undefined): AckSet | undefined {
  const size = metadata.numMessagesInBatch;
  if (size === undefined || metadata.encryptionKeys !== undefined) return undefined;
  // A count that no entry can have must not make a large set; decodeBatch refuses the entry.
  return new AckSet(Math.min(Math.max(size, 0), MAX_BATCH), ackSet);
}

/** Far above what fits into an entry: each message takes five bytes or more of 5 MiB. */
const MAX_BATCH = 2 ** 21;

function countOf(left: AckSet): number {
  let count = 0;
  for (let index = 0; index < left.size; index++) if (left.has(index)) count += 1;
  return count;
}

function corrupt(charged: number, validationError: number, reason: string): DecodedEntry {
  return { kind: 'corrupt', charged, fault: { validationError, reason } };
}

function positionOf({ messageId }: CommandBody<'MESSAGE'>): { readonly ledgerId: number; readonly entryId: number } {
  return { ledgerId: messageId.ledgerId, entryId: messageId.entryId };
}

function keyOf(metadata: {
  readonly partitionKey?: string | undefined;
  readonly partitionKeyB64Encoded?: boolean | undefined;
  readonly nullPartitionKey?: boolean | undefined;
}): MessageKey | undefined {
  if (metadata.partitionKey === undefined || metadata.nullPartitionKey === true) return undefined;
  return metadata.partitionKeyB64Encoded === true
    ? Buffer.from(metadata.partitionKey, 'base64')
    : metadata.partitionKey;
}

/** 0 means not set. */
function timeOf(time: number | undefined): number | undefined {
  return time === undefined || time === 0 ? undefined : time;
}

/** The view would keep the whole read buffer in memory. */
function copyOf(bytes: Uint8Array | undefined): Uint8Array | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes);
}

/** Without a prototype: a property may be called `__proto__`. Of equal names the last counts, as in other clients. */
function propertiesOf(list: readonly KeyValue[] | undefined): MessageProperties {
  if (list === undefined) return NO_PROPERTIES;
  const properties = Object.create(null) as Record<string, string>;
  for (const { key, value } of list) properties[key] = value;
  return properties;
}
