// From what the file system says to the codes of this library: who reads them decides between room, rights and the rest.
import type { ErrorCode } from '../../core/errors.js';
import { PulseworkError, toError } from '../../core/errors.js';

const CODES: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: 'STORE_FULL',
  EDQUOT: 'STORE_FULL',
  EFBIG: 'STORE_FULL',
  EACCES: 'STORE_NOT_WRITABLE',
  EPERM: 'STORE_NOT_WRITABLE',
  EROFS: 'STORE_NOT_WRITABLE',
  ENOENT: 'STORE_NOT_WRITABLE',
  ENOTDIR: 'STORE_NOT_WRITABLE',
  EISDIR: 'STORE_NOT_WRITABLE',
};

const REMEDIES: Readonly<Partial<Record<ErrorCode, string>>> = {
  STORE_FULL: 'make room on its disk',
  STORE_NOT_WRITABLE: 'its folder must exist and this process must be allowed to write there',
};

export function errnoOf(error: unknown): string | undefined {
  const { code } = toError(error) as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

/** @param doing what failed, e.g. `writing`. */
export function storeError(path: string, doing: string, cause: unknown): PulseworkError {
  if (cause instanceof PulseworkError) return cause;
  const errno = errnoOf(cause);
  const code = CODES[errno ?? ''] ?? 'STORE_FAILED';
  const remedy = REMEDIES[code];
  const message = `attempt store ${JSON.stringify(path)}: ${doing} failed with ${errno ?? toError(cause).message}`;
  return new PulseworkError(code, remedy === undefined ? message : `${message}; ${remedy}`, { cause });
}
