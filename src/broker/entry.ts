// What a topic stores: an entry holds one message, or the messages of one producer batch. Brokers deliver, redeliver
// and count whole entries; only acknowledgement looks inside. A backlog is made of these: each field counts.
import type { EncodedMessage } from '../core/message.js';
import { murmur3 } from '../core/key-hash.js';

/** What a producer says about an entry. */
export interface EntryOrigin {
  readonly producerName: string;
  readonly sequenceId: number;
}

/** What the producer of a chunk says of it. */
export interface ChunkOrigin {
  /** The same for all chunks of one message, another one for each message of the producer. */
  readonly uuid: string;
  /** From 0. */
  readonly index: number;
  /** Of the message: how many chunks, at least 2, and payload bytes in all. */
  readonly count: number;
  readonly totalBytes: number;
}

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

function isBatch(content: EncodedMessage | readonly EncodedMessage[]): content is readonly EncodedMessage[] {
  return Array.isArray(content);
}
