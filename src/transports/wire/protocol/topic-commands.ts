// Commands of producers and consumers. Field numbers are the protocol's.
import { bits64, bool, bytes, double, int32, long, messageType, nearestLong } from './message-type.js';
import { optional, repeated, required, string, uint32 } from './message-type.js';
import { KEY_VALUE, MESSAGE_ID_DATA } from './message-metadata.js';
import { SCHEMA } from './schema-commands.js';

const KEY_SHARED_META = messageType('KeySharedMeta', {
  /** 0: the broker splits the keys, 1: `hashRanges` says which are taken. */
  keySharedMode: required(1, int32),
  hashRanges: repeated(3, messageType('IntRange', { start: required(1, int32), end: required(2, int32) })),
  allowOutOfOrderDelivery: optional(4, bool),
});

const PRODUCER_COMMANDS = {
  PRODUCER: {
    number: 5,
    body: messageType('PRODUCER', {
      topic: required(1, string),
      producerId: required(2, long),
      requestId: required(3, long),
      producerName: optional(4, string),
      encrypted: optional(5, bool),
      metadata: repeated(6, KEY_VALUE),
      schema: optional(7, SCHEMA),
      epoch: optional(8, long),
      userProvidedProducerName: optional(9, bool),
      producerAccessMode: optional(10, int32),
      topicEpoch: optional(11, long),
      txnEnabled: optional(12, bool),
      initialSubscriptionName: optional(13, string),
    }),
  },
  PRODUCER_SUCCESS: {
    number: 17,
    body: messageType('PRODUCER_SUCCESS', {
      requestId: required(1, long),
      producerName: required(2, string),
      /** Of whoever had the name before; other clients use numbers above 2^53-1. */
      lastSequenceId: optional(3, nearestLong),
      schemaVersion: optional(4, bytes),
      topicEpoch: optional(5, long),
      producerReady: optional(6, bool),
    }),
  },
  SEND: {
    number: 6,
    body: messageType('SEND', {
      producerId: required(1, long),
      sequenceId: required(2, long),
      numMessages: optional(3, int32),
      txnidLeastBits: optional(4, bits64),
      txnidMostBits: optional(5, bits64),
      highestSequenceId: optional(6, long),
      isChunk: optional(7, bool),
    }),
  },
  SEND_RECEIPT: {
    number: 7,
    body: messageType('SEND_RECEIPT', {
      producerId: required(1, long),
      sequenceId: required(2, long),
      messageId: optional(3, MESSAGE_ID_DATA),
      highestSequenceId: optional(4, long),
    }),
  },
  SEND_ERROR: {
    number: 8,
    body: messageType('SEND_ERROR', {
      producerId: required(1, long),
      sequenceId: required(2, long),
      error: required(3, int32),
      message: required(4, string),
    }),
  },
  CLOSE_PRODUCER: {
    number: 15,
    body: messageType('CLOSE_PRODUCER', {
      producerId: required(1, long),
      /** -1 when the broker closes; it wants no answer then. */
      requestId: required(2, long),
      assignedBrokerServiceUrl: optional(3, string),
      assignedBrokerServiceUrlTls: optional(4, string),
    }),
  },
} as const;

