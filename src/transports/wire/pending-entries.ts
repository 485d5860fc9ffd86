// Entries that were sent and have no receipt yet, in the order of sending. Receipts come in that order, so only the
// oldest entry can be completed: a receipt for a later one says that something was lost.
import { Fifo } from './fifo.js';
import type { OutgoingChunk } from './outgoing-chunks.js';
import type { PendingReceipts } from './pending-receipts.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';

/** One frame: a single message, a batch, or a chunk of a message. */
export interface PendingEntry {
  /** What the receipt will name. */
  readonly sequenceId: number;
  /** Sent again as it is after a reconnect: a batch that is cut differently loses messages under deduplication. */
  readonly frame: Buffer;
  /** Of all messages in it; those of a message in chunks are the same for each of its entries. */
  readonly receipts: PendingReceipts;
  /** The chunks of a message follow each other, with one sequence id. */
  readonly chunk?: OutgoingChunk;
  /** Its sequence id was sent more than once: a receipt of it does not say that no socket reads this frame any more. */
  sentBefore: boolean;
  readonly transaction?: OpenTransaction | undefined;
}

export type ReceiptVerdict =
  /** For an entry that was given up before: nothing to do. */
  | 'late'
  /** Receipts are missing before this one: only sending everything again helps. */
  | 'gap';

/** Of a message in chunks its last one. */
export function isEndOfMessage({ chunk }: PendingEntry): boolean {
  return chunk === undefined || chunk.of.isLast(chunk.index);
}

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

  /** Takes out the entry that the broker had before. Of a message in chunks it knows, and tells, the last one only. */
  repeated(sequenceId: number): PendingEntry | undefined {
    const removed = this.#entries.remove((entry) => entry.sequenceId === sequenceId && isEndOfMessage(entry));
    this.#tellEmpty();
    return removed;
  }

  /** Takes out what the broker refused: a message in chunks with all that is left of them. */
  refused(sequenceId: number): PendingEntry | undefined {
    const removed = this.#entries.remove((entry) => entry.sequenceId === sequenceId);
    if (removed?.chunk !== undefined) this.removeChunks(removed.receipts);
    this.#tellEmpty();
    return removed;
  }

  /** What is left of a message in chunks that failed. */
  removeChunks(receipts: PendingReceipts): void {
    this.#entries.removeAll((entry) => entry.receipts === receipts);
    this.#tellEmpty();
  }

  /** Those with that sequence id: more than one only of a message in chunks, or when it was published twice. */
  withId(sequenceId: number): PendingEntry[] {
    return this.toArray().filter((entry) => entry.sequenceId === sequenceId);
  }

  /** Takes out those of transactions that have ended: sent again they would block their topic. One for each message. */
  takeEnded(): PendingEntry[] {
    const hasEnded = ({ transaction }: PendingEntry): boolean => transaction?.mayChange === false;
    const ended = this.toArray().filter(hasEnded);
    if (ended.length > 0) this.#entries.removeAll((entry) => ended.includes(entry));
    this.#tellEmpty();
    return ended.filter(({ receipts }, at) => ended.findIndex((entry) => entry.receipts === receipts) === at);
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
