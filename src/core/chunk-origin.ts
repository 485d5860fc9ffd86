// What the producer of a chunk says of it: a part of a message that was larger than an entry may be.

export interface ChunkOrigin {
  /** The same for all chunks of one message, another one for each message of the producer. */
  readonly uuid: string;
  /** From 0. */
  readonly index: number;
  /** Of the message: how many chunks, at least 2, and payload bytes in all. */
  readonly count: number;
  readonly totalBytes: number;
}
