// The positions acknowledged beyond the mark-delete position, as bits in chunks. Adding and asking is O(1); skipping
// acknowledged positions goes chunk by chunk; a chunk that is full costs no memory of its own.

const CHUNK_BITS = 1024;
const FULL: Chunk = { words: new Uint32Array(0), count: CHUNK_BITS };

interface Chunk {
  readonly words: Uint32Array;
  count: number;
}

export class AckedPositions {
  readonly #chunks = new Map<number, Chunk>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(position: number): boolean {
    if (this.#size === 0) return false;
    const chunk = this.#chunks.get(Math.floor(position / CHUNK_BITS));
    return chunk !== undefined && hasBit(chunk, position % CHUNK_BITS);
  }

  /** False when it was there before. */
  add(position: number): boolean {
    const index = Math.floor(position / CHUNK_BITS);
    const chunk = this.#chunks.get(index) ?? this.#newChunk(index);
    const bit = position % CHUNK_BITS;
    if (hasBit(chunk, bit)) return false;
    chunk.words[bit >>> 5] = (chunk.words[bit >>> 5] ?? 0) | (1 << (bit & 31));
    chunk.count += 1;
    this.#size += 1;
    if (chunk.count === CHUNK_BITS) this.#chunks.set(index, FULL);
    return true;
  }

  /** The first position at or after `from` that is not here. */
  nextMissing(from: number): number {
    let position = from;
    while (this.#size > 0) {
      const index = Math.floor(position / CHUNK_BITS);
      const chunk = this.#chunks.get(index);
      if (chunk === undefined) break;
      const bit = chunk === FULL ? CHUNK_BITS : nextClearBit(chunk, position % CHUNK_BITS);
      position = index * CHUNK_BITS + bit;
      if (bit < CHUNK_BITS) break;
    }
    return position;
  }

  /** Drops what lies in `from` to `to`, both included; nothing may lie below `from`. */
  removeRange(from: number, to: number): void {
    const last = Math.floor(to / CHUNK_BITS);
    for (let index = Math.floor(from / CHUNK_BITS); index < last && this.#size > 0; index++) {
      this.#size -= this.#chunks.get(index)?.count ?? 0;
      this.#chunks.delete(index);
    }
    const chunk = this.#chunks.get(last);
    if (chunk !== undefined) this.#removeBits(last, chunk, to % CHUNK_BITS);
  }

  clear(): void {
    this.#chunks.clear();
    this.#size = 0;
  }

  #newChunk(index: number): Chunk {
    const chunk = { words: new Uint32Array(CHUNK_BITS / 32), count: 0 };
    this.#chunks.set(index, chunk);
    return chunk;
  }

  #removeBits(index: number, chunk: Chunk, lastBit: number): void {
    const words = chunk === FULL ? new Uint32Array(CHUNK_BITS / 32).fill(0xffffffff) : chunk.words;
    let count = chunk.count;
    for (let bit = 0; bit <= lastBit; bit++) {
      const word = words[bit >>> 5] ?? 0;
      if ((word & (1 << (bit & 31))) === 0) continue;
      words[bit >>> 5] = word & ~(1 << (bit & 31));
      count -= 1;
    }
    this.#size -= chunk.count - count;
    if (count === 0) this.#chunks.delete(index);
    else this.#chunks.set(index, { words, count });
  }
}

function hasBit(chunk: Chunk, bit: number): boolean {
  return chunk === FULL || ((chunk.words[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0;
}

function nextClearBit(chunk: Chunk, from: number): number {
  for (let at = from >>> 5, low = from & 31; at < CHUNK_BITS / 32; at++, low = 0) {
    const clear = ~(chunk.words[at] ?? 0) & (0xffffffff << low);
    // The lowest set bit of `clear`, counted from the right.
    if (clear !== 0) return at * 32 + (31 - Math.clz32(clear & -clear));
  }
  return CHUNK_BITS;
}
