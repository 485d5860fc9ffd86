// An outcome in the form in which a store keeps it: plain data that survives JSON, its messages encoded as they were or will be
// published, ids included, so that a repeat publishes the very same. Pure.
import { bytesCodec } from './codec.js';
import type { DeadLetterCause } from './dead-letter.js';
import { PulseworkError, describeValue, isError } from './errors.js';
import { cutStack, errorMessage, errorName, errorStack } from './failure-report.js';
import type { EncodedMessage, MessageKey, MessageOptions, OutgoingMessage } from './message.js';
import type { Failure, Outcome, Poison, Skip, Success } from './outcome.js';
import { poison, skip, success } from './outcome.js';
import { copyProperties } from './properties.js';
import type { Topic } from './topic.js';
import { topic } from './topic.js';

/** The outcomes that end a message's life; the others say that nothing was done. */
export type FinalOutcome = Success | Skip | Poison;

/** Bytes are base64 text. `version` changes when a reader of this one could not read it. */
export type RecordedOutcome =
  | { readonly version: 1; readonly kind: 'success'; readonly messages: readonly RecordedMessage[] }
  | { readonly version: 1; readonly kind: 'skip'; readonly reason: string }
  | {
      readonly version: 1;
      readonly kind: 'poison';
      readonly reason: string;
      readonly cause: DeadLetterCause;
      readonly error?: RecordedError | undefined;
    };

export interface RecordedMessage {
  /** Full topic name. */
  readonly topic: string;
  /** Base64; null for Pulsar's null value. */
  readonly payload: string | null;
  readonly key?: string | { readonly base64: string } | undefined;
  readonly orderingKey?: string | undefined;
  readonly properties: Readonly<Record<string, string>>;
  readonly eventTimeMs?: number | undefined;
  readonly deliverAtMs?: number | undefined;
}

/** What a dead letter says of an error; the stack of the outermost one only. */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly cause?: RecordedError | undefined;
}

/** As deep as dead letters tell of. */
const MAX_CAUSES = 10;

/** A message that is encoded already: it is published as it is. Its payload shows as bytes. */
export class PreparedMessage implements OutgoingMessage {
  readonly topic: Topic<never>;
  readonly payload: Uint8Array | null;
  readonly options: MessageOptions;
  readonly message: EncodedMessage;
  readonly replyTo: string | undefined;

  /** @param topicName full, but where somebody asks for its full name. */
  constructor(topicName: string, message: EncodedMessage, replyTo?: string) {
    this.replyTo = replyTo;
    this.topic = { ...topic(topicName), codec: bytesCodec };
    this.payload = message.payload;
    this.options = { key: message.key, orderingKey: message.orderingKey, properties: message.properties };
    this.message = message;
  }
}

export function isFinal(outcome: Outcome): outcome is FinalOutcome {
  if (outcome.kind === 'success') return outcome.askedAgain !== true;
  return outcome.kind === 'skip' || outcome.kind === 'poison';
}

/** @param messages those of the outcome, encoded. */
export function recordedOutcome(outcome: FinalOutcome, messages: readonly PreparedMessage[]): RecordedOutcome {
  switch (outcome.kind) {
    case 'success':
      return { version: 1, kind: 'success', messages: messages.map(recordedMessage) };
    case 'skip':
      return { version: 1, kind: 'skip', reason: outcome.failure.reason };
    case 'poison': {
      const { cause, failure } = outcome;
      return { version: 1, kind: 'poison', reason: failure.reason, cause, ...recordedFailure(failure) };
    }
  }
}

/** @throws PulseworkError STORE_FORMAT_UNKNOWN when a newer version wrote it, or it is no recorded outcome at all. */
export function outcomeOf(recorded: RecordedOutcome): FinalOutcome {
  const { version, kind } = recorded as { version?: unknown; kind?: unknown };
  if (version !== 1) throw unknownFormat(`version ${describeValue(version)}`);
  switch (recorded.kind) {
    case 'success':
      return success(...recorded.messages.map(preparedMessage));
    case 'skip':
      return skip(recorded.reason);
    case 'poison': {
      const { reason, cause, error } = recorded;
      const failure = error === undefined ? { reason } : { reason, error: restoredError(error) };
      return { ...poison(reason), failure, cause };
    }
    default:
      throw unknownFormat(`kind ${describeValue(kind)}`);
  }
}

function unknownFormat(what: string): PulseworkError {
  return new PulseworkError('STORE_FORMAT_UNKNOWN', `a recorded outcome of ${what} is not known to this version`);
}

/** As plain data. */
export function recordedMessage({ topic: { name }, message }: PreparedMessage): RecordedMessage {
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = message;
  return {
    topic: name,
    payload: payload === null ? null : base64(payload),
    ...(key === undefined ? {} : { key: typeof key === 'string' ? key : { base64: base64(key) } }),
    ...(orderingKey === undefined ? {} : { orderingKey: base64(orderingKey) }),
    // Pairs set one by one: a property may be called `__proto__`.
    properties: copyProperties(properties),
    ...(eventTimeMs === undefined ? {} : { eventTimeMs }),
    ...(deliverAtMs === undefined ? {} : { deliverAtMs }),
  };
}

/** As it was. */
export function preparedMessage(recorded: RecordedMessage): PreparedMessage {
  const { payload, key, orderingKey, properties, eventTimeMs, deliverAtMs } = recorded;
  return new PreparedMessage(recorded.topic, {
    payload: payload === null ? null : bytes(payload),
    key: keyOf(key),
    orderingKey: orderingKey === undefined ? undefined : bytes(orderingKey),
    properties: copyProperties(properties),
    eventTimeMs,
    deliverAtMs,
  });
}

function keyOf(key: RecordedMessage['key']): MessageKey | undefined {
  return typeof key === 'object' ? bytes(key.base64) : key;
}

function recordedFailure({ error }: Failure): { readonly error?: RecordedError } {
  if (error === undefined) return {};
  return { error: { ...recordedError(error, MAX_CAUSES), stack: cutStack(errorStack(error)) } };
}

function recordedError(error: Error, causesLeft: number): RecordedError {
  const cause = causesLeft === 0 ? undefined : causeOf(error);
  const shown = { name: errorName(error), message: errorMessage(error) };
  if (cause === undefined) return shown;
  return isError(cause)
    ? { ...shown, cause: recordedError(cause, causesLeft - 1) }
    : { ...shown, cause: { name: 'Error', message: describeValue(cause) } };
}

function causeOf(error: Error): unknown {
  try {
    return error.cause;
  } catch {
    return undefined;
  }
}

function restoredError({ name, message, stack, cause }: RecordedError): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause: restoredError(cause) });
  for (const [field, value] of Object.entries({ name, stack: stack ?? '' }))
    Object.defineProperty(error, field, { value, configurable: true, writable: true });
  return error;
}

function base64(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
}

function bytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'));
}
