// Commands to the coordinators of transactions. Field numbers are the protocol's.
import { bits64, int32, long, messageType, optional, repeated, required, string } from './message-type.js';

/** Which transaction: 128 bits, of which the upper 64 are the number of its coordinator. */
const transactionFields = {
  requestId: required(1, long),
  txnidLeastBits: optional(2, bits64),
  txnidMostBits: optional(3, bits64),
} as const;

const ANSWER_FIELDS = { ...transactionFields, error: optional(4, int32), message: optional(5, string) } as const;

export const COMMANDS_ON_TRANSACTIONS = {
  TC_CLIENT_CONNECT_REQUEST: {
    number: 62,
    body: messageType('TC_CLIENT_CONNECT_REQUEST', { requestId: required(1, long), tcId: required(2, long) }),
  },
  TC_CLIENT_CONNECT_RESPONSE: {
    number: 63,
    body: messageType('TC_CLIENT_CONNECT_RESPONSE', {
      requestId: required(1, long),
      error: optional(2, int32),
      message: optional(3, string),
    }),
  },
  NEW_TXN: {
    number: 50,
    body: messageType('NEW_TXN', {
      requestId: required(1, long),
      /** Milliseconds, whatever the protocol calls it. */
      txnTtlSeconds: optional(2, long),
      tcId: optional(3, long),
    }),
  },
  NEW_TXN_RESPONSE: { number: 51, body: messageType('NEW_TXN_RESPONSE', ANSWER_FIELDS) },
  ADD_PARTITION_TO_TXN: {
    number: 52,
    body: messageType('ADD_PARTITION_TO_TXN', { ...transactionFields, partitions: repeated(4, string) }),
  },
  ADD_PARTITION_TO_TXN_RESPONSE: { number: 53, body: messageType('ADD_PARTITION_TO_TXN_RESPONSE', ANSWER_FIELDS) },
  ADD_SUBSCRIPTION_TO_TXN: {
    number: 54,
    body: messageType('ADD_SUBSCRIPTION_TO_TXN', {
      ...transactionFields,
      subscription: repeated(
        4,
        messageType('TransactionSubscription', { topic: required(1, string), subscription: required(2, string) }),
      ),
    }),
  },
  ADD_SUBSCRIPTION_TO_TXN_RESPONSE: {
    number: 55,
    body: messageType('ADD_SUBSCRIPTION_TO_TXN_RESPONSE', ANSWER_FIELDS),
  },
  END_TXN: {
    number: 56,
    /** `txnAction` 0 commits, 1 aborts. */
    body: messageType('END_TXN', { ...transactionFields, txnAction: optional(4, int32) }),
  },
  END_TXN_RESPONSE: { number: 57, body: messageType('END_TXN_RESPONSE', ANSWER_FIELDS) },
} as const;
