// What one subscription has acknowledged, as the file has it or will have it with the next commit: a place up to which all
// is, bits for entries beyond it, and bits for single messages of batches. Rows are pages of bits, so that a thousand
// acknowledgements in any order are a row or two.
import type { AcknowledgementRecord } from '../../ports/broker-store.js';

/** Of entries in one page: 128 bytes. */
const PAGE_ENTRIES = 1_024;

export interface EntryPlace {
  readonly ledgerId: number;
  readonly entryId: number;
}

/** A row of bits. */
export class AckedBits {
  readonly cursor: KeptCursor;
  readonly ledgerId: number;
  /** The number of the page in its ledger or, of a batch, the entry id. */
  readonly number: number;
  #bits: Uint8Array;
  /** It is needed no more: the ledger was trimmed, the cursor set anew, or all of the batch acknowledged. */
  isDropped = false;

  constructor(cursor: KeptCursor, ledgerId: number, number: number, bits: Uint8Array) {
    this.cursor = cursor;
    this.ledgerId = ledgerId;
    this.number = number;
    this.#bits = bits;
  }

  get bytes(): Uint8Array {
    return this.#bits;
  }

  has(index: number): boolean {
    return ((this.#bits[index >>> 3] ?? 0) & (1 << (index & 7))) !== 0;
  }

  /** False when it was there before. */
  add(index: number): boolean {
    if (this.has(index)) return false;
    const at = index >>> 3;
    if (at >= this.#bits.length) {
      const longer = new Uint8Array(2 * at + 1);
      longer.set(this.#bits);
      this.#bits = longer;
    }
    this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (index & 7));
    return true;
  }

  *[Symbol.iterator](): Generator<number> {
    for (let index = 0; index < 8 * this.#bits.length; index++) if (this.has(index)) yield index;
  }
}

/** The row in which an acknowledgement stands, and whether it stood there before. */
export type AckedIn = {
  readonly isNew: boolean;
  /** Of a batch of which all is acknowledged now: its own row goes. */
  readonly done?: AckedBits | undefined;
} & (
  | { readonly kind: 'cursor'; readonly row: KeptCursor }
  | { readonly kind: 'page' | 'part'; readonly row: AckedBits }
);

export class KeptCursor {
  readonly id: number;
  readonly name: string;
  /** Its subscription was deleted. */
  isDropped = false;
  #ledgerId: number;
  #entryId: number;
  readonly #pages = new RowsOfLedgers();
  readonly #parts = new RowsOfLedgers();

  constructor(id: number, name: string, place: EntryPlace) {
    this.id = id;
    this.name = name;
    this.#ledgerId = place.ledgerId;
    this.#entryId = place.entryId;
  }

  get ledgerId(): number {
    return this.#ledgerId;
  }

  get entryId(): number {
    return this.#entryId;
  }

  acknowledge({ ledgerId, entryId, batchIndex, cumulative }: AcknowledgementRecord): AckedIn {
    if (cumulative || this.#isPassed(ledgerId, entryId))
      return { kind: 'cursor', row: this, isNew: this.#moveTo(ledgerId, entryId) };
    const [number, index] = [Math.floor(entryId / PAGE_ENTRIES), entryId % PAGE_ENTRIES];
    const page = this.#pages.get(ledgerId, number) ?? this.#pages.add(this.#row(ledgerId, number, PAGE_ENTRIES / 8));
    const part = this.#parts.get(ledgerId, entryId);
    if (batchIndex < 0) {
      if (part !== undefined) this.#parts.drop(part);
      return { kind: 'page', row: page, isNew: page.add(index), done: part };
    }
    if (page.has(index)) return { kind: 'page', row: page, isNew: false };
    const row = part ?? this.#parts.add(this.#row(ledgerId, entryId, 0));
    return { kind: 'part', row, isNew: row.add(batchIndex) };
  }

  /** Starts over: all up to this place is acknowledged, nothing beyond it. */
  set({ ledgerId, entryId }: EntryPlace): void {
    this.#ledgerId = ledgerId;
    this.#entryId = entryId;
    this.#dropBefore(Infinity);
  }

  trim(firstLedgerId: number): void {
    this.#dropBefore(firstLedgerId);
  }

  delete(): void {
    this.isDropped = true;
    this.#dropBefore(Infinity);
  }

  /** From the file. */
  keep(kind: 'page' | 'part', ledgerId: number, number: number, bits: Uint8Array): void {
    const rows = kind === 'page' ? this.#pages : this.#parts;
    rows.add(new AckedBits(this, ledgerId, number, bits));
  }

  *acknowledged(): Generator<EntryPlace> {
    for (const page of this.#pages)
      for (const index of page) yield { ledgerId: page.ledgerId, entryId: page.number * PAGE_ENTRIES + index };
  }

  *parts(): Generator<EntryPlace & { readonly indexes: readonly number[] }> {
    for (const part of this.#parts) yield { ledgerId: part.ledgerId, entryId: part.number, indexes: [...part] };
  }

  #isPassed(ledgerId: number, entryId: number): boolean {
    return ledgerId < this.#ledgerId || (ledgerId === this.#ledgerId && entryId <= this.#entryId);
  }

  #moveTo(ledgerId: number, entryId: number): boolean {
    if (this.#isPassed(ledgerId, entryId)) return false;
    this.#ledgerId = ledgerId;
    this.#entryId = entryId;
    return true;
  }

  #row(ledgerId: number, number: number, size: number): AckedBits {
    return new AckedBits(this, ledgerId, number, new Uint8Array(size));
  }

  #dropBefore(ledgerId: number): void {
    this.#pages.dropBefore(ledgerId);
    this.#parts.dropBefore(ledgerId);
  }
}

/** By ledger, then by number. */
class RowsOfLedgers {
  readonly #rows = new Map<number, Map<number, AckedBits>>();

  get(ledgerId: number, number: number): AckedBits | undefined {
    return this.#rows.get(ledgerId)?.get(number);
  }

  add(row: AckedBits): AckedBits {
    const own = this.#rows.get(row.ledgerId) ?? new Map<number, AckedBits>();
    this.#rows.set(row.ledgerId, own.set(row.number, row));
    return row;
  }

  /** It is needed no more. */
  drop(row: AckedBits): void {
    row.isDropped = true;
    this.#rows.get(row.ledgerId)?.delete(row.number);
  }

  /** All of ledgers before this one. @param ledgerId Infinity: of all */
  dropBefore(ledgerId: number): void {
    for (const [id, own] of this.#rows) {
      if (id >= ledgerId) continue;
      for (const row of own.values()) row.isDropped = true;
      this.#rows.delete(id);
    }
  }

  *[Symbol.iterator](): Generator<AckedBits> {
    for (const own of this.#rows.values()) yield* own.values();
  }
}
