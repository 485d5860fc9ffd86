// From what the file system says to the codes of this library: who reads them decides between room, rights and the rest.
import { PulseworkError, toError } from '../../core/errors.js';
import { FILE_SYSTEM_CODES, FILE_SYSTEM_REMEDIES } from '../../core/file-system-codes.js';

export function errnoOf(error: unknown): string | undefined {
  const { code } = toError(error) as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

/** @param doing what failed, e.g. `writing`. */
export function storeError(path: string, doing: string, cause: unknown): PulseworkError {
  if (cause instanceof PulseworkError) return cause;
  const errno = errnoOf(cause);
  const code = FILE_SYSTEM_CODES[errno ?? ''] ?? 'STORE_FAILED';
  const remedy = FILE_SYSTEM_REMEDIES[code];
  const message = `attempt store ${JSON.stringify(path)}: ${doing} failed with ${errno ?? toError(cause).message}`;
  return new PulseworkError(code, remedy === undefined ? message : `${message}; ${remedy}`, { cause });
}
