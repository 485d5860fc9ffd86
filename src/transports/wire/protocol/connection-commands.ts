// Commands about a connection, and about finding topics. Field numbers are the protocol's.
import { bool, bytes, int32, long, messageType, optional, repeated, required, string, uint32 } from './message-type.js';
import { KEY_VALUE } from './message-metadata.js';

const FEATURE_FLAGS = messageType('FeatureFlags', {
  supportsAuthRefresh: optional(1, bool),
  supportsBrokerEntryMetadata: optional(2, bool),
  supportsPartialProducer: optional(3, bool),
  supportsTopicWatchers: optional(4, bool),
  supportsGetPartitionedMetadataWithoutAutoCreation: optional(5, bool),
  /** Of an open proposal (PIP-493): no released broker has it. */
  supportsKeyOrderedNegativeAck: optional(10, bool),
});

const AUTH_DATA = messageType('AuthData', { authMethodName: optional(1, string), authData: optional(2, bytes) });

export const COMMANDS_ON_CONNECTION = {
  CONNECT: {
    number: 2,
    body: messageType('CONNECT', {
      clientVersion: required(1, string),
      authData: optional(3, bytes),
      protocolVersion: optional(4, int32),
      authMethodName: optional(5, string),
      proxyToBrokerUrl: optional(6, string),
      featureFlags: optional(10, FEATURE_FLAGS),
    }),
  },
  CONNECTED: {
    number: 3,
    body: messageType('CONNECTED', {
      serverVersion: required(1, string),
      protocolVersion: optional(2, int32),
      maxMessageSize: optional(3, int32),
      featureFlags: optional(4, FEATURE_FLAGS),
    }),
  },
  SUCCESS: { number: 13, body: messageType('SUCCESS', { requestId: required(1, long) }) },
  /** A request id of -1 is about the connection itself. */
  ERROR: {
    number: 14,
    body: messageType('ERROR', {
      requestId: required(1, long),
      error: required(2, int32),
      message: required(3, string),
    }),
  },
  PING: { number: 18, body: messageType('PING', {}) },
  PONG: { number: 19, body: messageType('PONG', {}) },
  PARTITIONED_METADATA: {
    number: 21,
    body: messageType('PARTITIONED_METADATA', {
      topic: required(1, string),
      requestId: required(2, long),
      metadataAutoCreationEnabled: optional(6, bool),
    }),
  },
  PARTITIONED_METADATA_RESPONSE: {
    number: 22,
    body: messageType('PARTITIONED_METADATA_RESPONSE', {
      partitions: optional(1, uint32),
      requestId: required(2, long),
      /** 0 success, 1 failed. */
      response: optional(3, int32),
      error: optional(4, int32),
      message: optional(5, string),
    }),
  },
  LOOKUP: {
    number: 23,
    body: messageType('LOOKUP', {
      topic: required(1, string),
      requestId: required(2, long),
      authoritative: optional(3, bool),
      advertisedListenerName: optional(7, string),
      properties: repeated(8, KEY_VALUE),
    }),
  },
  LOOKUP_RESPONSE: {
    number: 24,
    body: messageType('LOOKUP_RESPONSE', {
      brokerServiceUrl: optional(1, string),
      brokerServiceUrlTls: optional(2, string),
      /** 0 redirect, 1 connect, 2 failed. */
      response: optional(3, int32),
      requestId: required(4, long),
      authoritative: optional(5, bool),
      error: optional(6, int32),
      message: optional(7, string),
      proxyThroughServiceUrl: optional(8, bool),
    }),
  },
  AUTH_CHALLENGE: {
    number: 36,
    body: messageType('AUTH_CHALLENGE', {
      serverVersion: optional(1, string),
      challenge: optional(2, AUTH_DATA),
      protocolVersion: optional(3, int32),
    }),
  },
  AUTH_RESPONSE: {
    number: 37,
    body: messageType('AUTH_RESPONSE', {
      clientVersion: optional(1, string),
      response: optional(2, AUTH_DATA),
      protocolVersion: optional(3, int32),
    }),
  },
} as const;
