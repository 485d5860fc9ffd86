// One chunk of a message that was larger than an entry may be: what its producer says of it, checked before anything of it
// is kept. Its numbers come from whoever may publish to the topic. Nothing in this folder knows how chunks travel.
import type { EntryPosition } from '../core/message-id.js';
import { seconds } from '../core/options.js';

/** What a consumer keeps of messages whose chunks have not all come, per topic or partition. */
export interface ChunkLimits {
  /** Incomplete messages. */
  readonly maxIncomplete: number;
  /** How long one of them waits for its next chunk; `Infinity` for ever. */
  readonly expireMs: number;
  /** Of one message: its chunks together, and what they are after decompression. */
  readonly maxMessageBytes: number;
}

/** The first two as Java's client: maxPendingChunkedMessage, expireTimeOfIncompleteChunkedMessage. It has no third. */
export const DEFAULT_CHUNK_LIMITS: ChunkLimits = {
  maxIncomplete: 10,
  expireMs: seconds(60),
  maxMessageBytes: 64 * 1024 * 1024,
};

/** A list of entries is kept for each message, so tiny chunks are refused as well as huge sums. */
export const MAX_CHUNKS = 10_000;
/** Numbers of chunks and bytes are signed 32 bits in the protocol. */
export const MAX_CHUNKED_BYTES = 2 ** 31 - 1;

/** Which part of which message an entry is, as its producer says. */
export interface ChunkOfMessage {
  /** The same for all chunks of a message, another one for each message of a producer. */
  readonly uuid: string;
  /** From 0. */
  readonly index: number;
  /** Of the message: how many chunks, and bytes in all. */
  readonly count: number;
  readonly totalBytes: number;
}

/** What is known of the entry beside it. */
export interface ChunkEntry {
  readonly producerName: string;
  readonly publishTimeMs: number;
  /** Of this chunk. */
  readonly bytes: number;
  /** Of the message after decompression; 0 when it is not compressed. */
  readonly uncompressedBytes: number;
}

/** A chunk that can be joined. */
export interface Chunk extends Omit<ChunkOfMessage, 'uuid'> {
  /** The same for all chunks of a message: its producer and the id that the producer gave it. */
  readonly key: string;
  /** When its producer began the message. */
  readonly publishTimeMs: number;
}

/** @returns a text that says why it cannot be joined. */
export function joinableChunk(of: ChunkOfMessage, entry: ChunkEntry, maxMessageBytes: number): Chunk | string {
  const { uuid, index, count, totalBytes } = of;
  const { producerName, publishTimeMs, bytes, uncompressedBytes } = entry;
  const what = `it is chunk ${index} of a message in ${count} chunks`;
  if (uuid === '') return `${what} that has no uuid`;
  if (index < 0 || index >= count || count > MAX_CHUNKS) return `${what}, at most ${MAX_CHUNKS}, the first is 0`;
  if (totalBytes < bytes) return `${what} of ${totalBytes} bytes in all, and has ${bytes} itself`;
  const largest = Math.max(totalBytes, uncompressedBytes);
  if (largest > maxMessageBytes) return `${what} of ${largest} bytes, "maxChunkedMessageBytes" is ${maxMessageBytes}`;
  return { key: JSON.stringify([producerName, uuid]), index, count, totalBytes, publishTimeMs };
}

/** Unique for the producer; the same when the message is published again, so that pieces of the first attempt are known. */
export function chunkUuid(producerName: string, sequenceId: number): string {
  return `${producerName}-${sequenceId}`;
}

/** Where a message in chunks is: where its last one is, and where it begins. */
export function chunkedPlace<Place extends EntryPosition>(
  last: Place,
  { ledgerId, entryId, partition }: EntryPosition,
): Place & { readonly firstChunk?: EntryPosition } {
  // The broker had the last one before: it does not say where.
  return last.ledgerId < 0 ? last : { ...last, firstChunk: { ledgerId, entryId, partition } };
}
