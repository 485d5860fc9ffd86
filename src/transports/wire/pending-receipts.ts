// The promises of messages that share one entry: stored together, or failed together. Tens of thousands wait at a time
// and the garbage collector walks over all of them, so all wait for one promise of their entry: each is what `then` made
// of it, and nothing is kept for a message but that.
import type { EntryPosition, MessageId } from '../../core/message-id.js';

export interface EntryPlace {
  readonly ledgerId: number;
  readonly entryId: number;
  readonly partition: number;
  readonly topic: string;
  /** Of a message in chunks, whose last one is here. */
  readonly firstChunk?: EntryPosition;
}

/** What became of the message at a place in its entry. */
type Outcome = (index: number) => MessageId | Promise<MessageId>;

export class PendingReceipts {
  /** How many messages. */
  count = 0;
  /** What they count in limits, together. */
  bytes = 0;
  /** When the oldest was published; the send timeout runs from here. */
  sinceMs: number;
  readonly #outcome: Promise<Outcome>;
  #settle!: (outcome: Outcome | Promise<never>) => void;
  /** One function for all messages: what waits for a promise is told in the order in which it began to. */
  readonly #next: (outcome: Outcome) => MessageId | Promise<MessageId>;

  constructor(sinceMs: number) {
    this.sinceMs = sinceMs;
    this.#outcome = new Promise((resolve) => (this.#settle = resolve));
    let index = 0;
    this.#next = (outcome) => outcome(index++);
  }

  /** One more, in the order of publishing. @returns the receipt. @param sinceMs undefined for when the entry began. */
  add(bytes: number, sinceMs: number | undefined): Promise<MessageId> {
    if (sinceMs !== undefined && this.count === 0) this.sinceMs = sinceMs;
    this.count += 1;
    this.bytes += bytes;
    return this.#outcome.then(this.#next);
  }

  stored(place: EntryPlace): void {
    const { ledgerId, entryId, partition, topic } = place;
    const batchSize = this.count === 1 ? 0 : this.count;
    if (place.firstChunk !== undefined) return this.#settle(() => ({ ...place, batchIndex: -1, batchSize: 0 }));
    this.#settle((index) => {
      return { ledgerId, entryId, partition, batchIndex: batchSize === 0 ? -1 : index, batchSize, topic };
    });
  }

  /** They went into other entries, from which each has its receipt. */
  movedTo(receipts: readonly Promise<MessageId>[]): void {
    this.#settle((index) => receipts[index] as Promise<MessageId>);
  }

  failed(error: Error): void {
    this.#settle(Promise.reject(error));
  }
}
