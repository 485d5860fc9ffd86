// Entries as bytes, one behind the other in a block, and back. Numbers are little-endian; texts and bytes stand behind their
// length. What was written once is read by all later versions: a new field needs a new flag.
import type { EncodedMessage, MessageKey } from '../../core/message.js';
import type { MessageProperties } from '../../core/properties.js';
import { NO_PROPERTIES } from '../../core/properties.js';
import type { StoredEntry } from '../../ports/broker-store.js';

const BATCH = 1;
const CHUNK = 2;
const TRANSACTION = 4;

const NO_PAYLOAD = 1;
const TEXT_KEY = 2;
const BYTES_KEY = 4;
const ORDERING_KEY = 8;
const PROPERTIES = 16;
const EVENT_TIME = 32;
const DELIVER_AT = 64;

const FIRST_BYTES = 1_024;

/** A block in the making. */
export class EntryWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Of all entries so far; to be used before the next one comes. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  add(entry: StoredEntry): void {
    const { chunk, transaction, batchSize, messages } = entry;
    const [isBatch, isChunk, isInTransaction] = [batchSize > 0, chunk !== undefined, transaction !== undefined];
    this.#byte((isBatch ? BATCH : 0) | (isChunk ? CHUNK : 0) | (isInTransaction ? TRANSACTION : 0));
    this.#number(entry.publishTimeMs);
    this.#number(entry.sequenceId);
    this.#count(entry.bytes);
    this.#text(entry.producerName);
    if (chunk !== undefined) {
      this.#text(chunk.uuid);
      this.#count(chunk.index);
      this.#count(chunk.count);
      this.#number(chunk.totalBytes);
    }
    if (transaction !== undefined) this.#text(transaction);
    if (batchSize > 0) this.#count(batchSize);
    for (const message of messages) this.#message(message);
  }

  #message(message: EncodedMessage): void {
    const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message;
    this.#byte(flagsOf(message));
    if (eventTimeMs !== undefined) this.#number(eventTimeMs);
    if (deliverAtMs !== undefined) this.#number(deliverAtMs);
    if (typeof key === 'string') this.#text(key);
    else if (key !== undefined) this.#array(key);
    if (orderingKey !== undefined) this.#array(orderingKey);
    if (properties !== NO_PROPERTIES) this.#properties(properties);
    if (payload !== null) this.#array(payload);
  }

  #properties(properties: MessageProperties): void {
    const names = Object.keys(properties);
    this.#count(names.length);
    for (const name of names) {
      this.#text(name);
      this.#text(properties[name] ?? '');
    }
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  #count(value: number): void {
    this.#reserve(4);
    this.#length = this.#bytes.writeUInt32LE(value, this.#length);
  }

  /** Times may have fractions, and sequence ids are larger than four bytes. */
  #number(value: number): void {
    this.#reserve(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  #text(value: string): void {
    // No unit of a text takes more than three bytes.
    this.#reserve(4 + 3 * value.length);
    const written = this.#bytes.write(value, this.#length + 4);
    this.#bytes.writeUInt32LE(written, this.#length);
    this.#length += 4 + written;
  }

  #array(value: Uint8Array): void {
    this.#count(value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, needed));
    larger.set(this.bytes);
    this.#bytes = larger;
  }
}

/** A message without properties has `NO_PROPERTIES`, which most have. */
function flagsOf({ payload, key, orderingKey, properties, eventTimeMs, deliverAtMs }: EncodedMessage): number {
  const keyFlag = typeof key === 'string' ? TEXT_KEY : BYTES_KEY;
  return (
    (payload === null ? NO_PAYLOAD : 0) |
    (key === undefined ? 0 : keyFlag) |
    (orderingKey === undefined ? 0 : ORDERING_KEY) |
    (properties === NO_PROPERTIES ? 0 : PROPERTIES) |
    (eventTimeMs === undefined ? 0 : EVENT_TIME) |
    (deliverAtMs === undefined ? 0 : DELIVER_AT)
  );
}

/**
 * All entries of a block, as long as which its bytes are kept: payloads are parts of them.
 * @throws RangeError where it is not what `EntryWriter` wrote.
 */
export function entriesOf(block: Uint8Array, names: TextPool): readonly StoredEntry[] {
  const reader = new EntryReader(block, names);
  const entries: StoredEntry[] = [];
  while (!reader.isAtEnd) entries.push(reader.next());
  return entries;
}

