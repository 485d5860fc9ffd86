// Publishes a message that is larger than the broker takes: cut into chunks, one entry each, the same fields on each piece.
import { MAX_CHUNKS, chunkUuid, chunkedPlace } from '../../chunks/chunk.js';
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { ProducerHandle } from '../../broker/producer-handle.js';

export interface ChunkSizes {
  /** What the broker takes for one entry: payload, properties and keys. */
  readonly maxEntryBytes: number;
  /** Of payload in one chunk; `Infinity` for as much as fits. */
  readonly maxChunkBytes: number;
}

/** The receipt comes when all chunks are stored, and is that of the last one; in one entry when it fits. */
export async function publishInChunks(
  producer: ProducerHandle,
  message: EncodedMessage,
  sequenceId: number,
  sizes: ChunkSizes,
  transaction?: string,
): Promise<MessageId> {
  const copy = producer.copyOf(message, sequenceId);
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = copy;
  const room = payload === null ? Infinity : roomFor(payload.length, copy.bytes - payload.length, sizes);
  if (payload === null || payload.length <= room) return producer.publish(copy, sequenceId, undefined, transaction);
  const { length: totalBytes } = payload;
  const count = Math.ceil(totalBytes / room);
  const uuid = chunkUuid(producer.producerName, sequenceId);
  // All of them in this turn: nothing else of this producer comes between.
  const publishing = Array.from({ length: count }, (_, index) => {
    const piece = payload.subarray(index * room, (index + 1) * room);
    const part = { payload: piece, key, orderingKey, properties, eventTimeMs, deliverAtMs };
    return producer.publish(part, sequenceId, { uuid, index, count, totalBytes }, transaction);
  });
  const ids = await Promise.all(publishing);
  return chunkedPlace(ids[count - 1] as MessageId, ids[0] as MessageId);
}

/** For payload in one entry; all of it when it is not to be cut: each chunk has all properties, so these must leave room. */
function roomFor(bytes: number, headBytes: number, { maxEntryBytes, maxChunkBytes }: ChunkSizes): number {
  const room = Math.min(maxChunkBytes, maxEntryBytes - headBytes);
  return room < Math.min(headBytes, maxChunkBytes) || bytes / room > MAX_CHUNKS ? Infinity : room;
}
