// Finds a SQLite driver where the user names none. All are optional: which one fits depends on the version of Node and on
// whether install scripts may run.
import { PulseworkError, toError } from '../../core/errors.js';
import type { SqliteDatabaseClass } from './sqlite-driver.js';

interface Candidate {
  readonly name: string;
  /** Where the class stands in what the module exports. */
  readonly exported: 'default' | 'DatabaseSync';
}

/** `node:sqlite` last: it writes a warning where it is still an experiment. */
const CANDIDATES: readonly Candidate[] = [
  { name: 'better-sqlite3', exported: 'default' },
  { name: 'libsql', exported: 'default' },
  { name: 'node:sqlite', exported: 'DatabaseSync' },
];

const REMEDY =
  'npm install libsql (no install script), or better-sqlite3 (with its install script allowed), or use Node 22.13 or newer, which has node:sqlite';

/**
 * The first that is there and opens a database.
 * @param load for tests: what `import` would do.
 * @throws PulseworkError PEER_NOT_INSTALLED when none is there, PEER_NOT_LOADABLE when one is but does not work.
 */
export async function findSqliteDriver(
  load: (name: string) => Promise<unknown> = importByName,
): Promise<SqliteDatabaseClass> {
  const broken: { readonly name: string; readonly cause: Error }[] = [];
  for (const { name, exported } of CANDIDATES) {
    try {
      const module = (await load(name)) as Readonly<Record<string, SqliteDatabaseClass>>;
      const found = module[exported] as SqliteDatabaseClass;
      // Some look for their native part only now.
      new found(':memory:').close();
      return found;
    } catch (error) {
      const cause = toError(error);
      if (!isMissing(name, cause)) broken.push({ name, cause });
    }
  }
  const [first] = broken;
  if (first === undefined)
    throw new PulseworkError('PEER_NOT_INSTALLED', `"pulsework/sqlite" needs a SQLite driver: ${REMEDY}`);
  throw new PulseworkError(
    'PEER_NOT_LOADABLE',
    `${JSON.stringify(first.name)} is installed but could not be loaded; install it again with its install script allowed, or take another: ${REMEDY}`,
    { cause: first.cause },
  );
}

/** By a name that compilers and bundlers do not follow: none of the packages needs to be there. */
function importByName(name: string): Promise<unknown> {
  return import(name);
}

function isMissing(name: string, cause: Error): boolean {
  const { code } = cause as { readonly code?: unknown };
  if (code === 'ERR_UNKNOWN_BUILTIN_MODULE') return true;
  // Its own files are found by path: only when the package itself is missing does the message name it alone.
  const isNotFound = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  return isNotFound && new RegExp(`Cannot find (package|module) '${name}'`).test(cause.message);
}
