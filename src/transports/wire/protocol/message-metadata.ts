// What a producer writes beside a payload: field numbers of Pulsar's MessageMetadata, of the metadata of each message
// in a batch, and of message ids.
import {
  bits64,
  bool,
  bytes,
  int32,
  messageType,
  nearestLong,
  optional,
  repeated,
  required,
  string,
  uint32,
} from './message-type.js';
import type { Decoded } from './message-type.js';

export const KEY_VALUE = messageType('KeyValue', { key: required(1, string), value: required(2, string) });
export type KeyValue = Decoded<typeof KEY_VALUE>;

const ENCRYPTION_KEYS = messageType('EncryptionKeys', {
  key: required(1, string),
  value: required(2, bytes),
  metadata: repeated(3, KEY_VALUE),
});

export const MESSAGE_METADATA = messageType('MessageMetadata', {
  producerName: required(1, string),
  sequenceId: required(2, nearestLong),
  publishTime: required(3, nearestLong),
  properties: repeated(4, KEY_VALUE),
  replicatedFrom: optional(5, string),
  partitionKey: optional(6, string),
  replicateTo: repeated(7, string),
  compression: optional(8, int32),
  uncompressedSize: optional(9, uint32),
  /** Its presence marks a batch, also with the value 1. */
  numMessagesInBatch: optional(11, int32),
  eventTime: optional(12, nearestLong),
  /** Its presence means that the payload is encrypted. */
  encryptionKeys: repeated(13, ENCRYPTION_KEYS),
  encryptionAlgo: optional(14, string),
  encryptionParam: optional(15, bytes),
  schemaVersion: optional(16, bytes),
  partitionKeyB64Encoded: optional(17, bool),
  orderingKey: optional(18, bytes),
  deliverAtTime: optional(19, nearestLong),
  /** Its presence means an entry of the broker's own, never a message. */
  markerType: optional(20, int32),
  txnidLeastBits: optional(22, bits64),
  txnidMostBits: optional(23, bits64),
  highestSequenceId: optional(24, nearestLong),
  nullValue: optional(25, bool),
  uuid: optional(26, string),
  numChunksFromMsg: optional(27, int32),
  totalChunkMsgSize: optional(28, int32),
  chunkId: optional(29, int32),
  nullPartitionKey: optional(30, bool),
  compactedBatchIndexes: repeated(31, int32),
});
export type MessageMetadata = Decoded<typeof MESSAGE_METADATA>;

export const SINGLE_MESSAGE_METADATA = messageType('SingleMessageMetadata', {
  properties: repeated(1, KEY_VALUE),
  partitionKey: optional(2, string),
  payloadSize: required(3, int32),
  compactedOut: optional(4, bool),
  eventTime: optional(5, nearestLong),
  partitionKeyB64Encoded: optional(6, bool),
  orderingKey: optional(7, bytes),
  sequenceId: optional(8, nearestLong),
  nullValue: optional(9, bool),
  nullPartitionKey: optional(10, bool),
});
export type SingleMessageMetadata = Decoded<typeof SINGLE_MESSAGE_METADATA>;

const positionFields = {
  /**
   * -1 with an entry of -1: before everything; Infinity, only written: after everything. Above 2^53-1 it is read as the
   * nearest number, which is no safe integer: who gets it refuses it, and nobody else on the connection is concerned.
   */
  ledgerId: required(1, nearestLong),
  entryId: required(2, nearestLong),
  partition: optional(3, int32),
  batchIndex: optional(4, int32),
  /** A set bit is a message still to be processed; absent is the whole entry. */
  ackSet: repeated(5, bits64),
  batchSize: optional(6, int32),
} as const;

export const MESSAGE_ID_DATA = messageType('MessageIdData', {
  ...positionFields,
  firstChunkMessageId: optional(7, messageType('MessageIdData', positionFields)),
});
export type MessageIdData = Decoded<typeof MESSAGE_ID_DATA>;

export const BROKER_ENTRY_METADATA = messageType('BrokerEntryMetadata', {
  brokerTimestamp: optional(1, nearestLong),
  index: optional(2, nearestLong),
});

/** The numbers of `MessageMetadata.compression`. */
export const COMPRESSION_NUMBERS = { none: 0, lz4: 1, zlib: 2, zstd: 3, snappy: 4 } as const;
export type Compression = keyof typeof COMPRESSION_NUMBERS;
