// The tables of this library in a database that may hold others, such as that of a service: how they are recognised, made and
// brought up to date. Their version stands in a table too, because the database's own fields are its owner's.
import { PulseworkError } from '../../core/errors.js';
import type { SqliteConnection } from './sqlite-driver.js';
import type { SqliteFormat } from './sqlite-format.js';

/** The n-th brings the tables from version n to n + 1. What was released is never changed: a new version is added at the end. */
export const TABLE_MIGRATIONS: readonly string[] = [
  `CREATE TABLE pulsework_idempotency (
     key TEXT NOT NULL PRIMARY KEY,
     owner TEXT NOT NULL,
     outcome TEXT,
     until_ms INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE INDEX pulsework_idempotency_until ON pulsework_idempotency (until_ms);
   CREATE TABLE pulsework_attempt (
     key TEXT NOT NULL PRIMARY KEY,
     state TEXT NOT NULL,
     attempts INTEGER NOT NULL,
     deaths INTEGER NOT NULL,
     not_before_ms REAL,
     touched INTEGER NOT NULL
   ) WITHOUT ROWID;
   CREATE INDEX pulsework_attempt_touched ON pulsework_attempt (touched);
   CREATE TABLE pulsework_attempt_holder (host TEXT NOT NULL, process INTEGER NOT NULL, token TEXT NOT NULL);`,
  `CREATE TABLE pulsework_outbox (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     topic TEXT NOT NULL,
     ordered_by TEXT,
     payload BLOB,
     headers TEXT NOT NULL,
     added_ms INTEGER NOT NULL,
     number INTEGER,
     refused_ms INTEGER,
     reason TEXT
   );
   CREATE INDEX pulsework_outbox_waiting ON pulsework_outbox (id) WHERE number IS NULL AND refused_ms IS NULL;
   CREATE UNIQUE INDEX pulsework_outbox_claimed ON pulsework_outbox (number) WHERE number IS NOT NULL;
   CREATE INDEX pulsework_outbox_refused ON pulsework_outbox (id) WHERE refused_ms IS NOT NULL;
   CREATE TABLE pulsework_outbox_relay (
     outbox_id TEXT NOT NULL,
     last_number INTEGER NOT NULL,
     leader TEXT,
     host TEXT,
     process INTEGER,
     until_ms INTEGER NOT NULL
   );
   INSERT INTO pulsework_outbox_relay VALUES (lower(hex(randomblob(16))), 0, NULL, NULL, NULL, 0);`,
  `CREATE TABLE pulsework_workflow (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     name TEXT NOT NULL,
     id TEXT NOT NULL,
     status TEXT NOT NULL,
     state TEXT NOT NULL,
     created_ms REAL NOT NULL,
     ended_ms REAL,
     wake_ms REAL,
     epoch INTEGER NOT NULL,
     owner TEXT,
     until_ms REAL NOT NULL,
     write_version INTEGER NOT NULL,
     last_epoch INTEGER NOT NULL,
     was_released INTEGER NOT NULL,
     UNIQUE (name, id)
   );
   CREATE INDEX pulsework_workflow_wake ON pulsework_workflow (wake_ms) WHERE wake_ms IS NOT NULL;
   CREATE INDEX pulsework_workflow_created ON pulsework_workflow (created_ms, name, id);
   CREATE INDEX pulsework_workflow_status ON pulsework_workflow (status, created_ms, name, id);
   CREATE INDEX pulsework_workflow_ended ON pulsework_workflow (ended_ms) WHERE ended_ms IS NOT NULL;
   CREATE TABLE pulsework_workflow_attribute (
     workflow INTEGER NOT NULL,
     key TEXT NOT NULL,
     value TEXT NOT NULL,
     PRIMARY KEY (workflow, key)
   ) WITHOUT ROWID;
   CREATE INDEX pulsework_workflow_attribute_value ON pulsework_workflow_attribute (key, value);
   CREATE TABLE pulsework_workflow_entry (
     workflow INTEGER NOT NULL,
     seq INTEGER NOT NULL,
     entry TEXT NOT NULL,
     PRIMARY KEY (workflow, seq)
   ) WITHOUT ROWID;
   CREATE TABLE pulsework_workflow_event (
     seq INTEGER PRIMARY KEY AUTOINCREMENT,
     workflow INTEGER NOT NULL,
     event_id TEXT NOT NULL,
     event TEXT,
     UNIQUE (workflow, event_id)
   );
   CREATE INDEX pulsework_workflow_event_new ON pulsework_workflow_event (workflow, seq) WHERE event IS NOT NULL;
   CREATE TABLE pulsework_workflow_signal (
     seq INTEGER PRIMARY KEY AUTOINCREMENT,
     name TEXT NOT NULL,
     id TEXT NOT NULL,
     event_id TEXT NOT NULL,
     event TEXT NOT NULL,
     until_ms REAL NOT NULL
   );
   CREATE INDEX pulsework_workflow_signal_key ON pulsework_workflow_signal (name, id);
   CREATE INDEX pulsework_workflow_signal_until ON pulsework_workflow_signal (until_ms);
   CREATE TABLE pulsework_workflow_outgoing (
     seq INTEGER PRIMARY KEY AUTOINCREMENT,
     message_id TEXT NOT NULL UNIQUE,
     key TEXT NOT NULL,
     message TEXT NOT NULL,
     owner TEXT,
     until_ms REAL NOT NULL
   );
   CREATE INDEX pulsework_workflow_outgoing_key ON pulsework_workflow_outgoing (key, seq);`,
];

/** Whatever else the database holds stays as it is. */
export function tablesFormat(migrations: readonly string[] = TABLE_MIGRATIONS): SqliteFormat {
  return {
    check: (connection, name) => void checkedVersion(connection, name, migrations.length),
    migrate: (connection, name) => {
      const version = checkedVersion(connection, name, migrations.length);
      if (version === migrations.length) return;
      if (version === 0) connection.exec('CREATE TABLE pulsework_format (version INTEGER NOT NULL)');
      for (const migration of migrations.slice(version)) connection.exec(migration);
      connection.exec(`DELETE FROM pulsework_format; INSERT INTO pulsework_format VALUES (${migrations.length})`);
    },
  };
}

/** 0 where there is nothing yet. @throws PulseworkError STORE_FORMAT_UNKNOWN */
function checkedVersion(connection: SqliteConnection, name: string, newest: number): number {
  const version = versionOf(connection);
  if (version <= newest) return version;
  const rule = `its tables have version ${version}, this program reads up to version ${newest}`;
  const remedy = 'use the version that wrote them, or another database';
  throw new PulseworkError('STORE_FORMAT_UNKNOWN', `store "${name}": ${rule}; ${remedy}`);
}

function versionOf(connection: SqliteConnection): number {
  const table = connection.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'pulsework_format'`).get();
  if (table === undefined) return 0;
  return Number(connection.prepare('SELECT version FROM pulsework_format').get()?.['version']);
}
