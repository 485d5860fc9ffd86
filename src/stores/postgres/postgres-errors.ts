// From what PostgreSQL and its driver say to the codes of this library. What a server says has an SQLSTATE; what comes without
// one the driver says by itself, of its connection.
import type { ErrorCode } from '../../core/errors.js';
import { PulseworkError, toError } from '../../core/errors.js';

/** By SQLSTATE, or by its class of two characters. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  '08': 'STORE_UNREACHABLE', // connection exceptions
  '28': 'STORE_UNREACHABLE', // who the client says it is
  '3D': 'STORE_UNREACHABLE', // no such database
  '53100': 'STORE_FULL', // disk full
  '53300': 'STORE_UNREACHABLE', // too many connections
  '55P03': 'STORE_LOCKED', // lock timeout
  '57P01': 'STORE_UNREACHABLE', // the server ends
  '57P02': 'STORE_UNREACHABLE', // the server crashed
  '57P03': 'STORE_UNREACHABLE', // the server starts
  '57P05': 'STORE_UNREACHABLE', // idle for too long
  '25006': 'STORE_NOT_WRITABLE', // read only, such as a standby
  '42501': 'STORE_NOT_WRITABLE', // permission denied
};

/** Came between others: PostgreSQL has taken it back and says that it is to be repeated. */
const CAME_BETWEEN_OTHERS: readonly string[] = ['40001', '40P01'];

const REMEDIES: Readonly<Partial<Record<ErrorCode, string>>> = {
  STORE_FULL: 'make room on the disk of the server',
  STORE_LOCKED: 'somebody else holds the lock for long; look at pg_stat_activity',
  STORE_NOT_WRITABLE:
    'the user of the pool needs the right to read and write in the schema, and to make it where it is missing or older',
};

/** The pool's own words where `connectionTimeoutMillis` passed. */
const NO_FREE_CONNECTION = /timeout exceeded when trying to connect/;

/** Where drivers repeat what they were given to connect with. */
const SECRETS = /\b(postgres(?:ql)?:\/\/|password=)\S+/gi;

/**
 * The error of the library for what `doing` met. No secret is in it.
 * @param name of the store, e.g. `postgres pulsework`
 * @param tries how often it was tried. @default 1
 */
export function postgresError(name: string, doing: string, thrown: unknown, tries = 1): PulseworkError {
  if (thrown instanceof PulseworkError) return thrown;
  const cause = withoutSecrets(toError(thrown));
  const state = sqlState(thrown);
  const code = state === undefined ? 'STORE_UNREACHABLE' : (CODES[state] ?? CODES[state.slice(0, 2)] ?? 'STORE_FAILED');
  const message = `store "${name}": ${doing} failed${tries > 1 ? ` ${tries} times` : ''} with ${textOf(cause)}`;
  const remedy = remedyOf(code, cause);
  return new PulseworkError(code, remedy === undefined ? message : `${message}; ${remedy}`, { cause });
}

/** Nothing of it was done, and the same may succeed now. */
export function isToBeRepeated(error: unknown): boolean {
  return CAME_BETWEEN_OTHERS.includes(sqlState(error) ?? '');
}

/** Of a COMMIT: the server may have done it, and the answer is lost, or it says itself that it does not know. */
export function isUndecided(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40003' || postgresError('', 'committing', error).code === 'STORE_UNREACHABLE';
}

/** What the server says; undefined where it is the driver that speaks. */
function sqlState(thrown: unknown): string | undefined {
  const { code, severity } = toError(thrown) as Error & Readonly<Record<string, unknown>>;
  return typeof code === 'string' && severity !== undefined ? code : undefined;
}

/** Several addresses of one host make an error of errors without words of its own. */
function textOf(error: Error): string {
  const { message, code } = error as Error & { readonly code?: unknown };
  return message === '' && typeof code === 'string' ? code : message;
}

function remedyOf(code: ErrorCode, cause: Error): string | undefined {
  if (code === 'STORE_UNREACHABLE' && NO_FREE_CONNECTION.test(cause.message))
    return 'all connections of the pool are in use, or the server does not answer; raise "max" of the pool';
  return REMEDIES[code];
}

function withoutSecrets(error: Error): Error {
  const message = error.message.replace(SECRETS, '$1[redacted]');
  // The address that could not be read stands in `input`.
  if (message === error.message && !('input' in error)) return error;
  return Object.assign(new Error(message), { code: (error as { readonly code?: unknown }).code });
}
