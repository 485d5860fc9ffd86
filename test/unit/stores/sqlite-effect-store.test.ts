// What only a SQLite database has: its settings are the user's, others may have its file, and what a commit met has a name.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { success, topic } from 'pulsework';
import { sqliteEffects, sqliteOutbox } from 'pulsework/sqlite';
import type { SqliteDatabase } from 'pulsework/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { recordedOutcome } from '../../../src/core/recorded-outcome.js';
import { sqliteConnection } from '../../../src/stores/sqlite/sqlite-driver.js';
import { sqliteDrivers } from '../../support/metadata-places.js';

const DONE = recordedOutcome(success(), []);
const TIMES = { ttlMs: 60_000, waitMs: 5_000 };
const [OFF, NORMAL, FULL, EXTRA] = [0, 1, 2, 3];

describe.each(Object.entries(sqliteDrivers))('effects in SQLite (%s)', (_name, Database) => {
  function newPlace(settings: readonly string[] = []) {
    const folder = mkdtempSync(join(tmpdir(), 'pulsework-effects-'));
    const path = join(folder, 'service.db');
    const open: SqliteDatabase[] = [];
    const connect = () => {
      const database = new Database(path);
      open.push(database);
      const connection = sqliteConnection(database);
      for (const setting of settings) connection.pragma(setting);
      return { database, connection };
    };
    onTestFinished(() => {
      for (const database of open) database.close();
      rmSync(folder, { recursive: true });
    });
    return { ...connect(), connect };
  }

  async function begunIn(database: SqliteDatabase, key = 'k') {
    const store = sqliteEffects({ database });
    await store.open();
    const answer = await store.begin(key, TIMES);
    if (answer.kind !== 'begun') throw new Error(answer.kind);
    return { store, transaction: answer.transaction };
  }

  it('does not wait longer than it is told for another process that writes, nor blocks this one', async () => {
    const { database, connection, connect } = newPlace(['busy_timeout = 60000']);
    const store = sqliteEffects({ database });
    await store.open();
    const other = connect();
    other.connection.exec('BEGIN IMMEDIATE');
    const startedMs = performance.now();
    expect(await store.begin('k', { ...TIMES, waitMs: 50 })).toEqual({ kind: 'busy', remainingMs: 50 });
    expect(performance.now() - startedMs).toBeLessThan(TIMES.waitMs);
    expect(connection.pragma('busy_timeout')).toBe(60_000);
    other.connection.exec('ROLLBACK');
    expect(await store.begin('k', TIMES)).toMatchObject({ kind: 'begun' });
  });

  it.each([
    ['a log', 'WAL', NORMAL],
    ['a log', 'WAL', OFF],
    ['a rollback journal', 'DELETE', FULL],
  ])('forces its commits to the disk where the user has set less: with %s, %s, %i', async (_kind, mode, less) => {
    const { database, connection } = newPlace([`journal_mode = ${mode}`, `synchronous = ${less}`]);
    const { store, transaction } = await begunIn(database);
    expect(connection.pragma('synchronous')).toBe(EXTRA);
    await transaction.commit(DONE);
    expect(connection.pragma('synchronous')).toBe(less);
    const again = await store.begin('other', TIMES);
    if (again.kind === 'begun') await again.transaction.rollback();
    expect(connection.pragma('synchronous')).toBe(less);
  });

  it('puts the settings back where the handler has rolled back by itself, or the file is taken', async () => {
    const { database, connection, connect } = newPlace(['synchronous = 1']);
    const { store, transaction } = await begunIn(database);
    database.exec('ROLLBACK');
    await transaction.rollback();
    expect(connection.pragma('synchronous')).toBe(NORMAL);
    const other = connect();
    other.connection.exec('BEGIN IMMEDIATE');
    expect(await store.begin('k', { ...TIMES, waitMs: 1 })).toMatchObject({ kind: 'busy' });
    expect(connection.pragma('synchronous')).toBe(NORMAL);
  });

  it.each(['OFF', 'MEMORY'])('refuses a file that a crash would damage: journal_mode = %s', async (mode) => {
    const { database } = newPlace([`journal_mode = ${mode}`]);
    await expect(sqliteEffects({ database }).open()).rejects.toMatchObject({ code: 'STORE_NOT_DURABLE' });
    await expect(sqliteOutbox({ database }).open()).rejects.toThrow(/PRAGMA journal_mode = WAL/);
  });

  it('takes a database in memory, which ends with its process anyway', async () => {
    const database = new Database(':memory:');
    onTestFinished(() => void database.close());
    const { transaction } = await begunIn(database);
    await transaction.commit(DONE);
  });

  it('says that nobody knows what became of a commit when the disk gave an error; the next one finds out', async () => {
    const { database } = newPlace();
    let fails = false;
    const faulty = failing(database, (sql) => {
      if (sql !== 'COMMIT' || !fails) return;
      fails = false;
      throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' });
    });
    const { store, transaction } = await begunIn(faulty);
    fails = true;
    await expect(transaction.commit(DONE)).rejects.toMatchObject({ code: 'STORE_COMMIT_UNKNOWN' });
    await transaction.rollback();
    expect(await store.begin('k', TIMES)).toMatchObject({ kind: 'begun' });
  });

  it('waits with a commit for those who read where there is no log', async () => {
    const { database, connect } = newPlace(['journal_mode = DELETE', 'busy_timeout = 0']);
    const { store, transaction } = await begunIn(database);
    const reader = connect();
    reader.connection.exec('BEGIN');
    reader.connection.prepare('SELECT * FROM pulsework_idempotency').all();
    const committing = transaction.commit(DONE);
    await new Promise((resolve) => void setImmediate(resolve));
    reader.connection.exec('COMMIT');
    await committing;
    expect(await store.begin('k', TIMES)).toMatchObject({ kind: 'recorded' });
  });

  it('a commit that waited and was given up commits nothing of whoever comes next', async () => {
    const { database, connect } = newPlace(['journal_mode = DELETE', 'busy_timeout = 0']);
    const { store, transaction } = await begunIn(database);
    const reader = connect();
    reader.connection.exec('BEGIN');
    reader.connection.prepare('SELECT * FROM pulsework_idempotency').all();
    const committing = transaction.commit(DONE);
    await transaction.rollback();
    const next = await store.begin('next', TIMES);
    reader.connection.exec('COMMIT');
    await expect(committing).rejects.toMatchObject({ code: 'STORE_FAILED' });
    if (next.kind === 'begun') await next.transaction.rollback();
    expect(await store.begin('next', TIMES)).toMatchObject({ kind: 'begun' });
  });

  it('the relay of an outbox forces what it claims to the disk before it is sent, and waits for transactions of the user', async () => {
    const { database, connection } = newPlace(['journal_mode = WAL', 'synchronous = 1']);
    const commits: unknown[] = [];
    const watched = failing(database, (sql) => {
      if (sql === 'COMMIT') commits.push(connection.pragma('synchronous'));
    });
    const outbox = sqliteOutbox({ database: watched });
    await outbox.open();
    const lead = await outbox.store.lead();
    database.exec('BEGIN');
    outbox.add(watched, topic<string>('receipts').message('one'));
    commits.length = 0;
    const claiming = lead?.claim({ limit: 10, exceptTopics: [], nowMs: Date.now() });
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => void setImmediate(resolve));
    expect(commits).toEqual([]);
    database.exec('COMMIT');
    expect(await claiming).toHaveLength(1);
    expect(commits).toEqual([EXTRA]);
    expect(connection.pragma('synchronous')).toBe(NORMAL);
  });
});

/** The database, where `before` is called with each statement that is executed without parameters. */
function failing(database: SqliteDatabase, before: (sql: string) => void): SqliteDatabase {
  const { pragma } = database as unknown as { pragma?: (source: string) => unknown };
  return {
    exec: (sql) => {
      before(sql);
      return database.exec(sql);
    },
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
    ...(pragma === undefined ? {} : { pragma: (source: string) => pragma.call(database, source) }),
  };
}
