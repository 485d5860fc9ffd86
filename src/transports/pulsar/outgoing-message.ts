// A message on its way into the addon. What the addon would change without a word (other bytes than text in keys, a null
// value, a NUL), drop, or end the process over is refused here.
import { TransportError, describeValue } from '../../core/errors.js';
import type { EncodedMessage, MessageKey } from '../../core/message.js';
import { publishProblem } from '../../core/message-checks.js';
import { utf8Length } from '../../core/text.js';
import type { OfficialOutgoingMessage } from './official-client.js';
import { notSupported } from './official-errors.js';
import { DELIVER_AT_PROPERTY } from './received-message.js';

/**
 * Keys and properties: the client writes them into a buffer of 64 KiB without looking whether they fit, and about 100 kB
 * have ended a process (apache/pulsar-client-python#223). Half of it leaves room for what it adds itself.
 */
const MAX_METADATA_BYTES = 32 * 1024;
/** What the protocol puts around each property. */
const PROPERTY_OVERHEAD_BYTES = 8;

const NUL = '\0';
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * @param topic for errors. @param limit bytes that the broker takes.
 * @throws ConfigurationError for what is no message; TransportError MESSAGE_TOO_LARGE, NOT_SUPPORTED.
 */
export function officialMessageOf(
  topic: string,
  message: EncodedMessage,
  sequenceId: number,
  limit: number,
): OfficialOutgoingMessage {
  // A negative sequence id ends the process.
  const wrong = publishProblem(message, sequenceId);
  if (wrong !== undefined) throw wrong;
  const official: OfficialOutgoingMessage = {
    data: dataOf(topic, message.payload),
    properties: propertiesOf(topic, message),
    sequenceId,
  };
  if (message.key !== undefined) official.partitionKey = keyOf(topic, message.key);
  if (message.orderingKey !== undefined) official.orderingKey = orderingKeyOf(topic, message.orderingKey);
  if (message.eventTimeMs !== undefined) official.eventTimestamp = timeOf(topic, 'event time', message.eventTimeMs);
  if (message.deliverAtMs !== undefined)
    official.deliverAt = timeOf(topic, 'delivery time', Math.ceil(message.deliverAtMs));
  checkSize(topic, official, limit);
  return official;
}

function dataOf(topic: string, payload: Uint8Array | null): Buffer {
  if (payload !== null) return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  throw notSupported(
    `message for "${topic}" has a null value as its payload: "pulsar-client" would publish no bytes at all`,
  );
}

/** A copy without a prototype: the addon also takes what is inherited. */
function propertiesOf(topic: string, { properties, deliverAtMs }: EncodedMessage): Record<string, string> {
  const copy = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes(NUL) || value.includes(NUL)) throw hasNul(topic, `property ${JSON.stringify(name)}`);
    copy[name] = value;
  }
  if (deliverAtMs !== undefined) copy[DELIVER_AT_PROPERTY] = String(Math.ceil(deliverAtMs));
  return copy;
}

function keyOf(topic: string, key: MessageKey): string {
  if (typeof key !== 'string')
    throw notSupported(
      `message for "${topic}" has a key of bytes: "pulsar-client" takes text only; pulsework/wire takes both`,
    );
  if (key.includes(NUL)) throw hasNul(topic, 'its key');
  return key;
}

function orderingKeyOf(topic: string, bytes: Uint8Array): string {
  let text: string;
  try {
    text = strictUtf8.decode(bytes);
  } catch {
    throw notSupported(
      `message for "${topic}" has an ordering key that is no text in UTF-8: "pulsar-client" takes text only`,
    );
  }
  if (text.includes(NUL)) throw hasNul(topic, 'its ordering key');
  return text;
}

function hasNul(topic: string, what: string): TransportError {
  return notSupported(`message for "${topic}": ${what} has a NUL, where "pulsar-client" would cut it off`);
}

/** Others are ignored, or mean at once. */
function timeOf(topic: string, what: string, epochMs: number): number {
  if (Number.isSafeInteger(epochMs) && epochMs >= 0) return epochMs;
  throw notSupported(`message for "${topic}" has ${describeValue(epochMs)} as its ${what}`);
}

/** Also for the neighbours: a message that a broker refuses costs everyone on the connection that connection. */
function checkSize(topic: string, message: OfficialOutgoingMessage, limit: number): void {
  let metadata = utf8Length(message.partitionKey ?? '') + utf8Length(message.orderingKey ?? '');
  const properties = Object.entries(message.properties);
  for (const [name, value] of properties) metadata += utf8Length(name) + utf8Length(value);
  const bytes = message.data.length + metadata;
  if (bytes > limit) throw tooLarge(`message for "${topic}" has ${bytes} bytes, "maxMessageBytes" is ${limit}`);
  metadata += properties.length * PROPERTY_OVERHEAD_BYTES;
  if (metadata <= MAX_METADATA_BYTES) return;
  const text = `message for "${topic}" has ${metadata} bytes of keys and properties: "pulsar-client" takes ${MAX_METADATA_BYTES} safely`;
  throw tooLarge(`${text}; pulsework/wire takes more`);
}

function tooLarge(text: string): TransportError {
  return new TransportError('MESSAGE_TOO_LARGE', text, { retriable: false });
}
