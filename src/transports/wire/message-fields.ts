// What a producer wrote beside a payload, as the fields of a message: the same in the metadata of an entry and of a
// message in a batch.
import type { EncodedMessage, MessageKey } from '../../core/message.js';
import type { MessageProperties } from '../../core/properties.js';
import { NO_PROPERTIES } from '../../core/properties.js';
import type { KeyValue, SingleMessageMetadata } from './protocol/message-metadata.js';

type MessageFields = Pick<EncodedMessage, 'key' | 'orderingKey' | 'properties' | 'eventTimeMs'>;

export function messageFieldsOf(metadata: Partial<SingleMessageMetadata>): MessageFields {
  return {
    key: keyOf(metadata),
    orderingKey: copyOf(metadata.orderingKey),
    properties: propertiesOf(metadata.properties),
    eventTimeMs: timeOf(metadata.eventTime),
  };
}

export function keyOf(metadata: {
  readonly partitionKey?: string | undefined;
  readonly partitionKeyB64Encoded?: boolean | undefined;
  readonly nullPartitionKey?: boolean | undefined;
}): MessageKey | undefined {
  if (metadata.partitionKey === undefined || metadata.nullPartitionKey === true) return undefined;
  return metadata.partitionKeyB64Encoded === true
    ? Buffer.from(metadata.partitionKey, 'base64')
    : metadata.partitionKey;
}

/** 0 means not set. */
export function timeOf(time: number | undefined): number | undefined {
  return time === undefined || time === 0 ? undefined : time;
}

/** The view would keep the whole read buffer in memory. */
export function copyOf(bytes: Uint8Array | undefined): Uint8Array | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes);
}

/** Without a prototype: a property may be called `__proto__`. Of equal names the last counts, as in other clients. */
export function propertiesOf(list: readonly KeyValue[] | undefined): MessageProperties {
  if (list === undefined) return NO_PROPERTIES;
  const properties = Object.create(null) as Record<string, string>;
  for (const { key, value } of list) properties[key] = value;
  return properties;
}
