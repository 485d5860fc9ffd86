// Commands about the topics of a namespace: which there are, which come and go, and where a cluster that gives them up
// sends its clients. Field numbers are the protocol's.
import { bool, int32, long, messageType, optional, repeated, required, string } from './message-type.js';

export const COMMANDS_ON_NAMESPACE = {
  GET_TOPICS_OF_NAMESPACE: {
    number: 32,
    body: messageType('GET_TOPICS_OF_NAMESPACE', {
      requestId: required(1, long),
      namespace: required(2, string),
      /** 0 persistent, 1 non-persistent, 2 all. */
      mode: optional(3, int32),
      /** Too long a one is ignored, not refused: `filtered` of the answer tells. */
      topicsPattern: optional(4, string),
      topicsHash: optional(5, string),
    }),
  },
  GET_TOPICS_OF_NAMESPACE_RESPONSE: {
    number: 33,
    body: messageType('GET_TOPICS_OF_NAMESPACE_RESPONSE', {
      requestId: required(1, long),
      /** Partitions one by one. */
      topics: repeated(2, string),
      filtered: optional(3, bool),
      topicsHash: optional(4, string),
      /** false: the list is the one whose hash was sent, and is left out. Absent is true. */
      changed: optional(5, bool),
    }),
  },
  WATCH_TOPIC_LIST: {
    number: 64,
    body: messageType('WATCH_TOPIC_LIST', {
      requestId: required(1, long),
      watcherId: required(2, long),
      namespace: required(3, string),
      topicsPattern: required(4, string),
      topicsHash: optional(5, string),
    }),
  },
  WATCH_TOPIC_LIST_SUCCESS: {
    number: 65,
    body: messageType('WATCH_TOPIC_LIST_SUCCESS', {
      requestId: required(1, long),
      watcherId: required(2, long),
      topics: repeated(3, string),
      topicsHash: required(4, string),
    }),
  },
  WATCH_TOPIC_UPDATE: {
    number: 66,
    body: messageType('WATCH_TOPIC_UPDATE', {
      watcherId: required(1, long),
      newTopics: repeated(2, string),
      deletedTopics: repeated(3, string),
      topicsHash: required(4, string),
    }),
  },
  WATCH_TOPIC_LIST_CLOSE: {
    number: 67,
    body: messageType('WATCH_TOPIC_LIST_CLOSE', { requestId: required(1, long), watcherId: required(2, long) }),
  },
  TOPIC_MIGRATED: {
    number: 68,
    body: messageType('TOPIC_MIGRATED', {
      /** Id of the producer or consumer. */
      resourceId: required(1, long),
      /** 0 producer, 1 consumer. */
      resourceType: required(2, int32),
      brokerServiceUrl: optional(3, string),
      brokerServiceUrlTls: optional(4, string),
    }),
  },
} as const;