const CONSUMER_COMMANDS = {
  SUBSCRIBE: {
    number: 4,
    body: messageType('SUBSCRIBE', {
      topic: required(1, string),
      subscription: required(2, string),
      subType: required(3, int32),
      consumerId: required(4, long),
      requestId: required(5, long),
      consumerName: optional(6, string),
      priorityLevel: optional(7, int32),
      durable: optional(8, bool),
      startMessageId: optional(9, MESSAGE_ID_DATA),
      metadata: repeated(10, KEY_VALUE),
      readCompacted: optional(11, bool),
      schema: optional(12, SCHEMA),
      initialPosition: optional(13, int32),
      replicateSubscriptionState: optional(14, bool),
      forceTopicCreation: optional(15, bool),
      startMessageRollbackDurationSec: optional(16, long),
      keySharedMeta: optional(17, KEY_SHARED_META),
      subscriptionProperties: repeated(18, KEY_VALUE),
      consumerEpoch: optional(19, long),
    }),
  },
  MESSAGE: {
    number: 9,
    body: messageType('MESSAGE', {
      consumerId: required(1, long),
      messageId: required(2, MESSAGE_ID_DATA),
      redeliveryCount: optional(3, uint32),
      ackSet: repeated(4, bits64),
      consumerEpoch: optional(5, long),
    }),
  },
  ACK: {
    number: 10,
    body: messageType('ACK', {
      consumerId: required(1, long),
      /** 0 individual, 1 cumulative. */
      ackType: required(2, int32),
      messageId: repeated(3, MESSAGE_ID_DATA),
      validationError: optional(4, int32),
      txnidLeastBits: optional(6, bits64),
      txnidMostBits: optional(7, bits64),
      requestId: optional(8, long),
    }),
  },
  ACK_RESPONSE: {
    number: 38,
    body: messageType('ACK_RESPONSE', {
      consumerId: required(1, long),
      txnidLeastBits: optional(2, bits64),
      txnidMostBits: optional(3, bits64),
      error: optional(4, int32),
      message: optional(5, string),
      requestId: optional(6, long),
    }),
  },
  /** 0 permits, or permits before SUBSCRIBE has succeeded, are mistakes of the client. */
  FLOW: {
    number: 11,
    body: messageType('FLOW', { consumerId: required(1, long), messagePermits: required(2, uint32) }),
  },
  UNSUBSCRIBE: {
    number: 12,
    body: messageType('UNSUBSCRIBE', {
      consumerId: required(1, long),
      requestId: required(2, long),
      force: optional(3, bool),
    }),
  },
  CLOSE_CONSUMER: {
    number: 16,
    body: messageType('CLOSE_CONSUMER', {
      consumerId: required(1, long),
      /** -1 when the broker closes; it wants no answer then. */
      requestId: required(2, long),
      assignedBrokerServiceUrl: optional(3, string),
      assignedBrokerServiceUrlTls: optional(4, string),
    }),
  },
  REDELIVER_UNACKNOWLEDGED_MESSAGES: {
    number: 20,
    body: messageType('REDELIVER_UNACKNOWLEDGED_MESSAGES', {
      consumerId: required(1, long),
      messageIds: repeated(2, MESSAGE_ID_DATA),
      consumerEpoch: optional(3, long),
    }),
  },
  /**
   * Of an open proposal (PIP-493), K-21: only for a broker that says it has it, others (4.0.7) end the connection. What is
   * returned comes again uncounted; no entry is in both lists. There is no answer.
   */
  NEGATIVE_ACK: {
    number: 82,
    body: messageType('NEGATIVE_ACK', {
      consumerId: required(1, long),
      negativeAcked: repeated(2, MESSAGE_ID_DATA),
      returned: repeated(3, MESSAGE_ID_DATA),
    }),
  },
  CONSUMER_STATS: {
    number: 25,
    body: messageType('CONSUMER_STATS', { requestId: required(1, long), consumerId: required(4, long) }),
  },
  CONSUMER_STATS_RESPONSE: {
    number: 26,
    body: messageType('CONSUMER_STATS_RESPONSE', {
      requestId: required(1, long),
      errorCode: optional(2, int32),
      errorMessage: optional(3, string),
      msgRateOut: optional(4, double),
      consumerName: optional(7, string),
      /** May be below zero after a batch. */
      availablePermits: optional(8, nearestLong),
      unackedMessages: optional(9, nearestLong),
      blockedConsumerOnUnackedMsgs: optional(10, bool),
      type: optional(13, string),
      msgBacklog: optional(15, nearestLong),
    }),
  },
  REACHED_END_OF_TOPIC: { number: 27, body: messageType('REACHED_END_OF_TOPIC', { consumerId: required(1, long) }) },
  SEEK: {
    number: 28,
    body: messageType('SEEK', {
      consumerId: required(1, long),
      requestId: required(2, long),
      messageId: optional(3, MESSAGE_ID_DATA),
      messagePublishTime: optional(4, long),
    }),
  },
  GET_LAST_MESSAGE_ID: {
    number: 29,
    body: messageType('GET_LAST_MESSAGE_ID', { consumerId: required(1, long), requestId: required(2, long) }),
  },
  GET_LAST_MESSAGE_ID_RESPONSE: {
    number: 30,
    body: messageType('GET_LAST_MESSAGE_ID_RESPONSE', {
      lastMessageId: required(1, MESSAGE_ID_DATA),
      requestId: required(2, long),
      consumerMarkDeletePosition: optional(3, MESSAGE_ID_DATA),
    }),
  },
  ACTIVE_CONSUMER_CHANGE: {
    number: 31,
    body: messageType('ACTIVE_CONSUMER_CHANGE', { consumerId: required(1, long), isActive: optional(2, bool) }),
  },
} as const;

export const COMMANDS_ON_TOPIC = { ...PRODUCER_COMMANDS, ...CONSUMER_COMMANDS } as const;
