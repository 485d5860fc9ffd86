// Checks and copies what a publisher hands over: afterwards nothing the caller does to its buffers or objects can
// change what is stored.
import { TransportError, describeValue } from '../core/errors.js';
import type { BytePool } from './byte-pool.js';
import type { EncodedMessage, MessageKey } from '../core/message.js';
import type { MessageProperties } from '../core/properties.js';
import { NO_PROPERTIES, copyProperties, propertyProblems } from '../core/properties.js';

/** @throws TransportError PUBLISH_REFUSED naming what is wrong with the message. */
export function storedMessage(message: EncodedMessage, pool: BytePool): EncodedMessage {
  checkMessage(message);
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message;
  return {
    payload: payload === null ? null : pool.copy(payload),
    key: key === undefined || typeof key === 'string' ? key : pool.copy(key),
    orderingKey: orderingKey === undefined ? undefined : pool.copy(orderingKey),
    properties: storedProperties(properties),
    eventTimeMs,
    deliverAtMs,
  };
}

/** Payload, properties and keys in bytes: what counts against the broker's limit. */
export function messageBytes(message: EncodedMessage): number {
  let bytes = (message.payload?.length ?? 0) + keyBytes(message.key) + (message.orderingKey?.length ?? 0);
  for (const name of Object.keys(message.properties)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(message.properties[name] ?? '');
  }
  return bytes;
}

function storedProperties(properties: MessageProperties): MessageProperties {
  const copy = copyProperties(properties);
  return Object.keys(copy).length === 0 ? NO_PROPERTIES : Object.freeze(copy);
}

function keyBytes(key: MessageKey | undefined): number {
  if (key === undefined) return 0;
  return typeof key === 'string' ? Buffer.byteLength(key) : key.length;
}

function checkMessage(message: unknown): void {
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
  const [problem] = propertyProblems(properties);
  if (problem !== undefined) throw refused(problem);
  checkTime('eventTimeMs', eventTimeMs);
  checkTime('deliverAtMs', deliverAtMs);
}

function checkTime(name: string, value: unknown): void {
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value) && value >= 0)) return;
  throw refused(`"${name}" must be epoch milliseconds, got ${describeValue(value)}`);
}

function refused(rule: string): TransportError {
  return new TransportError('PUBLISH_REFUSED', `message to publish: ${rule}`, { retriable: false });
}
