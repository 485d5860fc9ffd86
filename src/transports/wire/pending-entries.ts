// Entries that were sent and have no receipt yet, in the order of sending. Receipts come in that order, so only the
// oldest entry can be completed: a receipt for a later one says that something was lost.
import { Fifo } from './fifo.js';
import type { PendingReceipts } from './pending-receipts.js';

/** One frame: a single message, or a batch. */
export interface PendingEntry {
  /** What the receipt will name. */
  readonly sequenceId: number;
  /** Sent again as it is after a reconnect: a batch that is cut differently loses messages under deduplication. */
  readonly frame: Buffer;
  readonly receipts: PendingReceipts;
  /** Its sequence id was sent more than once: a receipt of it does not say that no socket reads this frame any more. */
  sentBefore: boolean;
}

export type ReceiptVerdict =
  /** For an entry that was given up before: nothing to do. */
  | 'late'
  /** Receipts are missing before this one: only sending everything again helps. */
  | 'gap';

export class PendingEntries {
  readonly #entries = new Fifo<PendingEntry>();
  #whenEmpty: (() => void)[] = [];

  get size(): number {
    return this.#entries.size;
  }

  push(entry: PendingEntry): void {
    this.#entries.push(entry);
  }

  oldest(): PendingEntry | undefined {
    return this.#entries.peek();
  }

  /** Takes out the entry that a receipt completes. */
  receipt(sequenceId: number): PendingEntry | ReceiptVerdict {
    if (this.#entries.peek()?.sequenceId !== sequenceId) {
      return this.#entries.some((entry) => entry.sequenceId === sequenceId) ? 'gap' : 'late';
    }
    const completed = this.#entries.shift() as PendingEntry;
    this.#tellEmpty();
    return completed;
  }

  remove(sequenceId: number): PendingEntry | undefined {
    const removed = this.#entries.remove((entry) => entry.sequenceId === sequenceId);
    this.#tellEmpty();
    return removed;
  }

  toArray(): PendingEntry[] {
    return this.#entries.toArray();
  }

  takeAll(): PendingEntry[] {
    const all = this.#entries.takeAll();
    this.#tellEmpty();
    return all;
  }

  /** Resolves once nothing waits for a receipt. */
  empty(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenEmpty.push(resolve));
  }

  #tellEmpty(): void {
    if (this.#whenEmpty.length === 0 || this.size > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}
