// Which slot is due next. A binary heap that knows where each slot stands, so that a cancelled one leaves at once
// instead of lying in it until its time.
import { grown } from '../core/entry-index.js';

const ABSENT = -1;

export class DueHeap {
  /** By slot: when it is due. Meaningful while the slot is in the heap. */
  #dueTimes = new Float64Array(0);
  /** By slot: its place in the heap, or ABSENT. */
  #place = new Int32Array(0);
  /** By place: the slot. Each is due no earlier than the one above it, at half its place. */
  #slots = new Int32Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The slot that is due first; undefined when the heap is empty. */
  get first(): number | undefined {
    return this.#size === 0 ? undefined : this.#slots[0];
  }

  /** When `first` is due. */
  get firstDueMs(): number | undefined {
    return this.#size === 0 ? undefined : this.#dueTimes[this.#slots[0] as number];
  }

  has(slot: number): boolean {
    return (this.#place[slot] ?? ABSENT) !== ABSENT;
  }

  /** When a slot that is in the heap is due. */
  dueMs(slot: number): number {
    return this.#due(slot);
  }

  /** Room for slots below `capacity`. */
  reserve(capacity: number): void {
    const before = this.#place.length;
    if (capacity <= before) return;
    this.#dueTimes = grown(this.#dueTimes, new Float64Array(capacity));
    this.#place = grown(this.#place, new Int32Array(capacity)).fill(ABSENT, before);
    this.#slots = grown(this.#slots, new Int32Array(capacity));
  }

  /** Puts a slot in that is not in the heap. */
  add(slot: number, dueMs: number): void {
    this.#dueTimes[slot] = dueMs;
    this.#rise(slot, this.#size++);
  }

  /** A slot that is in the heap becomes due earlier; a later time changes nothing. */
  moveEarlier(slot: number, dueMs: number): void {
    if (dueMs >= this.#due(slot)) return;
    this.#dueTimes[slot] = dueMs;
    this.#rise(slot, this.#place[slot] as number);
  }

  /** Takes a slot out that is in the heap. */
  remove(slot: number): void {
    const gap = this.#place[slot] as number;
    this.#place[slot] = ABSENT;
    const last = this.#slots[--this.#size] as number;
    if (last === slot) return;
    if (this.#due(last) < this.#due(slot)) this.#rise(last, gap);
    else this.#sink(last, gap);
  }

  /** Places `slot` at `place` or, past those due later, nearer to the top. */
  #rise(slot: number, place: number): void {
    const dueMs = this.#due(slot);
    while (place > 0) {
      const above = (place - 1) >> 1;
      const upper = this.#slots[above] as number;
      if (this.#due(upper) <= dueMs) break;
      this.#put(upper, place);
      place = above;
    }
    this.#put(slot, place);
  }

  /** Places `slot` at `place` or, past those due earlier, further from the top. */
  #sink(slot: number, place: number): void {
    const dueMs = this.#due(slot);
    for (;;) {
      let below = 2 * place + 1;
      if (below >= this.#size) break;
      if (below + 1 < this.#size && this.#dueAt(below + 1) < this.#dueAt(below)) below++;
      if (this.#dueAt(below) >= dueMs) break;
      this.#put(this.#slots[below] as number, place);
      place = below;
    }
    this.#put(slot, place);
  }

  #put(slot: number, place: number): void {
    this.#slots[place] = slot;
    this.#place[slot] = place;
  }

  #dueAt(place: number): number {
    return this.#due(this.#slots[place] as number);
  }

  #due(slot: number): number {
    return this.#dueTimes[slot] as number;
  }
}
