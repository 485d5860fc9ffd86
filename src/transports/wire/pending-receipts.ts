// The promises of messages that share one entry: stored together, or failed together. Tens of thousands wait at a time
// and the garbage collector walks over all of them, so each costs one function and nothing else.
import type { MessageId } from '../../core/message-id.js';
import type { PendingMessage } from './pending-message.js';

/** Settles the promise of one message: a rejected promise fails it, so that no second function has to be kept. */
export type Settle = (receipt: MessageId | Promise<never>) => void;

export interface EntryPlace {
  readonly ledgerId: number;
  readonly entryId: number;
  readonly partition: number;
  readonly topic: string;
}

let captured: Settle = () => undefined;
/** One function for all promises: a closure for each would be garbage. */
const capture = (settle: Settle): void => void (captured = settle);

/** A promise, and what settles it. */
export function promisedReceipt(): { readonly promise: Promise<MessageId>; readonly settle: Settle } {
  const promise = new Promise<MessageId>(capture);
  return { promise, settle: captured };
}

/** What `settle` takes to fail messages; none of them is no mistake. */
export function failedReceipt(error: Error): Promise<never> {
  const failed = Promise.reject(error);
  failed.catch(() => undefined);
  return failed;
}

export class PendingReceipts {
  /** What they count in limits, together. */
  bytes = 0;
  /** When the oldest was published; the send timeout runs from here. */
  sinceMs: number;
  readonly settles: Settle[] = [];

  constructor(sinceMs: number) {
    this.sinceMs = sinceMs;
  }

  get count(): number {
    return this.settles.length;
  }

  /** In the order of publishing. */
  add({ settle, bytes, sinceMs }: PendingMessage): void {
    if (sinceMs !== undefined && this.count === 0) this.sinceMs = sinceMs;
    this.settles.push(settle);
    this.bytes += bytes;
  }

  stored({ ledgerId, entryId, partition, topic }: EntryPlace): void {
    const settles = this.settles;
    const batchSize = settles.length === 1 ? 0 : settles.length;
    for (let i = 0; i < settles.length; i++) {
      settles[i]?.({ ledgerId, entryId, partition, batchIndex: batchSize === 0 ? -1 : i, batchSize, topic });
    }
  }

  failed(error: Error): void {
    const failure = failedReceipt(error);
    for (const settle of this.settles) settle(failure);
  }
}
