// A binary heap of keys with a value each, smallest key first. In two arrays of plain numbers an item takes 16 bytes; an
// object for each would take four times as much.

export class MinHeap {
  readonly #keys: number[] = [];
  readonly #values: number[] = [];

  get size(): number {
    return this.#keys.length;
  }

  get firstKey(): number | undefined {
    return this.#keys[0];
  }

  get firstValue(): number | undefined {
    return this.#values[0];
  }

  push(key: number, value: number): void {
    let at = this.#keys.length;
    this.#set(at, key, value);
    while (at > 0) {
      const above = (at - 1) >>> 1;
      if (this.#keyAt(above) <= key) break;
      this.#move(above, at);
      at = above;
    }
    this.#set(at, key, value);
  }

  /** Removes the first item. */
  removeFirst(): void {
    const key = this.#keys.pop();
    const value = this.#values.pop();
    const size = this.#keys.length;
    if (key === undefined || value === undefined || size === 0) return;
    let at = 0;
    for (let below = 1; below < size; below = 2 * at + 1) {
      if (below + 1 < size && this.#keyAt(below + 1) < this.#keyAt(below)) below += 1;
      if (this.#keyAt(below) >= key) break;
      this.#move(below, at);
      at = below;
    }
    this.#set(at, key, value);
  }

  clear(): void {
    this.#keys.length = 0;
    this.#values.length = 0;
  }

  #keyAt(index: number): number {
    return this.#keys[index] ?? Infinity;
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#keyAt(from), this.#values[from] ?? 0);
  }

  #set(index: number, key: number, value: number): void {
    this.#keys[index] = key;
    this.#values[index] = value;
  }
}
