// From what SQLite and the file system say to the codes of this library. Each driver tells SQLite's result code in its own
// way: as a name, as a number, or inside the message.
import type { ErrorCode } from '../../core/errors.js';
import { PulseworkError, toError } from '../../core/errors.js';
import { FILE_SYSTEM_CODES, FILE_SYSTEM_REMEDIES } from '../../core/file-system-codes.js';

/** SQLite's primary result codes that mean something here; extended ones have these in their lowest byte. */
const NAMES: Readonly<Record<number, string>> = {
  3: 'PERM',
  5: 'BUSY',
  6: 'LOCKED',
  8: 'READONLY',
  10: 'IOERR',
  11: 'CORRUPT',
  13: 'FULL',
  14: 'CANTOPEN',
  26: 'NOTADB',
};

const CODES: Readonly<Record<string, ErrorCode>> = {
  ...FILE_SYSTEM_CODES,
  BUSY: 'STORE_LOCKED',
  IN_TRANSACTION: 'STORE_LOCKED',
  LOCKED: 'STORE_LOCKED',
  FULL: 'STORE_FULL',
  PERM: 'STORE_NOT_WRITABLE',
  READONLY: 'STORE_NOT_WRITABLE',
  CANTOPEN: 'STORE_NOT_WRITABLE',
  CORRUPT: 'STORE_FORMAT_UNKNOWN',
  NOTADB: 'STORE_FORMAT_UNKNOWN',
};

const REMEDIES: Readonly<Partial<Record<ErrorCode, string>>> = {
  ...FILE_SYSTEM_REMEDIES,
  STORE_LOCKED:
    'another process has it for itself, or writes to it without end, or a transaction of yours is open on it; end that first',
  STORE_FORMAT_UNKNOWN: 'use another path, or move the file away to start without what it holds',
};

/** The error of the library for what `doing` met. @param name of the store, e.g. `sqlite /var/lib/broker.db` */
export function sqliteError(name: string, doing: string, cause: unknown): PulseworkError {
  if (cause instanceof PulseworkError) return cause;
  const code = CODES[resultName(cause) ?? ''] ?? 'STORE_FAILED';
  const remedy = REMEDIES[code];
  const message = `store "${name}": ${doing} failed with ${toError(cause).message}`;
  return new PulseworkError(code, remedy === undefined ? message : `${message}; ${remedy}`, { cause });
}

/** Somebody else writes, has it for himself, or has a transaction open on the same connection, at this moment. */
export function isBusy(error: unknown): boolean {
  return CODES[resultName(error) ?? ''] === 'STORE_LOCKED';
}

/** The disk gave an error: what was written last may be there or not, and what the page cache says is not to be trusted. */
export function isDiskFault(error: unknown): boolean {
  return resultName(error) === 'IOERR';
}

/** `BUSY` for SQLITE_BUSY and all that extend it; the error code of the file system where it came from there. */
function resultName(error: unknown): string | undefined {
  const { code, rawCode, errcode, message } = toError(error) as Error & Readonly<Record<string, unknown>>;
  if (/(?:within|inside) a transaction/.test(message)) return 'IN_TRANSACTION';
  const number = [errcode, rawCode, Number(/: (\d+)"?\)$/.exec(message)?.[1])].find(isResultCode);
  if (number !== undefined) return NAMES[number & 0xff];
  if (typeof code !== 'string') return undefined;
  return /^SQLITE_([A-Z]+)/.exec(code)?.[1] ?? code;
}

function isResultCode(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value);
}

/** What fails here leaves nothing undone: SQLite has rolled back by itself, or the process that ends lets go of the lock. */
export function quietly(act: () => void): void {
  try {
    act();
  } catch {
    return;
  }
}
