// What waits to be delivered again on Key_Shared: by hash slot in position order, and for each consumer the first of each
// slot that it may take. So a consumer without permits costs the others nothing, a slot that nobody may take is passed
// over, and a slot changes hands in one step however much waits in it. A consumer that can take empties what is its own
// before anything new is read, so a waiting entry always precedes later ones of its key (K-12). In a slot that retries the
// first one is there only up to the earliest that failed (K-25).
import { MinHeap } from './min-heap.js';
import { PositionSet } from './position-set.js';
import { passedPositions } from './passed-positions.js';

interface WaitingSlot<Taker> {
  /** Some may have been deleted meanwhile; the first one never is. */
  readonly positions: MinHeap;
  /** Who may take them now; undefined for nobody. */
  taker: Taker | undefined;
}

/** The first position of each slot that one taker may get. */
interface Heads {
  readonly ofFreeSlots: PositionSet;
  readonly ofRetryingSlots: PositionSet;
}

export class KeyReplay<Taker> {
  readonly #lastAllowed: (slot: number) => number | undefined;
  /** The slot of each waiting position. */
  readonly #slotOf = new Map<number, number>();
  readonly #waiting = new Map<number, WaitingSlot<Taker>>();
  readonly #heads = new Map<Taker, Heads>();

  /** @param lastAllowed of a slot that retries: nothing later may be taken; undefined for a free slot. */
  constructor(lastAllowed: (slot: number) => number | undefined) {
    this.#lastAllowed = lastAllowed;
  }

  get size(): number {
    return this.#slotOf.size;
  }

  /** @param taker who may get what waits in this slot now; undefined for nobody. */
  add(position: number, slot: number, taker: Taker | undefined): void {
    this.#slotOf.set(position, slot);
    const waiting = this.#waiting.get(slot) ?? this.#newSlot(slot);
    this.#takeHead(waiting);
    waiting.positions.push(position, position);
    waiting.taker = taker;
    this.#putHead(slot, waiting);
  }

  /** Takes out the smallest position that `taker` may get. @param retryingOnly passes over the free slots. */
  next(taker: Taker, retryingOnly = false): number | undefined {
    const heads = this.#heads.get(taker);
    if (heads === undefined) return undefined;
    const ofFree = retryingOnly ? undefined : heads.ofFreeSlots.first;
    const ofRetrying = heads.ofRetryingSlots.first;
    const position = (ofRetrying ?? Infinity) < (ofFree ?? Infinity) ? ofRetrying : ofFree;
    if (position !== undefined) this.delete(position);
    return position;
  }

  delete(position: number): void {
    const slot = this.#slotOf.get(position);
    const waiting = slot === undefined ? undefined : this.#waiting.get(slot);
    if (slot === undefined || waiting === undefined) return;
    const isFirst = waiting.positions.firstKey === position;
    if (isFirst) this.#takeHead(waiting);
    this.#slotOf.delete(position);
    if (isFirst) this.#putHead(slot, waiting);
  }

  /** What lies in `from` to `to`, both included. */
  deleteRange(from: number, to: number): void {
    for (const position of passedPositions(this.#slotOf, from, to)) this.delete(position);
  }

  /** Another one may take what waits in this slot, or nobody. */
  assign(slot: number, taker: Taker | undefined): void {
    const waiting = this.#waiting.get(slot);
    if (waiting === undefined || waiting.taker === taker) return;
    this.#takeHead(waiting);
    waiting.taker = taker;
    this.#putHead(slot, waiting);
  }

  /** What may be taken of this slot changed. */
  allowedChanged(slot: number): void {
    const waiting = this.#waiting.get(slot);
    if (waiting === undefined) return;
    this.#takeHead(waiting);
    this.#putHead(slot, waiting);
  }

  /** The takers changed. */
  reassign(takerOf: (slot: number) => Taker | undefined): void {
    for (const slot of this.#waiting.keys()) this.assign(slot, takerOf(slot));
  }

  /** It takes nothing more; afterwards slots are assigned anew. */
  forgetTaker(taker: Taker): void {
    this.#heads.delete(taker);
  }

  clear(): void {
    this.#slotOf.clear();
    this.#waiting.clear();
    this.#heads.clear();
  }

  #newSlot(slot: number): WaitingSlot<Taker> {
    const made = { positions: new MinHeap(), taker: undefined };
    this.#waiting.set(slot, made);
    return made;
  }

  #takeHead({ positions: { firstKey }, taker }: WaitingSlot<Taker>): void {
    const heads = taker === undefined ? undefined : this.#heads.get(taker);
    if (heads === undefined || firstKey === undefined) return;
    heads.ofFreeSlots.delete(firstKey);
    heads.ofRetryingSlots.delete(firstKey);
  }

  #putHead(slot: number, { positions, taker }: WaitingSlot<Taker>): void {
    for (let first = positions.firstKey; first !== undefined; first = positions.firstKey) {
      if (this.#slotOf.get(first) === slot) {
        if (taker !== undefined) this.#offer(first, slot, taker);
        return;
      }
      positions.removeFirst();
    }
    this.#waiting.delete(slot);
  }

  #offer(first: number, slot: number, taker: Taker): void {
    const last = this.#lastAllowed(slot);
    if (last === undefined) this.#headsOf(taker).ofFreeSlots.add(first);
    else if (first <= last) this.#headsOf(taker).ofRetryingSlots.add(first);
  }

  #headsOf(taker: Taker): Heads {
    const known = this.#heads.get(taker);
    if (known !== undefined) return known;
    const made = { ofFreeSlots: new PositionSet(), ofRetryingSlots: new PositionSet() };
    this.#heads.set(taker, made);
    return made;
  }
}
