// Copies what a publisher hands over, checked already: afterwards nothing the caller does to its buffers or objects can
// change what is stored.
import type { EncodedMessage, MessageKey } from '../core/message.js';
import type { MessageProperties } from '../core/properties.js';
import { NO_PROPERTIES, copyProperties } from '../core/properties.js';
import type { BytePool } from './byte-pool.js';

/** The payload is kept as a place in the pool's blocks: an array for each would be a third of what a backlog takes. */
export class StoredMessage implements EncodedMessage {
  readonly key: MessageKey | undefined;
  readonly orderingKey: Uint8Array | undefined;
  readonly properties: MessageProperties;
  readonly eventTimeMs: number | undefined;
  readonly deliverAtMs: number | undefined;
  readonly #block: Uint8Array | null;
  readonly #offset: number;
  readonly #length: number;

  constructor({ payload, key, orderingKey, properties, eventTimeMs, deliverAtMs }: EncodedMessage, pool: BytePool) {
    const placed = payload === null ? undefined : pool.place(payload);
    this.#block = placed?.block ?? null;
    this.#offset = placed?.offset ?? 0;
    this.#length = payload?.length ?? 0;
    this.key = key === undefined || typeof key === 'string' ? key : pool.copy(key);
    this.orderingKey = orderingKey === undefined ? undefined : pool.copy(orderingKey);
    this.properties = storedProperties(properties);
    this.eventTimeMs = eventTimeMs;
    this.deliverAtMs = deliverAtMs;
  }

  get payload(): Uint8Array | null {
    return this.#block?.subarray(this.#offset, this.#offset + this.#length) ?? null;
  }

  /** Payload, properties and keys: what counts against the broker's limit. */
  get bytes(): number {
    const bytes = this.#length + keyBytes(this.key) + (this.orderingKey?.length ?? 0);
    return this.properties === NO_PROPERTIES ? bytes : bytes + propertyBytes(this.properties);
  }
}

function propertyBytes(properties: MessageProperties): number {
  let bytes = 0;
  for (const name of Object.keys(properties)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(properties[name] ?? '');
  }
  return bytes;
}

function storedProperties(properties: MessageProperties | undefined): MessageProperties {
  // Most messages have none, and a copy without a prototype is slow to make.
  if (properties === undefined || Object.keys(properties).length === 0) return NO_PROPERTIES;
  return Object.freeze(copyProperties(properties));
}

function keyBytes(key: MessageKey | undefined): number {
  if (key === undefined) return 0;
  return typeof key === 'string' ? Buffer.byteLength(key) : key.length;
}
