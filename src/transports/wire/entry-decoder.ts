// From an entry as the broker sends it to the messages in it: checksum, codec, batch, keys and properties. Codecs may
// have to be loaded first; entries then wait in line, so that their order stays.
import { toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import { AckSet, MAX_BATCH_SIZE } from './ack-set.js';
import { CopiedPieces } from './copied-pieces.js';
import { copyOf, keyOf, propertiesOf, timeOf } from './message-fields.js';
import { decodeBatch } from './protocol/batch.js';
import type { BatchedMessage } from './protocol/batch.js';
import type { CommandBody } from './protocol/commands.js';
import { decompress, loadCodec, loadedCodec } from './protocol/compression.js';
import { VALIDATION_ERRORS, decodeEntry } from './protocol/frames.js';
import type { Entry } from './protocol/frames.js';
import type { MessageMetadata } from './protocol/message-metadata.js';
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
  /** What its producer wrote, but not for this client: ciphertext, a chunk, a codec or a form that it does not know. */
  | { readonly kind: 'unreadable'; readonly charged: number; readonly reason: string }
  /** Not what its producer wrote. */
  | { readonly kind: 'corrupt'; readonly charged: number; readonly reason: string };

export interface EntryPlace {
  readonly topic: string;
  readonly partition: number;
  /** Of the entry: what the broker counts, corrected by who asked for redeliveries. */
  readonly redeliveryCount: number;
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
  const inexact = inexactReason(message);
  if ('reason' in entry) {
    const stays = inexact !== undefined || entry.validationError !== VALIDATION_ERRORS.checksum;
    return { kind: stays ? 'unreadable' : 'corrupt', charged: 1, reason: entry.reason };
  }
  const { metadata } = entry;
  const size = metadata.numMessagesInBatch;
  if (size !== undefined && size > MAX_BATCH_SIZE) {
    return { kind: 'unreadable', charged: size, reason: `a batch of ${size} messages` };
  }
  const left = size === undefined ? undefined : new AckSet(Math.max(size, 0), message.ackSet);
  const charged = left === undefined ? 1 : left.count;
  if (metadata.markerType !== undefined && inexact === undefined) return { kind: 'marker', charged };
  const reason = inexact ?? unreadableReason(metadata);
  if (reason !== undefined) return { kind: 'unreadable', charged, reason };
  const whole = { entry, message, place, left, charged };
  const codecNumber = metadata.compression ?? 0;
  if (codecNumber === 0 || loadedCodec(codecNumber) !== undefined) return decodeWhole(whole);
  return loadCodec(codecNumber).then(
    () => decodeWhole(whole),
    (error: unknown) => ({ kind: 'unreadable', charged, reason: toError(error).message }),
  );
}

/** Where to acknowledge it, or ask for it again, is not known exactly: the rounded number is the place of another entry. */
function inexactReason({ messageId: { ledgerId, entryId } }: CommandBody<'MESSAGE'>): string | undefined {
  if (Number.isSafeInteger(ledgerId) && Number.isSafeInteger(entryId)) return undefined;
  return 'its message id has a number above 2^53-1';
}

/** What only another client can read. Handing it on as it is would pass off something else as the message. */
function unreadableReason(metadata: MessageMetadata): string | undefined {
  const [key] = metadata.encryptionKeys ?? [];
  if (key !== undefined) return `it is encrypted with the key "${key.key}", and this client has no keys`;
  const { chunkId, numChunksFromMsg: chunks = 1 } = metadata;
  if (chunks > 1)
    return `it is chunk ${chunkId ?? 0} of a message in ${chunks} chunks, which this client does not join`;
  return undefined;
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
    return { kind: 'unreadable', charged, reason: `a payload of ${size} bytes after decompression` };
  }
  try {
    const codec = loadedCodec(entry.metadata.compression ?? 0);
    const payload = codec === undefined ? entry.payload : decompress(codec, entry.payload, size);
    const messages = left === undefined ? [single(whole, payload)] : batched(whole, payload, left);
    return { kind: 'messages', messages, charged, left };
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
    return { kind: 'unreadable', charged, reason: error.message };
  }
}

function single({ entry: { metadata }, message, place }: WholeEntry, payload: Buffer): ReceivedMessage {
  const { ledgerId, entryId } = message.messageId;
  const { partition, topic } = place;
  return {
    id: { ledgerId, entryId, partition, batchIndex: -1, batchSize: 0, topic },
    payload: metadata.nullValue === true ? null : Buffer.from(payload),
    key: keyOf(metadata),
    orderingKey: copyOf(metadata.orderingKey),
    properties: propertiesOf(metadata.properties),
    eventTimeMs: timeOf(metadata.eventTime),
    deliverAtMs: metadata.deliverAtTime,
    publishTimeMs: metadata.publishTime,
    redeliveryCount: place.redeliveryCount,
    producerName: metadata.producerName,
    connection: place.connection,
  };
}

function batched(whole: WholeEntry, payload: Buffer, left: AckSet): ReceivedMessage[] {
  const { compactedBatchIndexes } = whole.entry.metadata;
  const messages: ReceivedMessage[] = [];
  /** What the broker compacted away: nobody will ever acknowledge it, so it must not keep the entry. */
  const gone = new AckSet(left.size);
  const pieces = new CopiedPieces(payload);
  for (const one of decodeBatch(payload, left.size, compactedBatchIndexes)) {
    if (one.metadata.compactedOut === true) continue;
    gone.clear(one.index);
    if (left.has(one.index)) messages.push(batchedMessage(whole, one, left.size, pieces));
  }
  left.subtract(gone);
  return messages;
}

/** One literal without spreading: this runs for each message of each batch. */
function batchedMessage(
  { message, place, entry }: WholeEntry,
  { index: batchIndex, metadata, start, end }: BatchedMessage,
  batchSize: number,
  pieces: CopiedPieces,
): ReceivedMessage {
  const { ledgerId, entryId } = message.messageId;
  return {
    id: { ledgerId, entryId, partition: place.partition, batchIndex, batchSize, topic: place.topic },
    payload: metadata.nullValue === true ? null : pieces.copy(start, end),
    key: keyOf(metadata),
    orderingKey: copyOf(metadata.orderingKey),
    properties: propertiesOf(metadata.properties),
    eventTimeMs: timeOf(metadata.eventTime),
    deliverAtMs: entry.metadata.deliverAtTime,
    publishTimeMs: entry.metadata.publishTime,
    redeliveryCount: place.redeliveryCount,
    producerName: entry.metadata.producerName,
    connection: place.connection,
  };
}
