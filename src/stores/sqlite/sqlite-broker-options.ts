// The options of a durable broker's store in SQLite, checked and completed.
import { join } from 'node:path';
import { OptionChecker } from '../../core/options.js';
import { CLOCK_METHODS } from '../../ports/clock.js';
import type { Clock } from '../../ports/clock.js';
import type { SqliteBrokerStoreSettings } from './sqlite-broker-store.js';
import type { SqliteDatabaseClass } from './sqlite-driver.js';
import { DEFAULT_BUSY_TIMEOUT_MS } from './sqlite-options.js';

export interface SqliteStoreOptions {
  /**
   * The folder of the broker, for this process alone, on a disk of this machine: SQLite's locks do not work on network drives. It
   * is made where it does not exist, but not what is above it.
   */
  readonly dir: string;
  /**
   * The class of a driver: `Database` of `better-sqlite3` or `libsql`, `DatabaseSync` of `node:sqlite`.
   * @default the first of these that is installed and works
   */
  readonly driver?: SqliteDatabaseClass | undefined;
  /** How long opening waits for another process that has the folder, before it fails with STORE_LOCKED. @default 5 s */
  readonly busyTimeoutMs?: number | undefined;
  /** @default the clock of the system */
  readonly clock?: Clock | undefined;
}

/** In the folder, with SQLite's own files beside it. */
const FILE_NAME = 'broker.db';
const KNOWN = ['dir', 'driver', 'busyTimeoutMs', 'clock'];

/** @throws ConfigurationError naming every problem. */
export function resolveSqliteStoreOptions(options: SqliteStoreOptions, systemClock: Clock): SqliteBrokerStoreSettings {
  const check = new OptionChecker('sqliteStore');
  const hint = typeof options === 'string' ? `{ dir: ${JSON.stringify(options)} }` : '{ dir }';
  if (check.object('options', options, hint)) {
    check.unknownOptions(options, KNOWN);
    check.required(options, { dir: 'a folder' });
    check.nonEmptyString('dir', options.dir);
    check.function('driver', options.driver, 'Database of better-sqlite3');
    check.durationMs('busyTimeoutMs', options.busyTimeoutMs);
    check.methods('clock', options.clock, CLOCK_METHODS, 'e.g. a FakeClock');
  }
  check.throwIfAny();
  const { dir, driver, clock = systemClock, busyTimeoutMs = DEFAULT_BUSY_TIMEOUT_MS } = options;
  const path = join(dir, FILE_NAME);
  return { name: `sqlite ${path}`, dir, place: { path, driver }, exclusive: true, shrinks: true, busyTimeoutMs, clock };
}
