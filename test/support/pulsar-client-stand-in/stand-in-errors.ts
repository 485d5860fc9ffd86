// Failures as the official client words them: `<prefix>: <Result>`.
import type { ErrorCode } from 'pulsework';
import { TransportError, toError } from '../../../src/core/errors.js';
import type { OddBehaviours } from './odd-behaviours.js';

const RESULTS: Partial<Readonly<Record<ErrorCode, string>>> = {
  CONSUMER_BUSY: 'ConsumerBusy',
  PRODUCER_BUSY: 'ProducerBusy',
  PRODUCER_FENCED: 'ResultProducerFenced',
  TOPIC_NOT_FOUND: 'TopicNotFound',
  TOPIC_TERMINATED: 'TopicTerminated',
  TOPIC_NAME_INVALID: 'InvalidTopicName',
  MESSAGE_TOO_LARGE: 'MessageTooBig',
  AUTHENTICATION_FAILED: 'AuthenticationError',
  NOT_ALLOWED: 'AuthorizationError',
  NOT_SUPPORTED: 'OperationNotSupported',
  SCHEMA_INCOMPATIBLE: 'IncompatibleSchema',
  CONNECTION_LOST: 'ResultDisconnected',
  CALL_TIMED_OUT: 'TimeOut',
  ALREADY_CLOSED: 'AlreadyClosed',
};

export function failure(prefix: string, result: string): Error {
  return new Error(`${prefix}: ${result}`);
}

export function failureOf(prefix: string, error: unknown, odd: OddBehaviours): Error {
  if (!odd.plainErrors) return toError(error);
  const code = error instanceof TransportError ? error.code : undefined;
  return failure(prefix, (code && RESULTS[code]) ?? 'UnknownError');
}
