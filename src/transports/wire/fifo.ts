// A queue whose head is removed in constant time: what is gone is cut off in one go, now and then.

const MIN_GONE = 1_024;

export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#head += 1;
    if (this.#head === this.#items.length) this.#cut();
    else if (this.#head >= MIN_GONE && this.#head * 2 >= this.#items.length) this.#cut();
    return item;
  }

  /** Removes the first that matches, wherever it is; most likely the head. */
  remove(matches: (item: T) => boolean): T | undefined {
    const head = this.#items[this.#head];
    if (head !== undefined && matches(head)) return this.shift();
    this.#cut();
    const at = this.#items.findIndex(matches);
    return at < 0 ? undefined : this.#items.splice(at, 1)[0];
  }

  /** Removes all that match. */
  removeAll(matches: (item: T) => boolean): void {
    this.#cut();
    this.#items = this.#items.filter((item) => !matches(item));
  }

  some(matches: (item: T) => boolean): boolean {
    return this.#items.findIndex((item, at) => at >= this.#head && matches(item)) >= 0;
  }

  /** All in order, as a copy. */
  toArray(): T[] {
    return this.#items.slice(this.#head);
  }

  /** Empties it. */
  takeAll(): T[] {
    const all = this.toArray();
    this.#items = [];
    this.#head = 0;
    return all;
  }

  #cut(): void {
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
