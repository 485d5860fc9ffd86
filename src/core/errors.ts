// The errors of Pulsework: few classes, a stable `code` each, data as fields, the cause kept.
// `ERROR_CODES` is the one table; docs/errors.md lists the same codes and a test compares the two.

/** Every code an error of this library can carry, with its meaning in one sentence. */
export const ERROR_CODES = {
  CONFIGURATION_INVALID: 'One or more options are wrong; every problem found is listed.',
  ILLEGAL_STATE: 'A method was called in a lifecycle state that does not allow it.',
  START_FAILED: 'A subscription or a dependency could not be opened; everything already open was closed again.',
  HANDLER_RETURNED_NO_OUTCOME: 'A handler returned something that is not an Outcome; the run counts as failed.',
  HANDLER_TIMED_OUT: 'A handler did not end within `timeoutMs`; the run counts as failed.',
  HANDLER_REQUESTED_STOP: 'A handler returned `fatal(...)`; the runtime drained and `closed` was rejected.',
  DRAIN_DEADLINE_PASSED:
    'The runtime drains and its deadline has passed; the delivery goes back to the broker, uncounted.',
  DELIVERY_PUT_OFF:
    'A delivery that waited for its batch may not start now: its subscription stands still or its connection is gone.',
  POLICY_FAILED: 'A backoff or an `onError` rule threw or gave an unusable value; the default policy was used.',
  PAYLOAD_UNDECODABLE: 'A payload could not be decoded or did not match its schema.',
  PUBLISH_REFUSED:
    'A message can never be published as it is: size, schema, permission, undeclared or terminated topic.',
  CALL_TIMED_OUT: 'A call to the transport gave no answer within `callTimeoutMs`; whether it happened is unknown.',
  MESSAGE_ID_INVALID: 'A message id is malformed or has a number above 2^53-1.',
  TOPIC_NAME_INVALID: 'A topic name is malformed.',
  SUBSCRIPTION_NOT_FOUND: 'No handler of this runtime has the subscription on the topic.',
  TOPIC_NOT_FOUND: 'The topic or the partition does not exist.',
  TOPIC_TERMINATED: 'The topic was terminated and takes no more messages.',
  MESSAGE_TOO_LARGE: 'The message is larger than the broker takes.',
  CONSUMER_BUSY: 'The subscription refuses another consumer of this kind while others are connected.',
  PRODUCER_BUSY: 'The topic refuses another producer of this name or kind while others are connected.',
  PRODUCER_FENCED: 'Another producer has the topic for itself; this one is shut out for good.',
  TRANSACTIONS_UNAVAILABLE: 'The cluster has no transactions, or none that this client can use now.',
  TRANSACTION_CONFLICT: 'A message is acknowledged already, or in another transaction that is still open.',
  TRANSACTION_ENDED: 'The transaction is not open any more; what was asked of it was not done.',
  TRANSACTION_ABORTED: 'The transaction was aborted instead of committed, because something in it had failed.',
  TRANSACTION_OUTCOME_UNKNOWN: 'Whether the transaction was committed is unknown: the broker gave no clear answer.',
  SCHEMA_INCOMPATIBLE: 'The schema does not fit the one that the topic has.',
  AUTHENTICATION_FAILED: 'The broker does not accept who the client says it is.',
  CREDENTIALS_UNAVAILABLE: 'The credentials that a broker asks for could not be had: who supplies them failed.',
  CERTIFICATE_EXPIRED: "The broker's certificate is not valid at this time.",
  CERTIFICATE_NAME_MISMATCH: "The broker's certificate is for another host.",
  CERTIFICATE_UNTRUSTED: "The broker's certificate is of no authority that the client trusts.",
  NOT_ALLOWED: 'The broker understood the request and forbids it: permission, policy, or a rule of the topic.',
  NOT_SUPPORTED: 'The transport or the subscription type cannot do what was asked.',
  CONNECTION_LOST: 'The connection to the broker was lost before an answer came.',
  BROKER_ERROR: 'The broker answered that it cannot do it now: not ready, overloaded, or a fault of its own.',
  ALREADY_CLOSED: 'The subscription, publisher, transport or store was closed before the call.',
  PEER_NOT_INSTALLED: 'An optional package that is needed for what was asked is not installed.',
  PEER_NOT_LOADABLE:
    'An optional package is installed but cannot be loaded, most often because its native part was not built.',
  STORE_LOCKED: 'Another process that may still live has the store open.',
  STORE_FORMAT_UNKNOWN: 'What the store holds was not written by a version that this one can read.',
  STORE_FULL: 'The store has no room: the disk, a quota or the limit that was set.',
  STORE_NOT_WRITABLE: 'The place of the store does not exist or may not be written.',
  STORE_UNREACHABLE:
    'The database of a store could not be reached, or the connection to it was lost before an answer came.',
  STORE_NOT_DURABLE: 'A database is set up so that the death of a process damages it; no promise could be kept in it.',
  STORE_COMMIT_UNKNOWN: 'Whether a transaction of a database was committed is unknown: no clear answer came.',
  STORE_VERSION_CONFLICT:
    'A record of a store has another version than the one that was expected; nothing has changed.',
  STORE_FAILED: 'A call to a store failed or gave no answer; what it was for was not done.',
  IDEMPOTENCY_KEY_INVALID: 'The `key` function of `idempotent` threw or gave something that is no key.',
  EFFECTS_OUTCOME_REFUSED:
    'A handler with `effects` returned a success that carries messages, which no transaction holds.',
  OUTBOX_LEAD_LOST: 'Another process relays the outbox now, or the connection that made this one the leader is gone.',
  IDEMPOTENCY_LEASE_LOST: 'A run outlived its claim and somebody else took the key; its outcome was not recorded.',
  WORKFLOW_FAILED: 'A workflow ended as failed, or says so of itself.',
  WORKFLOW_STEP_FAILED: 'A step of a workflow, or a compensation, was given up.',
  WORKFLOW_STEP_TIMED_OUT: 'A step did not end within its `timeoutMs`; the attempt counts as failed.',
  WORKFLOW_CANCELLED: 'A workflow was cancelled.',
  WORKFLOW_TERMINATED: 'A workflow was ended from outside, without compensation.',
  WORKFLOW_DIVERGED: 'The code of a workflow does not fit what it has recorded, or breaks a rule of replay.',
  WORKFLOW_NOT_FOUND: 'There is no workflow of that name and id, or no definition of that name.',
  WORKFLOW_VALUE_INVALID: 'An input, a signal or a result of a workflow does not match its schema or has no JSON form.',
  WORKFLOW_LEASE_LOST: 'A write of a workflow was refused: another process has taken it over, or it has ended.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** The base of all errors that Pulsework throws. Match on `code`: it is stable, the message is not. */
export class PulseworkError extends Error {
  override readonly name: string = 'PulseworkError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }
}

/** All configuration problems found, at once. `problems` holds one sentence each. */
export class ConfigurationError extends PulseworkError {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super('CONFIGURATION_INVALID', configurationMessage(problems));
    this.problems = problems;
  }
}

