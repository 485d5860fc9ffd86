// Entries that were sent and have no receipt yet, in the order of sending. Receipts come in that order, so only the
// oldest entry can be completed: whatever else comes says that something was lost.

/** One frame: a single message, or a batch. */
export interface PendingEntry {
  /** What the receipt will name. */
  readonly sequenceId: number;
  /** Sent again as it is after a reconnect: a batch that is cut differently loses messages under deduplication. */
  readonly frame: Buffer;
  /** Where the entry was stored; undefined when the broker had it before (deduplication). */
  readonly stored: (position: { readonly ledgerId: number; readonly entryId: number }) => void;
  readonly failed: (error: Error) => void;
}

export type ReceiptVerdict =
  /** The oldest entry is complete and was removed. */
  | 'completed'
  /** For an entry that was given up before: nothing to do. */
  | 'late'
  /** Receipts are missing before this one: only sending everything again helps. */
  | 'gap';

export class PendingEntries {
  #entries: PendingEntry[] = [];
  /** Entries before it are gone: cutting them off in one go keeps removal O(1). */
  #head = 0;

  get size(): number {
    return this.#entries.length - this.#head;
  }

  push(entry: PendingEntry): void {
    this.#entries.push(entry);
  }

  oldest(): PendingEntry | undefined {
    return this.#entries[this.#head];
  }

  receipt(sequenceId: number, position: { readonly ledgerId: number; readonly entryId: number }): ReceiptVerdict {
    const oldest = this.oldest();
    if (oldest === undefined || sequenceId < oldest.sequenceId) return 'late';
    if (sequenceId > oldest.sequenceId) return 'gap';
    this.removeOldest();
    oldest.stored(position);
    return 'completed';
  }

  removeOldest(): PendingEntry | undefined {
    const oldest = this.#entries[this.#head];
    if (oldest === undefined) return undefined;
    this.#head += 1;
    if (this.#head > 1024 || this.#head === this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    return oldest;
  }

  frames(): Buffer[] {
    return this.#entries.slice(this.#head).map((entry) => entry.frame);
  }

  failAll(error: Error): void {
    const failed = this.#entries.slice(this.#head);
    this.#entries = [];
    this.#head = 0;
    for (const entry of failed) entry.failed(error);
  }
}
