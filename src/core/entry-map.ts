// A map keyed by the position of an entry. Values by slot of an EntryIndex: no text key is made per look-up, and
// an entry costs about 60 bytes beside its value.
import { EntryIndex, NO_SLOT } from './entry-index.js';
import type { EntryPosition } from './message-id.js';

export class EntryMap<V> {
  #index = new EntryIndex();
  /** By slot; `undefined` in free ones, so that removed values can be collected. */
  #values: (V | undefined)[] = [];

  get size(): number {
    return this.#index.size;
  }

  has(entry: EntryPosition): boolean {
    return this.#index.find(entry) !== NO_SLOT;
  }

  /** Only ledger, entry and partition count: a message id finds the value of its entry. */
  get(entry: EntryPosition): V | undefined {
    const slot = this.#index.find(entry);
    return slot === NO_SLOT ? undefined : this.#values[slot];
  }

  set(entry: EntryPosition, value: V): this {
    const slot = this.#index.find(entry);
    this.#values[slot === NO_SLOT ? this.#index.add(entry) : slot] = value;
    return this;
  }

  /** Whether there was a value. */
  delete(entry: EntryPosition): boolean {
    const slot = this.#index.find(entry);
    if (slot === NO_SLOT) return false;
    this.#values[slot] = undefined;
    this.#index.remove(slot);
    return true;
  }

  clear(): void {
    this.#index = new EntryIndex();
    this.#values = [];
  }

  /** The values at the time of the call, in no particular order: the map may change while they are walked through. */
  values(): V[] {
    return this.#index.slots().map((slot) => this.#values[slot] as V);
  }

  /** Positions and values at the time of the call, in no particular order. */
  entries(): (readonly [EntryPosition, V])[] {
    return this.#index.slots().map((slot) => [this.#index.position(slot), this.#values[slot] as V] as const);
  }
}
