// Cuts a message that is larger than an entry may be: the same metadata on each piece, and room below what the broker
// takes.
import { MAX_CHUNKED_BYTES, MAX_CHUNKS, chunkUuid } from '../../chunks/chunk.js';
import type { EncodedMessage } from '../../core/message.js';
import { compressed, singleMetadata, transactionFields } from './entry-encoder.js';
import type { EntryOrigin } from './entry-encoder.js';
import { encodeSend, sectionBytesOf } from './protocol/frames.js';

/**
 * Kept free below the broker's limit: its storage adds a header to each entry, and where the storage has the same limit an
 * entry between the two gets no receipt and no error, and disturbs every topic of that broker.
 */
const RESERVED_BYTES = 10 * 1024;

const NO_BYTES = Buffer.alloc(0);

export interface ChunkSizes {
  /** What the broker takes for one entry, metadata included. */
  readonly maxEntryBytes: number;
  /** Of payload in one chunk; `Infinity` for as much as fits. */
  readonly maxChunkBytes: number;
}

/**
 * The SEND frames of a message: one when it fits. Compressed first, then cut. @returns undefined when it cannot be cut:
 * each chunk has all properties, so these must leave room.
 */
export function chunkFramesOf(
  message: EncodedMessage,
  sequenceId: number,
  origin: EntryOrigin,
  { maxEntryBytes, maxChunkBytes }: ChunkSizes,
): readonly Buffer[] | undefined {
  const { producerId, producerName } = origin;
  const body = compressed(message.payload ?? NO_BYTES, origin);
  const { payload } = body;
  const whole = singleMetadata(message, sequenceId, origin, body);
  const chunk = { ...whole, uuid: chunkUuid(producerName, sequenceId), totalChunkMsgSize: payload.length };
  const inTransaction = transactionFields(origin);
  const send = { producerId, sequenceId, isChunk: true, ...inTransaction };
  const largest = { ...chunk, numChunksFromMsg: MAX_CHUNKED_BYTES, chunkId: MAX_CHUNKED_BYTES };
  const headBytes = sectionBytesOf(encodeSend(send, { ...largest, totalChunkMsgSize: MAX_CHUNKED_BYTES }, NO_BYTES));
  const room = Math.min(maxChunkBytes, maxEntryBytes - headBytes - RESERVED_BYTES);
  // Readers refuse an entry that is larger than one may be once it is decompressed.
  const isSmall = payload.length <= room && (body.uncompressedSize ?? 0) <= maxEntryBytes;
  if (isSmall) return [encodeSend({ producerId, sequenceId, ...inTransaction }, whole, payload)];
  if (room < Math.min(headBytes, maxChunkBytes) || payload.length > MAX_CHUNKED_BYTES) return undefined;
  const bytes = payload.length > room ? room : Math.ceil(payload.length / 2);
  const numChunksFromMsg = Math.ceil(payload.length / bytes);
  if (numChunksFromMsg > MAX_CHUNKS) return undefined;
  return Array.from({ length: numChunksFromMsg }, (_, chunkId) => {
    const piece = payload.subarray(chunkId * bytes, (chunkId + 1) * bytes);
    return encodeSend(send, { ...chunk, numChunksFromMsg, chunkId }, piece);
  });
}
