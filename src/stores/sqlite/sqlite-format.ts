// What a file of this library looks like inside, from version to version: how it is recognised, made and brought up to date.
import { PulseworkError } from '../../core/errors.js';
import type { SqliteConnection } from './sqlite-driver.js';

/** "Puls", in SQLite's field for the kind of a file. */
const APPLICATION_ID = 0x50756c73;

/**
 * The n-th brings a file from version n to n + 1; the first makes an empty one. What was released is never changed: a
 * new version is added at the end.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE metadata_entry (
     path TEXT NOT NULL PRIMARY KEY,
     value BLOB NOT NULL,
     version INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE TABLE metadata_index (
     name TEXT NOT NULL,
     key TEXT NOT NULL,
     path TEXT NOT NULL,
     PRIMARY KEY (name, key, path)
   ) WITHOUT ROWID;
   CREATE INDEX metadata_index_path ON metadata_index (path);
   CREATE TABLE metadata_number (last INTEGER NOT NULL);
   INSERT INTO metadata_number VALUES (0);`,
  `CREATE TABLE broker_number (last_ledger INTEGER NOT NULL);
   INSERT INTO broker_number VALUES (0);
   CREATE TABLE broker_partitions (topic TEXT NOT NULL PRIMARY KEY, partitions INTEGER NOT NULL) WITHOUT ROWID;
   CREATE TABLE broker_topic (id INTEGER PRIMARY KEY, name TEXT NOT NULL, is_terminated INTEGER NOT NULL);
   CREATE TABLE broker_ledger (number INTEGER PRIMARY KEY, topic INTEGER NOT NULL, id INTEGER NOT NULL);
   CREATE TABLE broker_block (place INTEGER PRIMARY KEY, entries BLOB NOT NULL);
   CREATE TABLE broker_sequence (
     topic INTEGER NOT NULL,
     producer TEXT NOT NULL,
     sequence INTEGER NOT NULL,
     PRIMARY KEY (topic, producer)
   ) WITHOUT ROWID;
   CREATE TABLE broker_cursor (
     id INTEGER PRIMARY KEY,
     topic INTEGER NOT NULL,
     name TEXT NOT NULL,
     ledger INTEGER NOT NULL,
     entry INTEGER NOT NULL
   );
   CREATE TABLE broker_acked (
     cursor INTEGER NOT NULL,
     ledger INTEGER NOT NULL,
     page INTEGER NOT NULL,
     bits BLOB NOT NULL,
     PRIMARY KEY (cursor, ledger, page)
   ) WITHOUT ROWID;
   CREATE TABLE broker_acked_part (
     cursor INTEGER NOT NULL,
     ledger INTEGER NOT NULL,
     entry INTEGER NOT NULL,
     bits BLOB NOT NULL,
     PRIMARY KEY (cursor, ledger, entry)
   ) WITHOUT ROWID;`,
];

/** How what this library has in a database is recognised, made and brought up to date. */
export interface SqliteFormat {
  /** Looks before anything is written. @throws PulseworkError STORE_FORMAT_UNKNOWN */
  check(connection: SqliteConnection, name: string): void;
  /** Makes it the newest, all or nothing. Inside a transaction, so that of several processes one does it. @throws as `check` */
  migrate(connection: SqliteConnection, name: string): void;
}

/** A file of this library alone. */
export function fileFormat(migrations: readonly string[] = MIGRATIONS): SqliteFormat {
  return {
    check: (connection, name) => checkFormat(connection, name, migrations),
    migrate: (connection, name) => migrate(connection, name, migrations),
  };
}

/**
 * Looks before anything is written: a file of somebody else stays as it is.
 * @throws PulseworkError STORE_FORMAT_UNKNOWN
 */
function checkFormat(connection: SqliteConnection, name: string, migrations: readonly string[]): void {
  const { applicationId, version } = formatOf(connection);
  if (applicationId !== APPLICATION_ID) {
    const isEmpty = connection.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
    if (!isEmpty || applicationId !== 0 || version !== 0)
      throw unknownFormat(name, 'it is a database, but not one of pulsework');
  }
  if (version > migrations.length)
    throw unknownFormat(name, `it has version ${version}, this program reads up to version ${migrations.length}`);
}

/** Makes it the newest, all or nothing. Inside a transaction, so that of several processes one does it. */
function migrate(connection: SqliteConnection, name: string, migrations: readonly string[]): void {
  checkFormat(connection, name, migrations);
  const { version } = formatOf(connection);
  if (version === migrations.length) return;
  for (const migration of migrations.slice(version)) connection.exec(migration);
  connection.pragma(`application_id = ${APPLICATION_ID}`);
  connection.pragma(`user_version = ${migrations.length}`);
}

function formatOf(connection: SqliteConnection): { readonly applicationId: number; readonly version: number } {
  return {
    applicationId: Number(connection.pragma('application_id')),
    version: Number(connection.pragma('user_version')),
  };
}

function unknownFormat(name: string, rule: string): PulseworkError {
  const remedy = 'use another path, or move the file away to start without what it holds';
  return new PulseworkError('STORE_FORMAT_UNKNOWN', `store "${name}": ${rule}; ${remedy}`);
}
