// Which entries, and which messages of batches, are acknowledged in which transactions. An entry is held as a whole by one
// transaction, or each of its messages by one of its own.
import { passedPositions } from '../passed-positions.js';

/** What of an entry. */
export interface EntryPart {
  readonly position: number;
  /** Single messages of a batch, ascending; undefined: the whole entry. */
  readonly indexes: readonly number[] | undefined;
}

/** The transaction that has the whole entry, or by index those that have single messages. */
type Holders = string | Map<number, string>;

export class PendingPositions {
  readonly #holders = new Map<number, Holders>();
  readonly #positions = new Map<string, Set<number>>();

  /** How many entries something is pending of. */
  get size(): number {
    return this.#holders.size;
  }

  get transactions(): Iterable<string> {
    return this.#positions.keys();
  }

  has(transaction: string): boolean {
    return this.#positions.has(transaction);
  }

  /** `whole`, the messages of the batch, or undefined for nothing. */
  at(position: number): 'whole' | ReadonlyMap<number, string> | undefined {
    const holders = this.#holders.get(position);
    return typeof holders === 'string' ? 'whole' : holders;
  }

  /** Whether some of it is pending, in whichever transaction. */
  overlaps({ position, indexes }: EntryPart): boolean {
    const holders = this.#holders.get(position);
    if (holders === undefined) return false;
    if (typeof holders === 'string' || indexes === undefined) return true;
    return indexes.some((index) => holders.has(index));
  }

  /** Of what overlaps with something here, nothing may be added. */
  add(transaction: string, { position, indexes }: EntryPart): void {
    if (indexes === undefined) {
      this.#holders.set(position, transaction);
    } else {
      const before = this.#holders.get(position);
      const holders = before instanceof Map ? before : new Map<number, string>();
      for (const index of indexes) holders.set(index, transaction);
      this.#holders.set(position, holders);
    }
    const positions = this.#positions.get(transaction);
    if (positions === undefined) this.#positions.set(transaction, new Set([position]));
    else positions.add(position);
  }

  /** Whoever has it. Single messages of an entry that one transaction has as a whole stay: it has the others as well. */
  remove({ position, indexes }: EntryPart): void {
    const holders = this.#holders.get(position);
    if (holders === undefined) return;
    if (indexes === undefined) this.#removeEntry(position, holders);
    else if (holders instanceof Map) this.#removeIndexes(position, holders, indexes);
  }

  /** Everything in `from` to `to`, both included. */
  removeRange(from: number, to: number): void {
    for (const position of passedPositions(this.#holders, from, to)) this.remove({ position, indexes: undefined });
  }

  /** In ascending order. */
  of(transaction: string): readonly EntryPart[] {
    const positions = [...(this.#positions.get(transaction) ?? [])].sort((a, b) => a - b);
    return positions.map((position) => {
      const holders = this.#holders.get(position);
      const indexes = holders instanceof Map ? indexesOf(holders, transaction) : undefined;
      return { position, indexes };
    });
  }

  /** Removes and returns what the transaction has, in ascending order. */
  take(transaction: string): readonly EntryPart[] {
    const parts = this.of(transaction);
    for (const part of parts) this.remove(part);
    return parts;
  }

  #removeEntry(position: number, holders: Holders): void {
    this.#holders.delete(position);
    for (const transaction of typeof holders === 'string' ? [holders] : new Set(holders.values()))
      this.#forget(transaction, position);
  }

  #removeIndexes(position: number, holders: Map<number, string>, indexes: readonly number[]): void {
    const concerned = new Set<string>();
    for (const index of indexes) {
      const transaction = holders.get(index);
      if (transaction !== undefined) concerned.add(transaction);
      holders.delete(index);
    }
    if (holders.size === 0) this.#holders.delete(position);
    const left = new Set(holders.values());
    for (const transaction of concerned) if (!left.has(transaction)) this.#forget(transaction, position);
  }

  #forget(transaction: string, position: number): void {
    const positions = this.#positions.get(transaction);
    positions?.delete(position);
    if (positions?.size === 0) this.#positions.delete(transaction);
  }
}

function indexesOf(holders: ReadonlyMap<number, string>, transaction: string): readonly number[] {
  const own = [...holders].filter(([, holder]) => holder === transaction).map(([index]) => index);
  return own.sort((a, b) => a - b);
}
