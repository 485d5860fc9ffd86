// What a broker's error numbers mean for the caller: which code, and whether the same call can succeed later.
import { TransportError } from '../../core/errors.js';
import type { ErrorCode } from '../../core/errors.js';

interface Meaning {
  readonly name: string;
  readonly code: ErrorCode;
  readonly retriable: boolean;
}

const retriable = (name: string, code: ErrorCode = 'BROKER_ERROR'): Meaning => ({ name, code, retriable: true });
const final = (name: string, code: ErrorCode): Meaning => ({ name, code, retriable: false });

/** By number of the protocol's ServerError. */
const MEANINGS: readonly Meaning[] = [
  retriable('UnknownError'),
  retriable('MetadataError'),
  retriable('PersistenceError'),
  final('AuthenticationError', 'AUTHENTICATION_FAILED'),
  final('AuthorizationError', 'NOT_ALLOWED'),
  retriable('ConsumerBusy', 'CONSUMER_BUSY'),
  retriable('ServiceNotReady'),
  retriable('ProducerBlockedQuotaExceededError'),
  retriable('ProducerBlockedQuotaExceededException'),
  retriable('ChecksumError'),
  final('UnsupportedVersionError', 'NOT_SUPPORTED'),
  final('TopicNotFound', 'TOPIC_NOT_FOUND'),
  final('SubscriptionNotFound', 'TOPIC_NOT_FOUND'),
  retriable('ConsumerNotFound'),
  retriable('TooManyRequests'),
  final('TopicTerminatedError', 'TOPIC_TERMINATED'),
  retriable('ProducerBusy', 'PRODUCER_BUSY'),
  final('InvalidTopicName', 'TOPIC_NAME_INVALID'),
  final('IncompatibleSchema', 'SCHEMA_INCOMPATIBLE'),
  final('ConsumerAssignError', 'NOT_ALLOWED'),
  retriable('TransactionCoordinatorNotFound', 'TRANSACTIONS_UNAVAILABLE'),
  final('InvalidTxnStatus', 'TRANSACTION_ENDED'),
  final('NotAllowedError', 'NOT_ALLOWED'),
  final('TransactionConflict', 'TRANSACTION_CONFLICT'),
  final('TransactionNotFound', 'TRANSACTION_ENDED'),
  final('ProducerFenced', 'PRODUCER_FENCED'),
];

export const SERVER_ERROR = {
  quotaExceeded: 8,
  checksum: 9,
  topicNotFound: 11,
  topicTerminated: 15,
  notAllowed: 22,
} as const;

/** @param subject what was asked, e.g. `SUBSCRIBE of "persistent://…"`. Numbers that are not known can be tried again. */
export function serverError(subject: string, number: number, message: string | undefined): TransportError {
  const meaning = MEANINGS[number] ?? retriable(`error ${number}`);
  const text = `${subject}: the broker answered ${meaning.name}${message === undefined ? '' : `, "${message}"`}`;
  return new TransportError(meaning.code, text, { retriable: meaning.retriable });
}

export function connectionLost(reason: string, cause?: unknown): TransportError {
  return new TransportError('CONNECTION_LOST', reason, { retriable: true, cause });
}

export function alreadyClosed(subject: string): TransportError {
  return new TransportError('ALREADY_CLOSED', `${subject} is closed`, { retriable: false });
}
