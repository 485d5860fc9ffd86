// A list that stays in order while it changes, in pieces: what is put in or taken out moves the rest of one piece only, not
// of the whole list.

/** Of a piece. Half of it is moved on average, which costs less than finding the place. */
const MAX_PIECE = 512;

export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number;
  /** In order, none of them empty. */
  readonly #pieces: T[][] = [];

  /** @param compare 0 for what counts as the same item. */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Nothing happens when it is there. */
  add(item: T): void {
    const [at, within] = this.#find(item);
    const piece = this.#pieces[at];
    if (piece !== undefined) this.#insert(at, piece, within, item);
    // Behind all others: into the last piece.
    else this.#insert(at - 1, this.#pieces.at(-1) ?? this.#firstPiece(), Infinity, item);
  }

  /** Nothing happens when it is not there. */
  delete(item: T): void {
    const [at, within] = this.#find(item);
    const piece = this.#pieces[at];
    if (piece === undefined || this.#compare(piece[within] as T, item) !== 0) return;
    piece.splice(within, 1);
    if (piece.length === 0) this.#pieces.splice(at, 1);
  }

  /** From the first item for which `isReached` holds; it must hold for all that follow. Nothing may be changed meanwhile. */
  *from(isReached: (item: T) => boolean): Generator<T, void> {
    let [at, within] = this.#first(isReached);
    for (; at < this.#pieces.length; at++, within = 0) {
      const piece = this.#pieces[at] as T[];
      for (; within < piece.length; within++) yield piece[within] as T;
    }
  }

  #find(item: T): [piece: number, within: number] {
    return this.#first((other) => this.#compare(other, item) >= 0);
  }

  /** Where the first such item is; the number of pieces where there is none. */
  #first(isReached: (item: T) => boolean): [piece: number, within: number] {
    const at = firstWhere(this.#pieces, (piece) => isReached(piece.at(-1) as T));
    const piece = this.#pieces[at];
    return [at, piece === undefined ? 0 : firstWhere(piece, isReached)];
  }

  #insert(at: number, piece: T[], within: number, item: T): void {
    if (within < piece.length && this.#compare(piece[within] as T, item) === 0) return;
    piece.splice(within, 0, item);
    if (piece.length > MAX_PIECE) this.#pieces.splice(at + 1, 0, piece.splice(MAX_PIECE / 2));
  }

  #firstPiece(): T[] {
    const piece: T[] = [];
    this.#pieces.push(piece);
    return piece;
  }
}

/** The number of items where there is none. */
function firstWhere<T>(items: readonly T[], isReached: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isReached(items[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
