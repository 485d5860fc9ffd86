// One SQLite file: opened so that what is committed is on the disk, locked where asked for, and written in groups. Writes that
// come in one turn share a transaction and so one fsync; each resolves only behind it.
import { access, constants, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PulseworkError } from '../../core/errors.js';
import type { Clock } from '../../ports/clock.js';
import { findSqliteDriver } from './find-sqlite-driver.js';
import { checkJournal, forceToDisk } from './lent-settings.js';
import type { SqliteConnection, SqliteDatabase, SqliteDatabaseClass } from './sqlite-driver.js';
import { sqliteConnection } from './sqlite-driver.js';
import { isBusy, isDiskFault, quietly, sqliteError } from './sqlite-errors.js';
import type { SqliteFormat } from './sqlite-format.js';
import { fileFormat } from './sqlite-format.js';

/** What a thread waits inside SQLite for another process: as long as a usual transaction takes. After it others have a turn. */
const BLOCKING_WAIT_MS = 20;
/** Between two tries to get at a file that is busy. */
const RETRY_MS = 10;
/** Of one transaction: so that a burst of writes does not hold up everything else in this process. */
const MAX_GROUP = 500;
/** To which the log is cut back after a large transaction. */
const MAX_LOG_BYTES = 16 * 1024 * 1024;

export interface SqliteFileOptions {
  /** For errors. */
  readonly name: string;
  readonly place: { readonly path: string; readonly driver?: SqliteDatabaseClass | undefined } | SqliteDatabase;
  readonly exclusive: boolean;
  /** Whether a new file is made so that what it is free of can be given back to the disk. @default false */
  readonly shrinks?: boolean | undefined;
  readonly busyTimeoutMs: number;
  readonly clock: Clock;
  /** @default a file of this library alone, of this version */
  readonly format?: SqliteFormat | undefined;
  /** The database is also for others, who have set it up: its settings stay as they are. @default false */
  readonly keepsSettings?: boolean | undefined;
  /**
   * Writes are forced to the disk also where the settings of the user say less, and a file that a crash would damage is refused.
   * @default false
   */
  readonly forcesToDisk?: boolean | undefined;
  /** What a confirmed write survives: `process` is quicker. @default 'machine' */
  readonly survives?: 'machine' | 'process' | undefined;
}

interface Write {
  /** In the transaction of its group. @returns what to call once that is on the disk */
  run(): () => void;
  readonly reject: (error: unknown) => void;
}

export class SqliteFile {
  readonly #options: SqliteFileOptions;
  readonly #format: SqliteFormat;
  #connection: SqliteConnection | undefined;
  #opening: Promise<SqliteConnection> | undefined;
  #closing: Promise<void> | undefined;
  /** Set when the disk failed: what this connection believes of the file may be wrong. */
  #fault: PulseworkError | undefined;
  #queued: Write[] = [];
  #writing: Promise<void> | undefined;

  constructor(options: SqliteFileOptions) {
    this.#options = options;
    this.#format = options.format ?? fileFormat();
  }

