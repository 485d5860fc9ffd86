// What a topic stores: an entry holds one message, or the messages of one producer batch. Brokers deliver, redeliver
// and count whole entries; only acknowledgement looks inside.
import type { EncodedMessage } from '../core/message.js';
import { murmur3 } from '../core/key-hash.js';

/** What a producer says about an entry. */
export interface EntryOrigin {
  readonly producerName: string;
  readonly sequenceId: number;
}

export class Entry {
  readonly messages: readonly EncodedMessage[];
  /** The number of messages of a batch, 0 when the entry is not a batch. */
  readonly batchSize: number;
  readonly publishTimeMs: number;
  readonly origin: EntryOrigin;
  readonly bytes: number;
  #keyHash = -1;

  constructor(
    messages: readonly EncodedMessage[],
    facts: { readonly batched: boolean; readonly publishTimeMs: number; readonly bytes: number },
    origin: EntryOrigin,
  ) {
    this.messages = messages;
    this.batchSize = facts.batched ? messages.length : 0;
    this.publishTimeMs = facts.publishTimeMs;
    this.bytes = facts.bytes;
    this.origin = origin;
  }

  /** Epoch milliseconds before which Shared and Key_Shared do not deliver it; 0 for at once. Batches are never delayed (Y-01). */
  get deliverAtMs(): number {
    return this.batchSize > 0 ? 0 : (this.messages[0]?.deliverAtMs ?? 0);
  }

  /**
   * The hash that Key_Shared goes by, of the first message's ordering key, else key, else producer and sequence id
   * (K-01: one key per entry; presence decides, not length).
   */
  get keyHash(): number {
    if (this.#keyHash < 0) {
      const first = this.messages[0];
      const own = `${this.origin.producerName}-${this.origin.sequenceId}`;
      this.#keyHash = murmur3(first?.orderingKey ?? first?.key ?? own);
    }
    return this.#keyHash;
  }
}
