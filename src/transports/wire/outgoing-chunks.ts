// The chunks of one message on their way: it is stored once each of them has its receipt.
import { chunkedPlace } from '../../chunks/chunk.js';
import { chunkFramesOf } from './chunk-encoder.js';
import type { ChunkSizes } from './chunk-encoder.js';
import type { EntryOrigin } from './entry-encoder.js';
import type { OutgoingBatch } from './outgoing-batch.js';
import type { PendingEntry } from './pending-entries.js';
import type { EntryPlace } from './pending-receipts.js';

/** What makes an entry a chunk. */
export interface OutgoingChunk {
  readonly index: number;
  readonly of: OutgoingChunks;
}

export class OutgoingChunks {
  readonly #count: number;
  #left: number;
  #first: EntryPlace | undefined;
  #last: EntryPlace | undefined;

  constructor(count: number) {
    this.#count = count;
    this.#left = count;
  }

  isLast(index: number): boolean {
    return index === this.#count - 1;
  }

  /** Called once for each chunk. @returns where the message is once all of them are stored: its last and first chunk. */
  stored(index: number, place: EntryPlace): EntryPlace | undefined {
    this.#left -= 1;
    if (index === 0) this.#first = place;
    if (this.isLast(index)) this.#last = place;
    if (this.#left > 0 || this.#last === undefined || this.#first === undefined) return undefined;
    return chunkedPlace(this.#last, this.#first);
  }
}

/** The entries of one message, one when it fits; undefined when it cannot be cut, see `chunkFramesOf`. */
export function chunkEntriesOf(
  { first, lowestId: sequenceId, receipts }: OutgoingBatch,
  origin: EntryOrigin,
  sizes: ChunkSizes,
): readonly PendingEntry[] | undefined {
  origin.transaction?.checkMayChange();
  const frames = chunkFramesOf(first, sequenceId, origin, sizes);
  if (frames === undefined) return undefined;
  const all = { sequenceId, receipts, sentBefore: false, transaction: origin.transaction };
  if (frames.length === 1) return frames.map((frame) => ({ ...all, frame }));
  const of = new OutgoingChunks(frames.length);
  return frames.map((frame, index) => ({ ...all, frame, chunk: { index, of } }));
}
