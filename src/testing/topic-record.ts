// Everything that the topics of an embedded broker have ever held, noted where it is stored: a test reads it without a
// subscription that would change what it looks at, and also what is long acknowledged.
import type { BrokerStore, EntryAddress } from '../broker/broker-store.js';
import type { ChunkOrigin, Entry } from '../broker/entry.js';
import type { EncodedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { withoutPartition } from '../core/topic-name.js';

export interface RecordedMessage extends Pick<EncodedMessage, 'payload' | 'key' | 'properties'> {
  /** Its place among all that the broker has stored. */
  readonly order: number;
}

export class TopicRecord implements BrokerStore {
  /** By full topic name, partitions together; in the order of storing. */
  readonly #topics = new Map<string, RecordedMessage[]>();
  /** By partition, ledger and entry. */
  readonly #entries = new Map<string, Entry>();
  /** Messages in chunks, as their last chunk names them. */
  readonly #joined = new Map<string, EncodedMessage>();
  /** By producer and message: the chunks that are stored of it. */
  readonly #chunks = new Map<string, Entry[]>();
  #stored = 0;
  #acknowledged = 0;

  /** Grows with each thing that the broker is told. */
  get activity(): number {
    return this.#stored + this.#acknowledged;
  }

  append(address: EntryAddress, entry: Entry): undefined {
    this.#entries.set(keyOf(address), entry);
    if (entry.chunk === undefined) this.#note(address.topic, entry);
    else this.#noteChunk(address, entry, entry.chunk);
  }

  /** Its place is that of all others on its topic: it can be listed, but not found by its id. */
  passed(topic: string, entry: Entry): void {
    this.#note(topic, entry);
  }

  acknowledge(): undefined {
    this.#acknowledged++;
  }

  /** Undefined for a topic that has never held anything. @param topic full name without a partition */
  messages(topic: string): readonly RecordedMessage[] | undefined {
    return this.#topics.get(topic);
  }

  /** The message as it was published; undefined when none of this id was. @param id with its full topic name */
  find(id: MessageId): EncodedMessage | undefined {
    return this.#joined.get(keyOf(id)) ?? this.#entries.get(keyOf(id))?.messageAt(Math.max(0, id.batchIndex));
  }

  /** @param partition full name, with a partition where there is one */
  #note(partition: string, entry: Entry): void {
    for (let index = 0; index < entry.messageCount; index++) this.#noteOne(partition, entry.messageAt(index));
  }

  /** Listed and found as the one message that its subscribers get. */
  #noteChunk(address: EntryAddress, entry: Entry, chunk: ChunkOrigin): void {
    this.#stored++;
    const whole = this.#join(entry, chunk);
    if (whole === undefined) return;
    this.#joined.set(keyOf(address), whole);
    this.#noteOne(address.topic, whole);
  }

  #noteOne(partition: string, { payload, key, properties }: EncodedMessage): void {
    const topic = withoutPartition(partition);
    const messages = this.#topics.get(topic) ?? [];
    this.#topics.set(topic, messages);
    messages.push({ payload, key, properties, order: this.#stored++ });
  }

  /** @returns the message when this is its last chunk, and all of the others are stored in their order before it. */
  #join(entry: Entry, { uuid, index, count, totalBytes }: ChunkOrigin): EncodedMessage | undefined {
    const key = JSON.stringify([entry.producerName, uuid]);
    const before = index === 0 ? [] : (this.#chunks.get(key) ?? []);
    const chunks = before.length === index ? [...before, entry] : before;
    this.#chunks.set(key, chunks);
    if (chunks.length < count) return undefined;
    this.#chunks.delete(key);
    const pieces = chunks.map((chunk) => chunk.messageAt(0).payload ?? new Uint8Array(0));
    return { ...fieldsOf(entry.messageAt(0)), payload: new Uint8Array(Buffer.concat(pieces, totalBytes)) };
  }
}

function fieldsOf({ key, orderingKey, properties, eventTimeMs, deliverAtMs }: EncodedMessage) {
  return { key, orderingKey, properties, eventTimeMs, deliverAtMs };
}

function keyOf({ topic, ledgerId, entryId }: EntryAddress): string {
  return `${topic} ${ledgerId}:${entryId}`;
}
