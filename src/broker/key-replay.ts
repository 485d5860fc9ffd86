// What waits to be delivered again on Key_Shared: per consumer in position order, so that one consumer without permits
// costs the others nothing; entries of a hash that nobody may take now are parked by hash. A consumer that can take
// empties its queue before anything new is read, so a waiting entry always precedes later ones of its key (K-12).
import { SortedPositions } from './sorted-positions.js';

export class KeyReplay<Taker> {
  /** The slot of each waiting position. */
  readonly #slots = new Map<number, number>();
  readonly #queues = new Map<Taker, SortedPositions>();
  readonly #parked = new Map<number, SortedPositions>();

  get size(): number {
    return this.#slots.size;
  }

  /** @param taker who may get it now; undefined for nobody. */
  add(position: number, slot: number, taker: Taker | undefined): void {
    this.#slots.set(position, slot);
    this.#place(position, slot, taker);
  }

  /** Takes out the smallest position that `taker` may get. */
  next(taker: Taker): number | undefined {
    const position = this.#queues.get(taker)?.shift();
    if (position !== undefined) this.#slots.delete(position);
    return position;
  }

  /** @param taker who may get entries of its hash now. */
  delete(position: number, taker: Taker | undefined): void {
    const slot = this.#slots.get(position);
    if (slot === undefined) return;
    this.#slots.delete(position);
    const queue = taker === undefined ? this.#parked.get(slot) : this.#queues.get(taker);
    queue?.delete(position);
  }

  /** The entries of a hash may be taken again. */
  freed(slot: number, taker: Taker | undefined): void {
    const parked = this.#parked.get(slot);
    if (parked === undefined) return;
    this.#parked.delete(slot);
    for (const position of parked) this.#place(position, slot, taker);
  }

  /** The takers changed. */
  reassign(takerOf: (slot: number) => Taker | undefined): void {
    this.#queues.clear();
    this.#parked.clear();
    for (const [position, slot] of this.#slots) this.#place(position, slot, takerOf(slot));
  }

  clear(): void {
    this.#slots.clear();
    this.#queues.clear();
    this.#parked.clear();
  }

  #place(position: number, slot: number, taker: Taker | undefined): void {
    if (taker === undefined) queueIn(this.#parked, slot).add(position);
    else queueIn(this.#queues, taker).add(position);
  }
}

function queueIn<K>(queues: Map<K, SortedPositions>, key: K): SortedPositions {
  const known = queues.get(key);
  if (known !== undefined) return known;
  const made = new SortedPositions();
  queues.set(key, made);
  return made;
}
