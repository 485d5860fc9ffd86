// What failed on Key_Shared and is not acknowledged yet (PIP-493): while a hash slot has such entries, nothing later than
// the earliest of them goes to anybody. Positions alone, of no consumer and of no range: they stay when their consumer
// leaves and when the slot moves, and only an acknowledgement takes one out (K-23, K-28, K-29).
import { MinHeap } from './min-heap.js';
import { passedPositions } from './passed-positions.js';

export class RetryingHashes {
  /** The slot of each position. */
  readonly #slotOf = new Map<number, number>();
  /** By slot, for those that have any. Some may have been released meanwhile; the first one never is. */
  readonly #positions = new Map<number, MinHeap>();

  /** How many slots hold something back. */
  get hashes(): number {
    return this.#positions.size;
  }

  get positions(): number {
    return this.#slotOf.size;
  }

  /** Adding a position again changes nothing (K-26). */
  add(position: number, slot: number): void {
    if (this.#slotOf.has(position)) return;
    this.#slotOf.set(position, slot);
    const known = this.#positions.get(slot);
    const positions = known ?? new MinHeap();
    if (known === undefined) this.#positions.set(slot, positions);
    positions.push(position, position);
  }

  /** Undefined where nothing is held back. */
  earliest(slot: number): number | undefined {
    return this.#positions.get(slot)?.firstKey;
  }

  /**
   * Whether an entry of this slot has to wait: only when it is strictly later than the earliest one that failed (K-24). To
   * hold back all but that one would hold back what is before it too, and wait for ever where that has to come first.
   */
  withholds(slot: number, position: number): boolean {
    return position > (this.earliest(slot) ?? Infinity);
  }

  /** The entry was acknowledged as a whole. @returns the slot that it held back; undefined when it had not failed. */
  release(position: number): number | undefined {
    const slot = this.#slotOf.get(position);
    if (slot === undefined) return undefined;
    this.#slotOf.delete(position);
    this.#dropReleased(slot);
    return slot;
  }

  /** Everything in `from` to `to`, both included, was acknowledged. @returns the slots that it held back */
  releaseRange(from: number, to: number): ReadonlySet<number> {
    const slots = new Set<number>();
    for (const position of passedPositions(this.#slotOf, from, to)) {
      const slot = this.release(position);
      if (slot !== undefined) slots.add(slot);
    }
    return slots;
  }

  clear(): void {
    this.#slotOf.clear();
    this.#positions.clear();
  }

  #dropReleased(slot: number): void {
    const positions = this.#positions.get(slot);
    if (positions === undefined) return;
    for (let first = positions.firstKey; first !== undefined; first = positions.firstKey) {
      if (this.#slotOf.has(first)) return;
      positions.removeFirst();
    }
    this.#positions.delete(slot);
  }
}
