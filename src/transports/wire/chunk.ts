// What the metadata of an entry says of a chunk.
import { joinableChunk } from '../../chunks/chunk.js';
import type { Chunk } from '../../chunks/chunk.js';
import type { Entry } from './protocol/frames.js';

/** @returns undefined for an entry that is no chunk; a text says why it cannot be joined. */
export function chunkOf({ metadata, payload }: Entry, maxMessageBytes: number): Chunk | string | undefined {
  const { numChunksFromMsg: count = 1, chunkId: index = -1, totalChunkMsgSize: totalBytes = -1, uuid = '' } = metadata;
  if (count <= 1) return undefined;
  if (metadata.numMessagesInBatch !== undefined) {
    return `it is chunk ${index} of a message in ${count} chunks, and a batch`;
  }
  const { producerName, publishTime: publishTimeMs, uncompressedSize: uncompressedBytes = 0 } = metadata;
  const entry = { producerName, publishTimeMs, uncompressedBytes, bytes: payload.length };
  return joinableChunk({ uuid, index, count, totalBytes }, entry, maxMessageBytes);
}
