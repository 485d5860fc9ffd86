// The entries of one topic in ledgers. Inside the broker an entry is named by its position, counted from 0 over all
// ledgers of the topic, so that order and distance are plain numbers; outside by ledger and entry id.
import { firstIndex } from './bisect.js';
import type { Entry } from './entry.js';

export interface LedgerLimits {
  /** A ledger is full at this many entries, or at this many bytes. */
  readonly entries: number;
  readonly bytes: number;
}

export interface Ledger {
  readonly id: number;
  /** Position of entry 0. */
  readonly first: number;
  /** Undefined where the store refused the entry, or its transaction was aborted. */
  readonly entries: (Entry | undefined)[];
  bytes: number;
  /** When its first entry was published, epoch milliseconds; Infinity before there is one. */
  startMs: number;
}

export class TopicLog {
  readonly #limits: LedgerLimits;
  readonly #nextLedgerId: () => number;
  #ledgers: Ledger[] = [];
  /** Reads are mostly sequential: the ledger of the last one is tried first. */
  #lastRead: Ledger | undefined;
  #end = 0;
  #confirmedEnd = 0;
  /** The first entry of an open transaction; Infinity for none. */
  #hiddenFrom = Infinity;
  /** Nothing more is added to the last ledger. */
  #sealed = false;

  constructor(limits: LedgerLimits, nextLedgerId: () => number) {
    this.#limits = limits;
    this.#nextLedgerId = nextLedgerId;
  }

  /** The first position that is still kept. */
  get first(): number {
    return this.#ledgers[0]?.first ?? 0;
  }

  /** The position after the last one whose append completed. */
  get end(): number {
    return this.#confirmedEnd;
  }

