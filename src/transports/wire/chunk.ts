// One chunk of a message that was larger than an entry may be: what its metadata says, checked before anything of it is
// kept. Its numbers come from whoever may publish to the topic.
import { seconds } from '../../core/options.js';
import type { Entry } from './protocol/frames.js';

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

export interface Chunk {
  /** The same for all chunks of a message: its producer and the id that the producer gave it. */
  readonly key: string;
  /** From 0. */
  readonly index: number;
  /** Of the message: how many chunks, bytes in all, and when its producer began it. */
  readonly count: number;
  readonly totalBytes: number;
  readonly publishTimeMs: number;
}

/** @returns undefined for an entry that is no chunk; a text says why it cannot be joined. */
export function chunkOf({ metadata, payload }: Entry, maxMessageBytes: number): Chunk | string | undefined {
  const bytes = payload.length;
  const { numChunksFromMsg: count = 1, chunkId: index = -1, totalChunkMsgSize: totalBytes = -1, uuid = '' } = metadata;
  if (count <= 1) return undefined;
  const what = `it is chunk ${index} of a message in ${count} chunks`;
  if (metadata.numMessagesInBatch !== undefined) return `${what}, and a batch`;
  if (uuid === '') return `${what} that has no uuid`;
  if (index < 0 || index >= count || count > MAX_CHUNKS) return `${what}, at most ${MAX_CHUNKS}, the first is 0`;
  if (totalBytes < bytes) return `${what} of ${totalBytes} bytes in all, and has ${bytes} itself`;
  const largest = Math.max(totalBytes, metadata.uncompressedSize ?? 0);
  if (largest > maxMessageBytes) return `${what} of ${largest} bytes, "maxChunkedMessageBytes" is ${maxMessageBytes}`;
  const { producerName, publishTime } = metadata;
  return { key: JSON.stringify([producerName, uuid]), index, count, totalBytes, publishTimeMs: publishTime };
}
