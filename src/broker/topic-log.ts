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
  /** Undefined where the store refused the entry. */
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

  /** The position after the last one whose append completed: what subscriptions may read. */
  get end(): number {
    return this.#confirmedEnd;
  }

  get ledgerCount(): number {
    return this.#ledgers.length;
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
    if (!stored) {
      const ledger = this.ledgerOf(position);
      if (ledger !== undefined) ledger.entries[position - ledger.first] = undefined;
    }
    this.#confirmedEnd = Math.max(this.#confirmedEnd, position + 1);
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