  /** The position after the last one that may be sent: neither entries of open transactions nor what is behind them (T-07). */
  get readEnd(): number {
    return Math.min(this.#confirmedEnd, this.#hiddenFrom);
  }

  /** The position after the last one that was given to an entry. */
  get appendEnd(): number {
    return this.#end;
  }

  /** -1 when there is none. */
  get firstLedgerId(): number {
    return this.#ledgers[0]?.id ?? -1;
  }

  get ledgerCount(): number {
    return this.#ledgers.length;
  }

  /** What an earlier broker kept, before anything else comes. Nothing is added to these ledgers. */
  restore(ledgers: readonly Pick<Ledger, 'id' | 'entries'>[]): void {
    for (const { id, entries } of ledgers) {
      const bytes = entries.reduce((sum, entry) => sum + (entry?.bytes ?? 0), 0);
      const startMs = entries.find((entry) => entry !== undefined)?.publishTimeMs ?? Infinity;
      this.#ledgers.push({ id, first: this.#end, entries, bytes, startMs });
      this.#end += entries.length;
    }
    this.#confirmedEnd = this.#end;
    this.#sealed = true;
  }

  append(entry: Entry): number {
    let ledger = this.#ledgers.at(-1);
    if (ledger === undefined || this.#sealed || this.#isFull(ledger)) ledger = this.#openLedger();
    if (ledger.entries.length === 0) ledger.startMs = entry.publishTimeMs;
    ledger.entries.push(entry);
    ledger.bytes += entry.bytes;
    return this.#end++;
  }

  /** What is appended from now on goes to a new ledger. */
  seal(): void {
    this.#sealed = true;
  }

  /** The append of `position` completed, or failed: then the entry is left out and the position stays empty. */
  confirm(position: number, stored: boolean): void {
    if (!stored) this.remove(position);
    this.#confirmedEnd = Math.max(this.#confirmedEnd, position + 1);
  }

  /** Nothing at or behind this position may be sent. @param position Infinity: all may */
  hideFrom(position: number): void {
    this.#hiddenFrom = position;
  }

  /** The entry is none any more: its transaction was aborted. Its position stays empty. */
  remove(position: number): void {
    const ledger = this.ledgerOf(position);
    if (ledger !== undefined) ledger.entries[position - ledger.first] = undefined;
  }

  entryAt(position: number): Entry | undefined {
    const ledger = this.ledgerOf(position);
    return ledger?.entries[position - ledger.first];
  }

  /** Undefined when the position was trimmed or is not there yet. */
  ledgerOf(position: number): Ledger | undefined {
    const last = this.#lastRead;
    if (last !== undefined && position >= last.first && position < last.first + last.entries.length) return last;
    if (position < this.first || position >= this.#end) return undefined;
    const found = this.#ledgers[this.#lastLedgerUpTo('first', position)];
    this.#lastRead = found;
    return found;
  }

  /** Undefined when the id names no entry that is kept here. */
  positionOf(ledgerId: number, entryId: number): number | undefined {
    const ledger = this.#ledgerWithId(ledgerId);
    if (ledger === undefined || entryId < 0 || entryId >= ledger.entries.length) return undefined;
    return ledger.first + entryId;
  }

  /** Of the entry before `position`; entry -1 stands before the first one of its ledger, and -1:-1 before all. */
  placeBefore(position: number): { readonly ledgerId: number; readonly entryId: number } {
    const ledger = this.ledgerOf(position - 1);
    if (ledger === undefined) return { ledgerId: this.firstLedgerId, entryId: -1 };
    return { ledgerId: ledger.id, entryId: position - 1 - ledger.first };
  }

  /** The last position up to such a place, whether its entry is still kept or not. */
  lastPositionUpTo(ledgerId: number, entryId: number): number {
    return this.positionOf(ledgerId, entryId) ?? this.nearestPositionOf(ledgerId, entryId) - 1;
  }

  /** Where a seek to an id lands: an id before the first entry or after the last one means those ends (S-28). */
  nearestPositionOf(ledgerId: number, entryId: number): number {
    const ledger = this.#ledgerWithId(ledgerId);
    if (ledger !== undefined) return ledger.first + Math.min(Math.max(entryId, 0), ledger.entries.length);
    // Ledger ids are unique in the broker, so this topic's have gaps: an id in a gap lies before the next ledger.
    const at = this.#lastLedgerUpTo('id', ledgerId);
    const later = (this.#ledgers[at]?.id ?? Infinity) > ledgerId ? this.#ledgers[at] : this.#ledgers[at + 1];
    return later?.first ?? this.#end;
  }

  /** The position after the oldest ledger; Infinity while it is the only one, which always stays. */
  get oldestLedgerEnd(): number {
    const [oldest] = this.#ledgers;
    return oldest === undefined || this.#ledgers.length === 1 ? Infinity : oldest.first + oldest.entries.length;
  }

  /** Removes ledgers that are full, or closed, and whose entries lie before `position`; the open one stays. */
  trim(position: number): void {
    if (this.#sealed && position >= this.#end) this.#openLedger();
    // Where a ledger ends the next one begins.
    const passed = Math.min(this.#lastLedgerUpTo('first', position), this.#ledgers.length - 1);
    if (passed <= 0) return;
    this.#ledgers.splice(0, passed);
    this.#lastRead = undefined;
  }

  /** The first position published at or after `timeMs`; the one after the last entry when there is none. */
  positionAt(timeMs: number): number {
    const ledger = this.#ledgers[firstIndex(this.#ledgers.length, (i) => this.#startMs(i) >= timeMs) - 1];
    if (ledger === undefined) return this.first;
    const index = firstIndex(ledger.entries.length, (i) => publishTimeMs(ledger, i) >= timeMs);
    return Math.min(this.end, ledger.first + index);
  }

  #startMs(index: number): number {
    return this.#ledgers[index]?.startMs ?? Infinity;
  }

  #isFull(ledger: Ledger): boolean {
    return ledger.entries.length >= this.#limits.entries || ledger.bytes >= this.#limits.bytes;
  }

  #openLedger(): Ledger {
    const ledger: Ledger = { id: this.#nextLedgerId(), first: this.#end, entries: [], bytes: 0, startMs: Infinity };
    this.#ledgers.push(ledger);
    this.#sealed = false;
    return ledger;
  }

  #ledgerWithId(id: number): Ledger | undefined {
    if (this.#lastRead?.id === id) return this.#lastRead;
    const found = this.#ledgers[this.#lastLedgerUpTo('id', id)];
    return found?.id === id ? found : undefined;
  }

  /** The index of the last ledger whose number is up to `limit`; 0 when there is none. Both numbers rise. */
  #lastLedgerUpTo(number: 'id' | 'first', limit: number): number {
    return Math.max(0, firstIndex(this.#ledgers.length, (i) => (this.#ledgers[i]?.[number] ?? Infinity) > limit) - 1);
  }
}

/** Where the store refused the entry that of the one before: times must not fall. */
function publishTimeMs({ entries, startMs }: Ledger, index: number): number {
  for (let at = index; at > 0; at--) {
    const entry = entries[at];
    if (entry !== undefined) return entry.publishTimeMs;
  }
  return startMs;
}
