// From a message to the SEND frame that carries it. Seam for batches and compression: both end in one frame too.
import type { EncodedMessage } from '../../core/message.js';
import { keyText } from './key-hash.js';
import type { KeyValue, MessageMetadata } from './protocol/message-metadata.js';
import { encodeSend } from './protocol/frames.js';

const NO_BYTES = Buffer.alloc(0);

export interface EntryOrigin {
  readonly producerId: number;
  readonly producerName: string;
  readonly publishTimeMs: number;
}

/** One message as one entry. */
export function encodeSingle(message: EncodedMessage, sequenceId: number, origin: EntryOrigin): Buffer {
  const metadata: MessageMetadata = {
    producerName: origin.producerName,
    sequenceId,
    publishTime: origin.publishTimeMs,
    ...keyFields(message),
    properties: propertyList(message.properties),
    eventTime: message.eventTimeMs,
    deliverAtTime: message.deliverAtMs,
    nullValue: message.payload === null ? true : undefined,
  };
  return encodeSend({ producerId: origin.producerId, sequenceId }, metadata, message.payload ?? NO_BYTES);
}

/** The key fields, the same in the metadata of an entry and of a message in a batch. */
export function keyFields({ key, orderingKey }: EncodedMessage): {
  partitionKey?: string | undefined;
  partitionKeyB64Encoded?: true | undefined;
  orderingKey?: Uint8Array | undefined;
} {
  return {
    partitionKey: key === undefined ? undefined : keyText(key),
    partitionKeyB64Encoded: key === undefined || typeof key === 'string' ? undefined : true,
    orderingKey,
  };
}

export function propertyList(properties: Readonly<Record<string, string>>): KeyValue[] | undefined {
  let list: KeyValue[] | undefined;
  for (const key of Object.keys(properties)) (list ??= []).push({ key, value: properties[key] ?? '' });
  return list;
}
