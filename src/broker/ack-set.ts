// The unacknowledged messages of a producer batch: a set bit is a message that is still unacknowledged.

const ONES = 0xffffffff;

export class AckSet {
  readonly #words: Uint32Array;
  /** How many messages are unacknowledged. */
  #count: number;

  /** All `size` messages unacknowledged. */
  constructor(size: number) {
    this.#words = new Uint32Array(Math.ceil(size / 32)).fill(ONES);
    if (size % 32 !== 0) this.#words[this.#words.length - 1] = ONES >>> (32 - (size % 32));
    this.#count = size;
  }

  get count(): number {
    return this.#count;
  }

  has(index: number): boolean {
    return ((this.#words[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0;
  }

  /** False when the message was acknowledged before. */
  acknowledge(index: number): boolean {
    if (!this.has(index)) return false;
    const at = index >>> 5;
    this.#words[at] = (this.#words[at] ?? 0) & ~(1 << (index & 31));
    this.#count -= 1;
    return true;
  }
}
