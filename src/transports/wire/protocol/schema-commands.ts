// Schemas of topics, and the command that asks for one. Field numbers are the protocol's.
import { KEY_VALUE } from './message-metadata.js';
import { bytes, int32, long, messageType, optional, repeated, required, string } from './message-type.js';
import type { Decoded } from './message-type.js';

export const SCHEMA = messageType('Schema', {
  name: required(1, string),
  schemaData: required(3, bytes),
  type: required(4, int32),
  properties: repeated(5, KEY_VALUE),
});
export type SchemaData = Decoded<typeof SCHEMA>;

export const COMMANDS_ON_SCHEMA = {
  GET_SCHEMA: {
    number: 34,
    body: messageType('GET_SCHEMA', {
      requestId: required(1, long),
      topic: required(2, string),
      /** Absent: the newest. */
      schemaVersion: optional(3, bytes),
    }),
  },
  GET_SCHEMA_RESPONSE: {
    number: 35,
    body: messageType('GET_SCHEMA_RESPONSE', {
      requestId: required(1, long),
      errorCode: optional(2, int32),
      errorMessage: optional(3, string),
      schema: optional(4, SCHEMA),
      schemaVersion: optional(5, bytes),
    }),
  },
} as const;