  /** May be called again after it failed. @throws PulseworkError as `MetadataStore.open` */
  async open(): Promise<SqliteConnection> {
    if (this.#closing !== undefined) throw this.#notOpen();
    this.#opening ??= this.#open();
    try {
      return await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      throw sqliteError(this.#options.name, 'opening', error);
    }
  }

  /** @throws PulseworkError ILLEGAL_STATE, ALREADY_CLOSED, STORE_FAILED where the file cannot be used now */
  checkOpen(): void {
    if (this.#fault !== undefined && this.#closing === undefined) throw this.#fault;
    if (this.#connection === undefined || this.#closing !== undefined) throw this.#notOpen();
  }

  /** Sees what is committed. `act` is synchronous, changes nothing and may run more than once. */
  async read<T>(act: () => T): Promise<T> {
    try {
      return await this.#whenFree(() => {
        this.checkOpen();
        return act();
      });
    } catch (error) {
      throw this.#failed('reading', error);
    }
  }

  /**
   * Runs `act` in a transaction with others and resolves when that is on the disk. In the order of the calls. `act` is synchronous
   * and may run more than once; a PulseworkError that it throws rejects its own call alone, so it must have changed nothing by then.
   */
  write<T>(act: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.checkOpen();
      const run = (): (() => void) => {
        const result = act();
        return () => resolve(result);
      };
      this.#queued.push({ run, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Waits for what was written before it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #open(): Promise<SqliteConnection> {
    const { place } = this.#options;
    const isGiven = 'exec' in place;
    if (!isGiven) await makeFile(place.path);
    const connection = sqliteConnection(isGiven ? place : await openDatabase(place.path, place.driver));
    try {
      await this.#whenFree(() => this.#prepare(connection));
    } catch (error) {
      if (this.#options.keepsSettings !== true) quietly(() => unlock(connection));
      if (!isGiven) connection.close();
      throw error;
    }
    this.#connection = connection;
    return connection;
  }

  #prepare(connection: SqliteConnection): void {
    const { name, keepsSettings, forcesToDisk } = this.#options;
    if (keepsSettings === true) this.#format.check(connection, name);
    else this.#setUp(connection);
    if (forcesToDisk === true) checkJournal(connection, name);
    inTransaction(connection, () => this.#format.migrate(connection, name));
  }

  #setUp(connection: SqliteConnection): void {
    const { name, exclusive, shrinks, survives } = this.#options;
    connection.pragma(`busy_timeout = ${BLOCKING_WAIT_MS}`);
    // SQLite's own lock on the file: it goes with the process, however that ends.
    if (exclusive) connection.pragma('locking_mode = EXCLUSIVE');
    this.#format.check(connection, name);
    // Void in a file that has tables already.
    if (shrinks === true) connection.pragma('auto_vacuum = INCREMENTAL');
    const mode = connection.pragma('journal_mode = WAL');
    if (mode !== 'wal')
      throw new PulseworkError(
        'STORE_FAILED',
        `store "${name}": its journal mode is ${String(mode)}, WAL cannot be had here`,
      );
    // The log is forced to the disk at each commit; on a Mac that takes a call of its own.
    connection.pragma(survives === 'process' ? 'synchronous = NORMAL' : 'synchronous = FULL');
    connection.pragma('fullfsync = ON');
    connection.pragma(`journal_size_limit = ${MAX_LOG_BYTES}`);
  }

  async #writeAll(): Promise<void> {
    do {
      // What else is asked for in this turn joins the group, also by those whose writes were in the one before.
      await this.#nextTurn();
      const group = this.#queued.splice(0, MAX_GROUP);
      try {
        const settled = await this.#whenFree(() => this.#writeGroup(group));
        for (const settle of settled) settle();
      } catch (error) {
        const failed = this.#failed('writing', error);
        for (const write of group) write.reject(failed);
      }
    } while (this.#queued.length > 0);
    this.#writing = undefined;
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.nextTurn(resolve));
  }

  #writeGroup(group: readonly Write[]): (() => void)[] {
    if (this.#fault !== undefined) throw this.#fault;
    const connection = this.#connection as SqliteConnection;
    const restore = this.#options.forcesToDisk === true ? forceToDisk(connection) : () => undefined;
    try {
      return inTransaction(connection, () =>
        group.map((write) => {
          try {
            return write.run();
          } catch (error) {
            if (!(error instanceof PulseworkError)) throw error;
            return () => write.reject(error);
          }
        }),
      );
    } finally {
      quietly(restore);
    }
  }

  /** Tries again while another process has the file, without holding up this one. */
  async #whenFree<T>(act: () => T): Promise<T> {
    const { clock, busyTimeoutMs } = this.#options;
    const untilMs = clock.now() + busyTimeoutMs;
    for (;;) {
      try {
        return act();
      } catch (error) {
        if (!isBusy(error) || clock.now() >= untilMs) throw error;
      }
      await new Promise<void>((resolve) => void clock.setTimer(RETRY_MS, resolve));
    }
  }

  #failed(doing: string, cause: unknown): PulseworkError {
    const error = sqliteError(this.#options.name, doing, cause);
    if (isDiskFault(cause)) this.#fault ??= error;
    return error;
  }

  async #close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await this.#writing;
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection === undefined) return;
    const isOurs = !('exec' in this.#options.place);
    if (isOurs || this.#options.exclusive) release(connection);
    if (isOurs) connection.close();
  }

  #notOpen(): PulseworkError {
    const { name } = this.#options;
    return this.#closing === undefined
      ? new PulseworkError('ILLEGAL_STATE', `store "${name}" is not open yet; open() it first`)
      : new PulseworkError('ALREADY_CLOSED', `store "${name}" was closed before the call`);
  }
}

export type SqliteFileUse = Pick<SqliteFile, 'open' | 'checkOpen' | 'read' | 'write' | 'close'>;

/** A file that somebody else opens and closes: once the use of it is closed, that alone is over. */
export function sharedFile(file: SqliteFile, name: string): SqliteFileUse {
  let isClosed = false;
  const checkOpen = (): void => {
    if (isClosed) throw new PulseworkError('ALREADY_CLOSED', `store "${name}" was closed before the call`);
    file.checkOpen();
  };
  return {
    checkOpen,
    open: () => file.open(),
    read: (act) => file.read(act),
    write: (act) => file.write(act),
    close: async () => {
      isClosed = true;
    },
  };
}

/** All or nothing of it. A commit that fails is taken back. */
function inTransaction<T>(connection: SqliteConnection, act: () => T): T {
  connection.exec('BEGIN IMMEDIATE');
  try {
    const result = act();
    connection.exec('COMMIT');
    return result;
  } catch (error) {
    quietly(() => connection.exec('ROLLBACK'));
    throw error;
  }
}

/**
 * Puts what is in the log into the file, unless another process needs it there, and gives the lock up by hand: libsql keeps a
 * closed file open, and locked, until the statements made on it are collected.
 */
function release(connection: SqliteConnection): void {
  quietly(() => {
    connection.pragma('journal_mode = DELETE');
    unlock(connection);
  });
}

/** Takes effect with the next access. */
function unlock(connection: SqliteConnection): void {
  connection.pragma('locking_mode = NORMAL');
  connection.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get();
}

/** Made here for two reasons: errors of the file system have names, and what is in it is not for the world. */
async function makeFile(path: string): Promise<void> {
  await access(dirname(path), constants.W_OK);
  try {
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    // It is not opened here when it is there: closing it would give up the locks that this process has on it.
    if ((error as { readonly code?: unknown }).code !== 'EEXIST') throw error;
    await access(path, constants.W_OK);
  }
}

async function openDatabase(path: string, driver: SqliteDatabaseClass | undefined): Promise<SqliteDatabase> {
  const Database = driver ?? (await findSqliteDriver());
  return new Database(path);
}
