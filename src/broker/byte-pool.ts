// Copies of small byte arrays, side by side in blocks: an array of its own costs about ten times as much to make. The
// block size is that of Node's own pool: a copy that is kept long keeps 8 KiB alive at most.

const BLOCK_BYTES = 8 * 1024;
/** Larger ones would waste too much of a block. */
const MAX_POOLED_BYTES = BLOCK_BYTES / 4;

export class BytePool {
  #block = new ArrayBuffer(0);
  #used = 0;

  /** Shares nothing with `bytes`, and no byte with any other copy. */
  copy(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (length > MAX_POOLED_BYTES) return new Uint8Array(bytes);
    if (this.#used + length > this.#block.byteLength) {
      this.#block = new ArrayBuffer(BLOCK_BYTES);
      this.#used = 0;
    }
    const copy = new Uint8Array(this.#block, this.#used, length);
    copy.set(bytes);
    this.#used += length;
    return copy;
  }
}
