// One arrival, from the official client's message to the port's. Properties come in an array, which loses or refuses some
// names; what cannot be read is said, so that the message becomes a dead letter and not a delivery with something missing.
import { describeValue, toError } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { NO_PROPERTIES } from '../../core/properties.js';
import type { OfficialMessage } from './official-client.js';

/** The client does not tell a delivery time, so it travels beside itself. The runtime knows it by the same name. */
export const DELIVER_AT_PROPERTY = 'pulsework-deliver-at';

/** Indexes of an array end here; greater numbers are names like any other. */
const MAX_INDEX = 2 ** 32 - 2;

export function receivedMessageOf(message: OfficialMessage, id: MessageId, connection: number): ReceivedMessage {
  const read = readProperties(message);
  return {
    id,
    connection,
    payload: message.getData(),
    key: textOf(message.getPartitionKey()),
    orderingKey: bytesOf(message.getOrderingKey()),
    eventTimeMs: timeOf(message.getEventTimestamp()),
    publishTimeMs: message.getPublishTimestamp(),
    redeliveryCount: message.getRedeliveryCount(),
    producerName: textOf(message.getProducerName()),
    ...read,
  };
}

type ReadProperties = Pick<ReceivedMessage, 'properties' | 'deliverAtMs' | 'unreadable'>;

function readProperties(message: OfficialMessage): ReadProperties {
  try {
    return withDeliveryTime(copyOf(message.getProperties()));
  } catch (error) {
    const why = `"pulsar-client" cannot read the properties of this message: ${toError(error).message}`;
    return { properties: NO_PROPERTIES, unreadable: why };
  }
}

function copyOf(given: unknown): Record<string, string> {
  if (typeof given !== 'object' || given === null) throw new TypeError(`it gave ${describeValue(given)}`);
  const copy = Object.create(null) as Record<string, string>;
  let end = 0;
  // By name, never by index: a property called 4294967294 makes the array that long.
  for (const name of Object.keys(given)) {
    copy[name] = String((given as Record<string, unknown>)[name]);
    if (/^(0|[1-9]\d{0,9})$/.test(name) && Number(name) <= MAX_INDEX) end = Math.max(end, Number(name) + 1);
  }
  // A property called `length` with a fitting value became the length of the array.
  if (Array.isArray(given) && given.length !== end) copy['length'] = String(given.length);
  return copy;
}

function withDeliveryTime(properties: Record<string, string>): ReadProperties {
  const written = properties[DELIVER_AT_PROPERTY];
  if (written === undefined || !/^\d{1,15}$/.test(written)) return { properties };
  Reflect.deleteProperty(properties, DELIVER_AT_PROPERTY);
  return { properties, deliverAtMs: Number(written) };
}

/** The client does not tell an empty text from none. */
function textOf(text: string): string | undefined {
  return text === '' ? undefined : text;
}

function bytesOf(text: string): Uint8Array | undefined {
  return text === '' ? undefined : Buffer.from(text);
}

/** 0 means not set. */
function timeOf(epochMs: number): number | undefined {
  return epochMs === 0 ? undefined : epochMs;
}
