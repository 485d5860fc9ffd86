// The options of stores that have tables in a database which may be the user's own, checked and completed.
import { OptionChecker } from '../../core/options.js';
import type { Clock } from '../../ports/clock.js';
import type { ProcessTable } from '../../ports/process-table.js';
import type { SqliteAttemptSettings } from './sqlite-attempt-store.js';
import type { SqliteDatabase, SqliteDatabaseClass } from './sqlite-driver.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { checkPlace, DEFAULT_BUSY_TIMEOUT_MS, pathHint } from './sqlite-options.js';
import { tablesFormat } from './sqlite-tables.js';

/** Give either `path` or `database`. Tables whose names begin with `pulsework_` are made there. */
export interface SqliteTableOptions {
  /** The file. Its folder must exist, on a disk of this machine: SQLite's locks do not work on network drives. */
  readonly path?: string | undefined;
  /**
   * The class of a driver: `Database` of `better-sqlite3` or `libsql`, `DatabaseSync` of `node:sqlite`.
   * @default the first of these that is installed and works
   */
  readonly driver?: SqliteDatabaseClass | undefined;
  /** An open database of such a driver, with whatever else you keep there. It stays as you set it up, and open. */
  readonly database?: SqliteDatabase | undefined;
  /**
   * How long a call waits for another process that writes, or for a transaction that is open on `database`, before it fails
   * with STORE_LOCKED. @default 5 s
   */
  readonly busyTimeoutMs?: number | undefined;
  /** @default the clock of the system */
  readonly clock?: Clock | undefined;
}

export interface SqliteAttemptOptions extends SqliteTableOptions {
  /** Beyond it the longest untouched records are forgotten, and their counts are lower bounds again. @default 100,000 */
  readonly maxRecords?: number | undefined;
  /**
   * Open it although a process of another host had it, which cannot be seen from here. Right where the volume is in one
   * place at a time, such as a volume of one replica. @default false
   */
  readonly takeOverFromOtherHosts?: boolean | undefined;
}

/** Of what is written in the user's transactions: the database is always the user's. */
export interface SqliteUserDatabaseOptions {
  /**
   * An open database of `better-sqlite3`, `libsql` or `node:sqlite`, with whatever else you keep there. Tables whose names begin
   * with `pulsework_` are made in it. It stays as you set it up, and open; during transactions of this library `synchronous` is raised to
   * EXTRA. A file with `journal_mode` OFF or MEMORY is refused with STORE_NOT_DURABLE. Of an outbox: messages are relayed on it while no
   * transaction of yours is open on it, and may be added on other connections to the same file too.
   */
  readonly database: SqliteDatabase;
  /**
   * How long a call waits for another process that writes, or for a transaction that is open on `database`, before it fails
   * with STORE_LOCKED. Of effects a commit that waits for others who read; a begin waits 5 s and is deferred. @default 5 s
   */
  readonly busyTimeoutMs?: number | undefined;
  /** @default the clock of the system */
  readonly clock?: Clock | undefined;
}

const KNOWN = ['path', 'driver', 'database', 'busyTimeoutMs', 'clock'];
const DEFAULT_MAX_RECORDS = 100_000;

/** @throws ConfigurationError naming every problem. */
export function resolveSqliteTableOptions(
  subject: string,
  options: SqliteTableOptions,
  systemClock: Clock,
): SqliteFileOptions {
  const check = new OptionChecker(subject);
  if (check.object('options', options, pathHint(options))) {
    check.unknownOptions(options, KNOWN);
    checkPlace(check, options);
  }
  check.throwIfAny();
  return fileOptions(options, systemClock);
}

/** @throws ConfigurationError naming every problem. */
export function resolveSqliteUserDatabaseOptions(
  subject: string,
  options: SqliteUserDatabaseOptions,
  systemClock: Clock,
): SqliteFileOptions {
  const check = new OptionChecker(subject);
  if (check.object('options', options, '{ database }')) {
    check.unknownOptions(options, ['database', 'busyTimeoutMs', 'clock']);
    check.required(options, { database: 'an open database of a SQLite driver' });
    if ((options['database'] as unknown) !== undefined) checkPlace(check, options);
  }
  check.throwIfAny();
  // What follows from a commit is done elsewhere: an acknowledgement, a message that is published.
  return { ...fileOptions(options, systemClock), forcesToDisk: true };
}

/** @throws ConfigurationError naming every problem. */
export function resolveSqliteAttemptOptions(
  options: SqliteAttemptOptions,
  processes: ProcessTable,
  systemClock: Clock,
): SqliteAttemptSettings {
  const check = new OptionChecker('sqliteAttemptStore');
  if (check.object('options', options, pathHint(options))) checkAttemptOptions(check, options);
  check.throwIfAny();
  return {
    ...fileOptions(options, systemClock),
    survives: 'process',
    maxRecords: options.maxRecords ?? DEFAULT_MAX_RECORDS,
    takeOverFromOtherHosts: options.takeOverFromOtherHosts ?? false,
    processes,
  };
}

function checkAttemptOptions(check: OptionChecker, options: SqliteAttemptOptions): void {
  check.unknownOptions(options, [...KNOWN, 'maxRecords', 'takeOverFromOtherHosts']);
  checkPlace(check, options);
  check.positiveInteger('maxRecords', options.maxRecords);
  check.boolean('takeOverFromOtherHosts', options.takeOverFromOtherHosts);
}

function fileOptions(options: SqliteTableOptions, systemClock: Clock): SqliteFileOptions {
  const { path, database, driver, clock = systemClock } = options;
  return {
    name: path === undefined ? 'sqlite' : `sqlite ${path}`,
    place: database ?? { path: path ?? '', driver },
    exclusive: false,
    busyTimeoutMs: options.busyTimeoutMs ?? DEFAULT_BUSY_TIMEOUT_MS,
    clock,
    format: tablesFormat(),
    keepsSettings: database !== undefined,
  };
}