/** One text for all that are equal: thousands of entries are of one producer. */
export class TextPool {
  readonly #texts = new Map<string, string>();

  one(text: string): string {
    const known = this.#texts.get(text);
    if (known === undefined) this.#texts.set(text, text);
    return known ?? text;
  }
}

/** The payload is only looked up in the block: an array for each would be a third of what a backlog takes. */
class BlockMessage implements EncodedMessage {
  key: MessageKey | undefined;
  orderingKey: Uint8Array | undefined;
  properties: MessageProperties = NO_PROPERTIES;
  eventTimeMs: number | undefined;
  deliverAtMs: number | undefined;
  readonly #block: Uint8Array;
  #from = -1;
  #to = -1;

  constructor(block: Uint8Array) {
    this.#block = block;
  }

  placePayload(from: number, to: number): void {
    this.#from = from;
    this.#to = to;
  }

  get payload(): Uint8Array | null {
    return this.#from < 0 ? null : this.#block.subarray(this.#from, this.#to);
  }
}

class EntryReader {
  readonly #bytes: Buffer;
  readonly #names: TextPool;
  #at = 0;

  constructor(block: Uint8Array, names: TextPool) {
    this.#bytes = Buffer.from(block.buffer, block.byteOffset, block.length);
    this.#names = names;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  next(): StoredEntry {
    const flags = this.#byte(BATCH | CHUNK | TRANSACTION);
    const publishTimeMs = this.#number();
    const sequenceId = this.#number();
    const bytes = this.#count();
    const producerName = this.#names.one(this.#text());
    const chunk =
      (flags & CHUNK) === 0
        ? undefined
        : { uuid: this.#text(), index: this.#count(), count: this.#count(), totalBytes: this.#number() };
    const transaction = (flags & TRANSACTION) === 0 ? undefined : this.#names.one(this.#text());
    const batchSize = (flags & BATCH) === 0 ? 0 : this.#count();
    const messages: EncodedMessage[] = [];
    while (messages.length < Math.max(1, batchSize)) messages.push(this.#message());
    return { publishTimeMs, producerName, sequenceId, bytes, batchSize, messages, chunk, transaction };
  }

  #message(): EncodedMessage {
    const flags = this.#byte(127);
    const message = new BlockMessage(this.#bytes);
    if ((flags & EVENT_TIME) !== 0) message.eventTimeMs = this.#number();
    if ((flags & DELIVER_AT) !== 0) message.deliverAtMs = this.#number();
    if ((flags & TEXT_KEY) !== 0) message.key = this.#text();
    if ((flags & BYTES_KEY) !== 0) message.key = this.#array();
    if ((flags & ORDERING_KEY) !== 0) message.orderingKey = this.#array();
    if ((flags & PROPERTIES) !== 0) message.properties = this.#properties();
    if ((flags & NO_PAYLOAD) === 0) {
      const from = this.#span();
      message.placePayload(from, this.#at);
    }
    return message;
  }

  #properties(): MessageProperties {
    const properties = Object.create(null) as Record<string, string>;
    for (let left = this.#count(); left > 0; left--) {
      const name = this.#names.one(this.#text());
      properties[name] = this.#text();
    }
    return Object.freeze(properties);
  }

  /** @throws RangeError for a flag that this version does not know. */
  #byte(known: number): number {
    const value = this.#bytes.readUInt8(this.#at++);
    if ((value & ~known) !== 0) throw new RangeError(`unknown flags ${value} at ${this.#at - 1}`);
    return value;
  }

  #count(): number {
    const value = this.#bytes.readUInt32LE(this.#at);
    this.#at += 4;
    return value;
  }

  #number(): number {
    const value = this.#bytes.readDoubleLE(this.#at);
    this.#at += 8;
    return value;
  }

  #text(): string {
    const from = this.#span();
    return this.#bytes.toString('utf8', from, this.#at);
  }

  #array(): Uint8Array {
    const from = this.#span();
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + from, this.#at - from);
  }

  /** @returns where the bytes behind a length begin; they end where reading goes on. */
  #span(): number {
    const length = this.#count();
    const from = this.#at;
    if (from + length > this.#bytes.length) throw new RangeError(`${length} bytes at ${from} are cut`);
    this.#at += length;
    return from;
  }
}