/** A call to a transport failed. `retriable` says whether the same call can succeed later. */
export class TransportError extends PulseworkError {
  override readonly name = 'TransportError';
  readonly retriable: boolean;
  /** False: what was asked for has not reached the broker, and will not. True: it has, or may have. @default true */
  readonly sent: boolean;

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly retriable: boolean; readonly sent?: boolean; readonly cause?: unknown },
  ) {
    super(code, message, options);
    this.retriable = options.retriable;
    this.sent = options.sent ?? true;
  }
}

/** The same error of a call of which nothing has reached the broker; what is no TransportError cannot say so. */
export function notSent(error: unknown): unknown {
  if (!(error instanceof TransportError)) return error;
  const { code, message, retriable, cause } = error;
  return new TransportError(code, message, { retriable, sent: false, cause });
}

/** Of what the caller gives, whatever the broker thinks of it. */
const REFUSALS: readonly ErrorCode[] = ['PUBLISH_REFUSED', 'CONFIGURATION_INVALID'];

/** Of what can be had anew: a call that failed with one of them may be made again on another one. */
const ENDS: readonly ErrorCode[] = ['ALREADY_CLOSED', 'TRANSACTION_ENDED', 'TRANSACTION_ABORTED'];

/** Whether repeating the call that failed with `error` is pointless: what it was given, or a transport, says so. */
export function isRefusedForGood(error: unknown): boolean {
  if (error instanceof TransportError) return !error.retriable && !ENDS.includes(error.code);
  return error instanceof PulseworkError && REFUSALS.includes(error.code);
}

/** Whether the call failed because what it was made on had been closed. */
export function isClosed(error: unknown): boolean {
  return error instanceof PulseworkError && error.code === 'ALREADY_CLOSED';
}

/** `error` itself when it is an Error, else an Error that shows the thrown value. Never throws. */
export function toError(thrown: unknown): Error {
  if (isError(thrown)) return thrown;
  return new Error(`a value that is not an Error was thrown: ${describeValue(thrown)}`, { cause: thrown });
}

/** A promise that nobody will await must not end the process should it reject. */
export function containRejection(value: unknown, report: (error: Error) => void = () => undefined): void {
  if (!isPromise(value)) return;
  value.catch((error: unknown) => report(toError(error)));
}

function isPromise(value: unknown): value is Promise<unknown> {
  try {
    return value instanceof Promise;
  } catch {
    return false;
  }
}

/** `instanceof` runs user code for proxies, and that code may throw. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** Whether a value is `Error` or a class derived from it. */
export function isErrorClass(value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const prototype: unknown = (value as { prototype?: unknown }).prototype;
  return prototype === Error.prototype || isError(prototype);
}

/** A value as short text for an error message: never longer than 80 characters, never throws. */
export function describeValue(value: unknown): string {
  const text = rawDescription(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function rawDescription(value: unknown): string {
  try {
    if (typeof value === 'string') return JSON.stringify(value);
    if (typeof value === 'function') return value.name === '' ? 'a function' : `function ${value.name}`;
    if (Array.isArray(value)) return `an array of ${value.length}`;
    if (value instanceof Date && Number.isNaN(value.getTime())) return 'an invalid Date';
    if (typeof value === 'object' && value !== null) {
      const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
      return typeof name === 'string' && name !== '' && name !== 'Object' ? `an instance of ${name}` : 'an object';
    }
    return String(value);
  } catch {
    return 'a value that cannot be shown';
  }
}

function configurationMessage(problems: readonly string[]): string {
  if (problems.length === 1) return problems[0] ?? '';
  return `${problems.length} configuration problems:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;
}
