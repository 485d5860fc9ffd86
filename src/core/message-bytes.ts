// What a message takes of the room that a broker has for one: reckoned with what telemetry and the protocol add on the way, so that
// one that fits here is not refused there.
import type { EncodedMessage, MessageKey } from './message.js';
import { utf8Length } from './text.js';

/** What the frame needs beyond payload, key and properties: names, times, the protocol's own fields, and a trace context. */
const ENVELOPE_BYTES = 512;
/** What the protocol adds to each property. */
const PROPERTY_BYTES = 8;

type Sized = Pick<EncodedMessage, 'payload' | 'key' | 'orderingKey' | 'properties'>;

export function messageBytes(message: Sized): number {
  const properties = Object.entries(message.properties);
  return bytesWithoutProperties(message) + properties.reduce((sum, [name, text]) => sum + propertyBytes(name, text), 0);
}

export function bytesWithoutProperties({ payload, key, orderingKey }: Omit<Sized, 'properties'>): number {
  return (payload?.length ?? 0) + keyBytes(key) + keyBytes(orderingKey) + ENVELOPE_BYTES;
}

export function propertyBytes(name: string, text: string): number {
  return utf8Length(name) + utf8Length(text) + PROPERTY_BYTES;
}

function keyBytes(key: MessageKey | undefined): number {
  if (key === undefined) return 0;
  return typeof key === 'string' ? utf8Length(key) : key.length;
}
