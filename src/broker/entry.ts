// What a topic stores: an entry holds one message, or the messages of one producer batch. Brokers deliver, redeliver
// and count whole entries; only acknowledgement looks inside. A backlog is made of these: each field counts.
import type { ChunkOrigin } from '../core/chunk-origin.js';
import type { EncodedMessage } from '../core/message.js';
import { murmur3 } from '../core/key-hash.js';

/** What a producer says about an entry. */
export interface EntryOrigin {
  readonly producerName: string;
  readonly sequenceId: number;
  /** The key of the transaction that it is a part of. @default none */
  readonly transaction?: string | undefined;
}

export type { ChunkOrigin } from '../core/chunk-origin.js';

export class Entry {
  readonly publishTimeMs: number;
  readonly producerName: string;
  readonly sequenceId: number;
  /** Payload, properties and keys. */
  readonly bytes: number;
  /** The message itself unless it is a batch: an array for each would be a sixth of what an entry takes. */
  readonly #content: EncodedMessage | readonly EncodedMessage[];
  #keyHash = -1;

  /** @param content an array for a producer batch, also one of a single message. */
  constructor(
    content: EncodedMessage | readonly EncodedMessage[],
    facts: { readonly publishTimeMs: number; readonly bytes: number },
    origin: EntryOrigin,
  ) {
    this.#content = content;
    this.publishTimeMs = facts.publishTimeMs;
    this.bytes = facts.bytes;
    this.producerName = origin.producerName;
    this.sequenceId = origin.sequenceId;
  }

  /** Undefined for an entry that is no part of a message: only those that are one have room for it, see `ChunkEntry`. */
  get chunk(): ChunkOrigin | undefined {
    return undefined;
  }

  /** The key of its transaction, however that ended; undefined for an entry that is in none, see `TransactionEntry`. */
  get transaction(): string | undefined {
    return undefined;
  }

  /** The number of messages of a batch, 0 when the entry is not a batch. */
  get batchSize(): number {
    return isBatch(this.#content) ? this.#content.length : 0;
  }

  get messageCount(): number {
    return isBatch(this.#content) ? this.#content.length : 1;
  }

  get messages(): readonly EncodedMessage[] {
    return isBatch(this.#content) ? this.#content : [this.#content];
  }

  /** @param index below `messageCount`. */
  messageAt(index: number): EncodedMessage {
    const content = this.#content;
    const message = isBatch(content) ? content[index] : content;
    if (message === undefined) throw new RangeError(`the entry has no message ${index}`);
    return message;
  }

  /** Epoch milliseconds before which Shared and Key_Shared do not deliver it; 0 for at once. Batches are never delayed (Y-01). */
  get deliverAtMs(): number {
    return isBatch(this.#content) ? 0 : (this.#content.deliverAtMs ?? 0);
  }

  /**
   * The hash that Key_Shared goes by, of the first message's ordering key, else key, else producer and sequence id
   * (K-01: one key per entry; presence decides, not length).
   */
  get keyHash(): number {
    if (this.#keyHash < 0) {
      const { orderingKey, key } = this.messageAt(0);
      this.#keyHash = murmur3(orderingKey ?? key ?? `${this.producerName}-${this.sequenceId}`);
    }
    return this.#keyHash;
  }
}

/** A part of a message that was larger than an entry may be. Brokers deliver, count and acknowledge it as any other entry. */
export class ChunkEntry extends Entry {
  readonly #chunk: ChunkOrigin;

  constructor(
    part: EncodedMessage,
    facts: { readonly publishTimeMs: number; readonly bytes: number },
    origin: EntryOrigin,
    { uuid, index, count, totalBytes }: ChunkOrigin,
  ) {
    super(part, facts, origin);
    this.#chunk = { uuid, index, count, totalBytes };
  }

  override get chunk(): ChunkOrigin {
    return this.#chunk;
  }
}

/** Published in a transaction, perhaps as a part of a larger message: it is no message for anybody before that is committed (T-07). */
export class TransactionEntry extends Entry {
  readonly #transaction: string;
  readonly #chunk: ChunkOrigin | undefined;

  constructor(
    content: EncodedMessage | readonly EncodedMessage[],
    facts: { readonly publishTimeMs: number; readonly bytes: number },
    origin: EntryOrigin & { readonly transaction: string },
    chunk?: ChunkOrigin,
  ) {
    super(content, facts, origin);
    this.#transaction = origin.transaction;
    this.#chunk = chunk && { ...chunk };
  }

  override get chunk(): ChunkOrigin | undefined {
    return this.#chunk;
  }

  override get transaction(): string {
    return this.#transaction;
  }
}

function isBatch(content: EncodedMessage | readonly EncodedMessage[]): content is readonly EncodedMessage[] {
  return Array.isArray(content);
}
