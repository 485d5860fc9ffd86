// The metadata of a message in a batch, written and read field by field: that happens 300,000 times a second, and going
// through the table of its fields would cost more than all the rest of `publish`. Field numbers are those of the table.
import { keyText } from '../../../core/key-hash.js';
import type { EncodedMessage } from '../../../core/message.js';
import { KEY_VALUE, SINGLE_MESSAGE_METADATA } from './message-metadata.js';
import type { KeyValue, SingleMessageMetadata } from './message-metadata.js';
import { ProtoReader } from './proto-reader.js';
import type { ProtoWriter } from './proto-writer.js';
import { WireFormatError } from './wire-format-error.js';

/** `number << 3 | wire type` of the fields of SINGLE_MESSAGE_METADATA. */
const PROPERTIES = (1 << 3) | 2;
const PARTITION_KEY = (2 << 3) | 2;
const PAYLOAD_SIZE = 3 << 3;
const EVENT_TIME = 5 << 3;
const PARTITION_KEY_B64 = 6 << 3;
const ORDERING_KEY = (7 << 3) | 2;
const SEQUENCE_ID = 8 << 3;
const NULL_VALUE = 9 << 3;
/** Of KEY_VALUE. */
const KEY = (1 << 3) | 2;
const VALUE = (2 << 3) | 2;

export function writeSingleMessage(
  writer: ProtoWriter,
  message: EncodedMessage,
  payloadSize: number,
  sequenceId: number,
): void {
  const { key, orderingKey, properties, eventTimeMs } = message;
  for (const name in properties) writeProperty(writer, name, properties[name] ?? '');
  if (key !== undefined) {
    writer.long(PARTITION_KEY);
    writer.string(keyText(key));
  }
  writer.long(PAYLOAD_SIZE);
  writer.long(payloadSize);
  if (eventTimeMs !== undefined) {
    writer.long(EVENT_TIME);
    writer.long(eventTimeMs);
  }
  if (key !== undefined && typeof key !== 'string') writeTrue(writer, PARTITION_KEY_B64);
  if (orderingKey !== undefined) {
    writer.long(ORDERING_KEY);
    writer.bytes(orderingKey);
  }
  writer.long(SEQUENCE_ID);
  writer.long(sequenceId);
  if (message.payload === null) writeTrue(writer, NULL_VALUE);
}

function writeProperty(writer: ProtoWriter, name: string, value: string): void {
  writer.long(PROPERTIES);
  const start = writer.beginLength();
  writer.long(KEY);
  writer.string(name);
  writer.long(VALUE);
  writer.string(value);
  writer.endLength(start);
}

function writeTrue(writer: ProtoWriter, field: number): void {
  writer.long(field);
  writer.long(1);
}

/** @throws WireFormatError naming the field. */
export function readSingleMessage(bytes: Buffer, start: number, end: number): SingleMessageMetadata {
  try {
    const metadata = new SingleMessage();
    if (metadata.read(new ProtoReader(bytes, start, end))) return metadata;
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
  }
  // What is unusual, or wrong: the table knows what to say of it.
  return SINGLE_MESSAGE_METADATA.decode(bytes, start, end);
}

/** All fields from the start: one shape for all messages. */
class SingleMessage {
  properties: KeyValue[] | undefined = undefined;
  partitionKey: string | undefined = undefined;
  payloadSize = -1;
  compactedOut: boolean | undefined = undefined;
  eventTime: number | undefined = undefined;
  partitionKeyB64Encoded: boolean | undefined = undefined;
  orderingKey: Uint8Array | undefined = undefined;
  sequenceId: number | undefined = undefined;
  nullValue: boolean | undefined = undefined;
  nullPartitionKey: boolean | undefined = undefined;

  /** False when there is a field that is not known here, or none that must be there. */
  read(reader: ProtoReader): boolean {
    let hasSize = false;
    while (!reader.atEnd) {
      switch (reader.key()) {
        case PAYLOAD_SIZE:
          this.payloadSize = reader.int32();
          hasSize = true;
          break;
        case SEQUENCE_ID:
          this.sequenceId = reader.nearestLong();
          break;
        case PROPERTIES:
          (this.properties ??= []).push(KEY_VALUE.read(reader));
          break;
        case PARTITION_KEY:
          this.partitionKey = reader.string();
          break;
        case PARTITION_KEY_B64:
          this.partitionKeyB64Encoded = reader.bool();
          break;
        case ORDERING_KEY:
          this.orderingKey = reader.view();
          break;
        case EVENT_TIME:
          this.eventTime = reader.nearestLong();
          break;
        case NULL_VALUE:
          this.nullValue = reader.bool();
          break;
        default:
          return false;
      }
    }
    return hasSize;
  }
}
