// Copies of small byte arrays, side by side in blocks: an array of its own costs about ten times as much to make, and 100
// bytes beside its own. The block size is that of Node's own pool: a copy that is kept long keeps 8 KiB alive at most.

const BLOCK_BYTES = 8 * 1024;
/** Larger ones would waste too much of a block. */
const MAX_POOLED_BYTES = BLOCK_BYTES / 4;

/** Where a copy lies: in the block, from the offset on. */
export interface PooledBytes {
  readonly block: Uint8Array;
  readonly offset: number;
}

export class BytePool {
  #block = new Uint8Array(0);
  #used = 0;

  /** Shares nothing with `bytes`, and no byte with any other copy. */
  copy(bytes: Uint8Array): Uint8Array {
    const { block, offset } = this.place(bytes);
    return new Uint8Array(block.buffer, block.byteOffset + offset, bytes.length);
  }

  /** The same for who makes an array of it only when it is asked for. */
  place(bytes: Uint8Array): PooledBytes {
    const { length } = bytes;
    if (length > MAX_POOLED_BYTES) return { block: new Uint8Array(bytes), offset: 0 };
    if (this.#used + length > this.#block.length) {
      this.#block = new Uint8Array(BLOCK_BYTES);
      this.#used = 0;
    }
    const offset = this.#used;
    this.#block.set(bytes, offset);
    this.#used += length;
    return { block: this.#block, offset };
  }
}
