// From the position of an entry to a slot: a small whole number under which owners keep columns of their own.
// Three numbers make the key and no text or object is made per entry: tens of thousands of entries wait at a time.
import type { EntryPosition } from './message-id.js';

/** What `find` gives for an entry that is not in the index. */
export const NO_SLOT = -1;

const FIRST_CAPACITY = 16;
/** Half again and not double: less room stands empty, and growth stays rare. */
const GROWTH = 1.5;
/** Ledger, entry and partition, side by side. */
const KEY_WIDTH = 3;

/** A hash table with chains. A slot stays the same until its entry is removed; then a later entry may get it. */
export class EntryIndex {
  #capacity = FIRST_CAPACITY;
  /** The three numbers of each slot; NaN as the first marks a free one. */
  #keys = new Float64Array(FIRST_CAPACITY * KEY_WIDTH).fill(NaN);
  /** Used slots: the next one in the same bucket. Free slots: the next free one. */
  #next = new Int32Array(FIRST_CAPACITY);
  /** First slot of each bucket. As many as a power of two, so that a mask of the hash picks one. */
  #buckets = new Int32Array(FIRST_CAPACITY).fill(NO_SLOT);
  #firstFree = NO_SLOT;
  /** Slots from here on have never been used. */
  #untouched = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Slots are below this number: owners give their columns this length. It grows only in `add`. */
  get capacity(): number {
    return this.#capacity;
  }

  find(entry: EntryPosition): number {
    let slot = this.#buckets[this.#bucketOf(entry.ledgerId, entry.entryId, entry.partition)] as number;
    while (slot !== NO_SLOT && !this.#isAt(slot, entry)) slot = this.#next[slot] as number;
    return slot;
  }

  /** Takes a slot for an entry that is not in the index yet. */
  add(entry: EntryPosition): number {
    const slot = this.#takeSlot();
    const { ledgerId, entryId, partition } = entry;
    this.#keys[slot * KEY_WIDTH] = ledgerId;
    this.#keys[slot * KEY_WIDTH + 1] = entryId;
    this.#keys[slot * KEY_WIDTH + 2] = partition;
    this.#link(slot);
    this.#size++;
    return slot;
  }

  /** Frees a slot that is in use. */
  remove(slot: number): void {
    this.#unlink(slot);
    this.#keys[slot * KEY_WIDTH] = NaN;
    this.#next[slot] = this.#firstFree;
    this.#firstFree = slot;
    this.#size--;
  }

  /** The entry in a slot that is in use. */
  position(slot: number): EntryPosition {
    const at = slot * KEY_WIDTH;
    return {
      ledgerId: this.#keys[at] as number,
      entryId: this.#keys[at + 1] as number,
      partition: this.#keys[at + 2] as number,
    };
  }

  /** The slots in use at the time of the call, in no particular order. */
  slots(): number[] {
    const slots: number[] = [];
    for (let slot = 0; slot < this.#untouched; slot++) {
      if (!Number.isNaN(this.#keys[slot * KEY_WIDTH])) slots.push(slot);
    }
    return slots;
  }

  #isAt(slot: number, entry: EntryPosition): boolean {
    const at = slot * KEY_WIDTH;
    return (
      this.#keys[at + 1] === entry.entryId &&
      this.#keys[at] === entry.ledgerId &&
      this.#keys[at + 2] === entry.partition
    );
  }

  #takeSlot(): number {
    const free = this.#firstFree;
    if (free !== NO_SLOT) {
      this.#firstFree = this.#next[free] as number;
      return free;
    }
    if (this.#untouched === this.#capacity) this.#grow();
    return this.#untouched++;
  }

  #bucketOf(ledgerId: number, entryId: number, partition: number): number {
    return hash(ledgerId, entryId, partition) & (this.#buckets.length - 1);
  }

  #bucketOfSlot(slot: number): number {
    const at = slot * KEY_WIDTH;
    return this.#bucketOf(this.#keys[at] as number, this.#keys[at + 1] as number, this.#keys[at + 2] as number);
  }

  #link(slot: number): void {
    const bucket = this.#bucketOfSlot(slot);
    this.#next[slot] = this.#buckets[bucket] as number;
    this.#buckets[bucket] = slot;
  }

  #unlink(slot: number): void {
    const bucket = this.#bucketOfSlot(slot);
    const after = this.#next[slot] as number;
    let previous = this.#buckets[bucket] as number;
    if (previous === slot) {
      this.#buckets[bucket] = after;
      return;
    }
    while (this.#next[previous] !== slot) previous = this.#next[previous] as number;
    this.#next[previous] = after;
  }

  /** Called when every slot is in use. */
  #grow(): void {
    const used = this.#capacity;
    this.#capacity = Math.ceil(used * GROWTH);
    this.#keys = grown(this.#keys, new Float64Array(this.#capacity * KEY_WIDTH).fill(NaN));
    this.#next = grown(this.#next, new Int32Array(this.#capacity));
    if (this.#capacity <= this.#buckets.length) return;
    this.#buckets = new Int32Array(this.#buckets.length * 2).fill(NO_SLOT);
    for (let slot = 0; slot < used; slot++) this.#link(slot);
  }
}

/** Copies `from` to the start of the longer `to`. */
export function grown<Column extends Float64Array | Int32Array>(from: Column, to: Column): Column {
  to.set(from);
  return to;
}

/** Spreads neighbours in all three numbers over the buckets; what is above 32 bits counts too. */
function hash(ledgerId: number, entryId: number, partition: number): number {
  let mixed = Math.imul(entryId, 0x9e3779b1) ^ Math.imul(ledgerId, 0x85ebca6b) ^ Math.imul(partition, 0xc2b2ae35);
  mixed ^= Math.imul((entryId / 2 ** 32) | 0, 0x27d4eb2f) ^ Math.imul((ledgerId / 2 ** 32) | 0, 0x165667b1);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d);
  return mixed ^ (mixed >>> 15);
}
