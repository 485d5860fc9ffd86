// The options of a metadata store in SQLite, checked and completed.
import { describeValue } from '../../core/errors.js';
import { OptionChecker } from '../../core/options.js';
import { CLOCK_METHODS } from '../../ports/clock.js';
import type { Clock } from '../../ports/clock.js';
import type { SqliteDatabase, SqliteDatabaseClass } from './sqlite-driver.js';
import type { SqliteMetadataStoreSettings } from './sqlite-metadata-store.js';

/** Give either `path` or `database`. */
export interface SqliteMetadataStoreOptions {
  /** The file. Its folder must exist, on a disk of this machine: SQLite's locks do not work on network drives. */
  readonly path?: string | undefined;
  /**
   * The class of a driver: `Database` of `better-sqlite3` or `libsql`, `DatabaseSync` of `node:sqlite`.
   * @default the first of these that is installed and works
   */
  readonly driver?: SqliteDatabaseClass | undefined;
  /** An open database of such a driver, for this store alone. Its settings are changed, and it is not closed with the store. */
  readonly database?: SqliteDatabase | undefined;
  /** Keep the file from all other processes while it is open here. @default false */
  readonly exclusive?: boolean | undefined;
  /** How long a call waits for another process that writes, before it fails with STORE_LOCKED. @default 5 s */
  readonly busyTimeoutMs?: number | undefined;
  /** How often a watched file is looked at for what other processes appended. @default 100 ms */
  readonly pollIntervalMs?: number | undefined;
  /** @default the clock of the system */
  readonly clock?: Clock | undefined;
}

/** Many times what a transaction takes, and less than a caller waits by default. */
export const DEFAULT_BUSY_TIMEOUT_MS = 5_000;
/** A look costs some microseconds. */
const DEFAULT_POLL_INTERVAL_MS = 100;

const KNOWN = ['path', 'driver', 'database', 'exclusive', 'busyTimeoutMs', 'pollIntervalMs', 'clock'];

/** @throws ConfigurationError naming every problem. */
export function resolveSqliteMetadataStoreOptions(
  options: SqliteMetadataStoreOptions,
  systemClock: Clock,
): SqliteMetadataStoreSettings {
  const check = new OptionChecker('sqliteMetadataStore');
  if (check.object('options', options, pathHint(options))) checkOptions(check, options);
  check.throwIfAny();
  const { path, database, driver, clock = systemClock } = options;
  return {
    name: path === undefined ? 'sqlite' : `sqlite ${path}`,
    place: database ?? { path: path ?? '', driver },
    exclusive: options.exclusive ?? false,
    busyTimeoutMs: options.busyTimeoutMs ?? DEFAULT_BUSY_TIMEOUT_MS,
    pollIntervalMs: options.pollIntervalMs ?? DEFAULT_POLL_INTERVAL_MS,
    clock,
  };
}

function checkOptions(check: OptionChecker, options: SqliteMetadataStoreOptions): void {
  check.unknownOptions(options, KNOWN);
  checkPlace(check, options);
  check.boolean('exclusive', options.exclusive);
  check.durationMs('pollIntervalMs', options.pollIntervalMs, { minMs: 1 });
}

/** What every store in SQLite has. */
export function checkPlace(
  check: OptionChecker,
  options: Pick<SqliteMetadataStoreOptions, 'path' | 'driver' | 'database' | 'busyTimeoutMs' | 'clock'>,
): void {
  const { path, driver, database } = options;
  check.nonEmptyString('path', path);
  check.function('driver', driver, 'a class such as Database of better-sqlite3');
  check.durationMs('busyTimeoutMs', options.busyTimeoutMs);
  check.methods('clock', options.clock, CLOCK_METHODS, 'e.g. a FakeClock');
  if ((path === undefined) === (database === undefined))
    check.problem('needs either "path", a file, or "database", an open one');
  if (database !== undefined && driver !== undefined)
    check.problem('"driver" is for "path"; "database" is open already');
  if (path === ':memory:') check.problem('"path" must be a file; in memory it would not survive what it is for');
  if (database !== undefined && !isDatabase(database))
    check.problem(`"database" must be an open database of a SQLite driver, got ${describeValue(database)}`);
}

function isDatabase(value: unknown): boolean {
  const { exec, prepare } = (value ?? {}) as { readonly exec?: unknown; readonly prepare?: unknown };
  return typeof exec === 'function' && typeof prepare === 'function';
}

export function pathHint(options: unknown): string {
  return typeof options === 'string' ? `{ path: ${JSON.stringify(options)} }` : '{ path }';
}
