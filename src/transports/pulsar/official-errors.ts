// What the official client's errors mean. They are plain Errors whose only fact is the text `<prefix>: <Result>`.
import { TransportError, toError } from '../../core/errors.js';
import type { ErrorCode } from '../../core/errors.js';

interface Meaning {
  readonly code: ErrorCode;
  readonly retriable: boolean;
}

const again = (code: ErrorCode): Meaning => ({ code, retriable: true });
const final = (code: ErrorCode): Meaning => ({ code, retriable: false });

/** By Result, without the word `Result` that some of them begin with. What is not listed may work later. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  TimeOut: again('CONNECTION_LOST'),
  ConnectError: again('CONNECTION_LOST'),
  NotConnected: again('CONNECTION_LOST'),
  ReadError: again('CONNECTION_LOST'),
  Disconnected: again('CONNECTION_LOST'),
  Interrupted: again('CONNECTION_LOST'),
  ConsumerBusy: again('CONSUMER_BUSY'),
  ProducerBusy: again('PRODUCER_BUSY'),
  ProducerFenced: final('PRODUCER_FENCED'),
  AuthenticationError: final('AUTHENTICATION_FAILED'),
  ErrorGettingAuthenticationData: final('AUTHENTICATION_FAILED'),
  AuthorizationError: final('NOT_ALLOWED'),
  NotAllowedError: final('NOT_ALLOWED'),
  ConsumerAssignError: final('NOT_ALLOWED'),
  AlreadyClosed: final('ALREADY_CLOSED'),
  ConsumerNotInitialized: final('ALREADY_CLOSED'),
  ProducerNotInitialized: final('ALREADY_CLOSED'),
  InvalidTopicName: final('TOPIC_NAME_INVALID'),
  TopicNotFound: final('TOPIC_NOT_FOUND'),
  SubscriptionNotFound: final('TOPIC_NOT_FOUND'),
  TopicTerminated: final('TOPIC_TERMINATED'),
  MessageTooBig: final('MESSAGE_TOO_LARGE'),
  IncompatibleSchema: final('SCHEMA_INCOMPATIBLE'),
  InvalidConfiguration: final('NOT_SUPPORTED'),
  InvalidMessage: final('NOT_SUPPORTED'),
  InvalidUrl: final('NOT_SUPPORTED'),
  OperationNotSupported: final('NOT_SUPPORTED'),
  UnsupportedVersionError: final('NOT_SUPPORTED'),
  CryptoError: final('NOT_SUPPORTED'),
  CumulativeAcknowledgementNotAllowedError: final('NOT_SUPPORTED'),
  InvalidTxnStatusError: final('NOT_SUPPORTED'),
  TransactionConflict: final('NOT_SUPPORTED'),
  TransactionNotFound: final('NOT_SUPPORTED'),
};

/** The Result that an error of the client names; undefined where its text has another form. */
export function resultOf(error: unknown): string | undefined {
  const match = /: (?:Result)?([A-Z]\w*)$/.exec(toError(error).message);
  return match?.[1];
}

/** @param subject what was asked, e.g. `subscribing to "persistent://…"`. */
export function transportError(subject: string, error: unknown): TransportError {
  const cause = toError(error);
  if (cause instanceof TransportError) return cause;
  const { code, retriable } = MEANINGS[resultOf(error) ?? ''] ?? again('BROKER_ERROR');
  return new TransportError(code, `${subject}: ${cause.message}`, { retriable, cause });
}

/** Of a send: when no receipt came in time, whether the message is stored is unknown. */
export function publishError(topic: string, error: unknown): TransportError {
  const subject = `publishing to "${topic}"`;
  if (resultOf(error) !== 'TimeOut') return transportError(subject, error);
  const text = `${subject} gave no receipt in time; whether the message is stored is unknown`;
  return new TransportError('CALL_TIMED_OUT', text, { retriable: true, cause: toError(error) });
}

export function alreadyClosed(subject: string): TransportError {
  return new TransportError('ALREADY_CLOSED', `${subject} is closed`, { retriable: false });
}

export function connectionLost(subject: string): TransportError {
  return new TransportError('CONNECTION_LOST', `${subject} is not connected`, { retriable: true });
}

export function notSupported(text: string): TransportError {
  return new TransportError('NOT_SUPPORTED', text, { retriable: false });
}

/** Closing what is closed already is no failure. */
export async function closeQuietly(closing: Promise<unknown>, subject: string): Promise<void> {
  try {
    await closing;
  } catch (error) {
    if (resultOf(error) !== 'AlreadyClosed') throw transportError(subject, error);
  }
}
