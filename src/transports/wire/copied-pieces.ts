// Copies of parts of one buffer, several in one piece of memory. A view of the buffer would keep all of it, megabytes for
// one message that is held; a buffer for each part costs more than reading the message.

/** What one message can keep beyond itself at the most: as much as Node's own pool for small buffers. */
const PIECE_BYTES = 8 * 1024;

export class CopiedPieces {
  readonly #source: Buffer;
  #piece = Buffer.alloc(0);
  /** The place of the piece in the source. */
  #start = 0;

  constructor(source: Buffer) {
    this.#source = source;
  }

  /** A copy of `source[start, end)`. Parts are asked for in order. */
  copy(start: number, end: number): Buffer {
    if (end > this.#start + this.#piece.length) {
      const pieceEnd = Math.max(end, start + PIECE_BYTES);
      this.#piece = Buffer.from(this.#source.subarray(start, pieceEnd));
      this.#start = start;
    }
    return this.#piece.subarray(start - this.#start, end - this.#start);
  }
}
