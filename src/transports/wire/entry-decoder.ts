// From an entry as the broker sends it to the messages in it: checksum, codec, batch, keys and properties. Codecs may
// have to be loaded first; entries then wait in line, so that their order stays.
import { toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { EntryPosition } from '../../core/message-id.js';
import { AckSet, MAX_BATCH_SIZE } from './ack-set.js';
import { chunkOf } from './chunk.js';
import type { Chunk } from '../../chunks/chunk.js';
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
      /** What was compacted away of it: nobody will ever acknowledge it, so it must not keep the entry. */
      readonly gone: AckSet | undefined;
    }
  /** A part of a message: see `decodeJoined`. */
  | { readonly kind: 'chunk'; readonly charged: number; readonly chunk: Chunk; readonly whole: WholeEntry }
  /** Not for applications: acknowledge it, give its permits back. */
  | { readonly kind: 'marker'; readonly charged: number }
  /** What its producer wrote, but not for this client: ciphertext, a codec or a form that it does not know. */
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
  /** The same for one that came in chunks. */
  readonly maxChunkedMessageBytes: number;
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
  const chunk = inexact ?? unreadableReason(metadata) ?? chunkOf(entry, place.maxChunkedMessageBytes);
  if (typeof chunk === 'string') return { kind: 'unreadable', charged, reason: chunk };
  return decodeWithCodec({ entry, message, place, left, charged, chunk });
}

function decodeWithCodec(whole: WholeEntry): DecodedEntry | Promise<DecodedEntry> {
  const codecNumber = whole.entry.metadata.compression ?? 0;
  if (codecNumber === 0 || loadedCodec(codecNumber) !== undefined) return decodeWhole(whole);
  return loadCodec(codecNumber).then(
    () => decodeWhole(whole),
    (error: unknown) => ({ kind: 'unreadable', charged: whole.charged, reason: toError(error).message }),
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
  return undefined;
}

/** An entry that can be read, and what arrived with it. */
export interface WholeEntry {
  readonly entry: Entry;
  readonly message: CommandBody<'MESSAGE'>;
  readonly place: EntryPlace;
  readonly left: AckSet | undefined;
  readonly charged: number;
  readonly chunk: Chunk | undefined;
}

function decodeWhole(whole: WholeEntry): DecodedEntry {
  const { entry, left, charged, place, chunk } = whole;
  if (chunk !== undefined) return { kind: 'chunk', charged, chunk, whole };
  const size = entry.metadata.uncompressedSize ?? 0;
  if (size > place.maxMessageBytes) {
    return { kind: 'unreadable', charged, reason: `a payload of ${size} bytes after decompression` };
  }
  try {
    const codec = loadedCodec(entry.metadata.compression ?? 0);
    const payload = codec === undefined ? entry.payload : decompress(codec, entry.payload, size);
    if (left === undefined)
      return { kind: 'messages', messages: [single(whole, payload)], charged, left, gone: undefined };
    return { kind: 'messages', ...batched(whole, payload, left), charged, left };
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
    return { kind: 'unreadable', charged, reason: error.message };
  }
}

/**
 * The message of which `whole` is a chunk: fields as that chunk has them. @param payload of all chunks, its own memory.
 * @param askedBack redeliveries that were no failures. @returns a text when the payload cannot be decompressed.
 */
export function decodeJoined(
  { entry, message, place }: WholeEntry,
  payload: Buffer,
  joined: { readonly first: EntryPosition; readonly last: EntryPosition; readonly askedBack: number },
): ReceivedMessage | string {
  const { metadata } = entry;
  const { ledgerId, entryId, partition } = joined.last;
  try {
    const codec = loadedCodec(metadata.compression ?? 0);
    const own = codec === undefined ? payload : decompress(codec, payload, metadata.uncompressedSize ?? 0);
    return {
      ...single({ entry, message, place }, NO_BYTES),
      id: { ledgerId, entryId, partition, batchIndex: -1, batchSize: 0, topic: place.topic, firstChunk: joined.first },
      payload: metadata.nullValue === true ? null : own,
      redeliveryCount: Math.max(0, place.redeliveryCount - joined.askedBack),
    };
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
    return error.message;
  }
}

const NO_BYTES = Buffer.alloc(0);

type SingleEntry = Pick<WholeEntry, 'entry' | 'message' | 'place'>;

function single({ entry: { metadata }, message, place }: SingleEntry, payload: Buffer): ReceivedMessage {
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

function batched(
  whole: WholeEntry,
  payload: Buffer,
  left: AckSet,
): { readonly messages: ReceivedMessage[]; readonly gone: AckSet | undefined } {
  const { compactedBatchIndexes } = whole.entry.metadata;
  const messages: ReceivedMessage[] = [];
  const gone = new AckSet(left.size);
  const pieces = new CopiedPieces(payload);
  for (const one of decodeBatch(payload, left.size, compactedBatchIndexes)) {
    if (one.metadata.compactedOut === true) continue;
    gone.clear(one.index);
    if (left.has(one.index)) messages.push(batchedMessage(whole, one, left.size, pieces));
  }
  left.subtract(gone);
  return { messages, gone: gone.isEmpty ? undefined : gone };
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
