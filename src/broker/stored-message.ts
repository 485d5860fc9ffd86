// Checks and copies what a publisher hands over: afterwards nothing the caller does to its buffers or objects can
// change what is stored.
import type { TransportError } from '../core/errors.js';
import { describeValue } from '../core/errors.js';
import type { EncodedMessage, MessageKey } from '../core/message.js';
import type { MessageProperties } from '../core/properties.js';
import { NO_PROPERTIES, areProperties, copyProperties, propertyProblems } from '../core/properties.js';
import { publishRefused } from './broker-errors.js';
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

/** @throws TransportError PUBLISH_REFUSED naming what is wrong with the message. */
export function storedMessage(message: EncodedMessage, pool: BytePool): StoredMessage {
  checkMessage(message);
  return new StoredMessage(message, pool);
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

/** @throws TransportError PUBLISH_REFUSED naming what is wrong with the message. */
export function checkMessage(message: unknown): void {
  if (typeof message !== 'object' || message === null)
    throw refused(`must be an object, got ${describeValue(message)}`);
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message as Record<string, unknown>;
  if (payload !== null && !(payload instanceof Uint8Array)) {
    throw refused(`"payload" must be a Uint8Array or null, got ${describeValue(payload)}`);
  }
  if (key !== undefined && typeof key !== 'string' && !(key instanceof Uint8Array)) {
    throw refused(`"key" must be a text or a Uint8Array, got ${describeValue(key)}`);
  }
  if (orderingKey !== undefined && !(orderingKey instanceof Uint8Array)) {
    throw refused(`"orderingKey" must be a Uint8Array, got ${describeValue(orderingKey)}`);
  }
  const [problem] = areProperties(properties) ? [] : propertyProblems(properties);
  if (problem !== undefined) throw refused(problem);
  checkTime('eventTimeMs', eventTimeMs);
  checkTime('deliverAtMs', deliverAtMs);
}

function checkTime(name: string, value: unknown): void {
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value) && value >= 0)) return;
  throw refused(`"${name}" must be epoch milliseconds, got ${describeValue(value)}`);
}

function refused(rule: string): TransportError {
  return publishRefused(`message to publish: ${rule}`);
}
