// The messages of a producer batch that are still to be acknowledged: a set bit is one of them, as brokers write it.

const ONES = 0xffffffff;

/** Far above what fits into an entry: each message takes five bytes or more of 5 MiB. */
export const MAX_BATCH_SIZE = 2 ** 21;

export class AckSet {
  readonly size: number;
  readonly #words: Uint32Array;

  /** All `size` messages, or those that the broker says are left. Words missing at the end of its list mean none. */
  constructor(size: number, left?: readonly bigint[]) {
    this.size = size;
    this.#words = new Uint32Array(Math.ceil(size / 32)).fill(ONES);
    if (size % 32 !== 0) this.#words[this.#words.length - 1] = ONES >>> (32 - (size % 32));
    if (left !== undefined && left.length > 0) this.intersect(left);
  }

  get isEmpty(): boolean {
    return this.#words.every((word) => word === 0);
  }

  /** How many are left. */
  get count(): number {
    let count = 0;
    for (const word of this.#words) count += bitsOf(word);
    return count;
  }

  has(index: number): boolean {
    return ((this.#words[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0;
  }

  clear(index: number): void {
    const at = index >>> 5;
    if (at < this.#words.length) this.#words[at] = (this.#words[at] ?? 0) & ~(1 << (index & 31));
  }

  /** What is in `others` is no longer in here; both have the same size. */
  subtract(others: AckSet): void {
    others.#words.forEach((word, at) => (this.#words[at] = (this.#words[at] ?? 0) & ~word));
  }

  /** Everything up to and including `index`. */
  clearThrough(index: number): void {
    for (let i = 0; i <= Math.min(index, this.size - 1); i++) this.clear(i);
  }

  /** Keeps only what is also in `left`. */
  intersect(left: readonly bigint[]): void {
    for (let at = 0; at < this.#words.length; at++) {
      const word = left[at >>> 1] ?? 0n;
      this.#words[at] = (this.#words[at] ?? 0) & Number((at % 2 === 0 ? word : word >> 32n) & 0xffffffffn);
    }
  }

  /** As brokers want it: 64 bits each, the lowest indexes first, signed. */
  words(): bigint[] {
    const words: bigint[] = [];
    for (let at = 0; at < this.#words.length; at += 2) {
      words.push(BigInt.asIntN(64, (BigInt(this.#words[at + 1] ?? 0) << 32n) | BigInt(this.#words[at] ?? 0)));
    }
    return words;
  }
}

/** The set bits of 32, summed up in pairs, then fours, then bytes. */
function bitsOf(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  const bytes = (fours + (fours >>> 4)) & 0x0f0f0f0f;
  return Math.imul(bytes, 0x01010101) >>> 24;
}
