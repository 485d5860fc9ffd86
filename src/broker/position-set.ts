// A set of positions: bits in words of 32. Which words have a bit and which have all is itself such a set, so the next
// position that is here and the next that is missing are found in a step or two per power of 32, however many are here.

const BITS = 32;
const ALL = -1;

export class PositionSet {
  readonly #words = new Map<number, number>();
  /** Indexes of the words after the first that have a bit. */
  #some: PositionSet | undefined;
  /** Indexes of the words after the first that have all. */
  #full: PositionSet | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): number | undefined {
    return this.#size === 0 ? undefined : this.next(0);
  }

  has(position: number): boolean {
    return this.#size > 0 && (this.#word(indexOf(position)) & bitOf(position)) !== 0;
  }

  /** False when it was there before. */
  add(position: number): boolean {
    const index = indexOf(position);
    const word = this.#word(index);
    const added = word | bitOf(position);
    if (added === word) return false;
    this.#size += 1;
    this.#words.set(index, added);
    if (index === 0) return true;
    if (word === 0) (this.#some ??= new PositionSet()).add(index);
    if (added === ALL) (this.#full ??= new PositionSet()).add(index);
    return true;
  }

  /** False when it was not there. */
  delete(position: number): boolean {
    if (!this.has(position)) return false;
    this.#remove(indexOf(position), bitOf(position));
    return true;
  }

  /** Removes and returns the smallest. */
  shift(): number | undefined {
    const { first } = this;
    if (first !== undefined) this.#remove(indexOf(first), bitOf(first));
    return first;
  }

  /** The first position at or after `from` that is here. */
  next(from: number): number | undefined {
    const index = indexOf(from);
    const here = this.#word(index) & bitsFrom(from);
    if (here !== 0) return index * BITS + lowestBit(here);
    const later = this.#some?.next(index + 1);
    return later === undefined ? undefined : later * BITS + lowestBit(this.#word(later));
  }

  /** The first position at or after `from` that is not here. */
  nextMissing(from: number): number {
    if (this.#size === 0) return from;
    const index = indexOf(from);
    const missing = ~this.#word(index) & bitsFrom(from);
    if (missing !== 0) return index * BITS + lowestBit(missing);
    const later = this.#full?.nextMissing(index + 1) ?? index + 1;
    return later * BITS + lowestBit(~this.#word(later));
  }

  /** Removes what lies in `from` to `to`, both included. */
  removeRange(from: number, to: number): void {
    for (let at = this.next(from); at !== undefined && at <= to; at = this.next(at)) {
      const index = indexOf(at);
      const bitsBehind = Math.max(0, (index + 1) * BITS - 1 - to);
      this.#remove(index, bitsFrom(at) & (ALL >>> bitsBehind));
    }
  }

  clear(): void {
    this.#words.clear();
    this.#some = undefined;
    this.#full = undefined;
    this.#size = 0;
  }

  /** In ascending order. */
  *[Symbol.iterator](): Generator<number> {
    for (let at = this.next(0); at !== undefined; at = this.next(at + 1)) yield at;
  }

  #word(index: number): number {
    return this.#words.get(index) ?? 0;
  }

  #remove(index: number, bits: number): void {
    const word = this.#word(index);
    const left = word & ~bits;
    this.#size -= bitCount(word & bits);
    if (left === 0) this.#words.delete(index);
    else this.#words.set(index, left);
    if (index === 0) return;
    if (word === ALL) this.#full?.delete(index);
    if (left === 0) this.#some?.delete(index);
  }
}

function indexOf(position: number): number {
  return Math.floor(position / BITS);
}

function bitOf(position: number): number {
  return 1 << (position % BITS);
}

/** The bit of this position and those above it. */
function bitsFrom(position: number): number {
  return ALL << (position % BITS);
}

/** Counted from the right; `word` is not 0. */
function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}

function bitCount(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
