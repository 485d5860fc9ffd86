// Tables of this library in a database that may be the user's own: made beside what is there, in turn with the user's own
// transactions, by several processes at once.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SqliteDatabase } from 'pulsework/sqlite';
import { sqliteAttemptStore, sqliteIdempotencyStore, sqliteMetadataStore } from 'pulsework/sqlite';
import type { RecordedOutcome } from 'pulsework';
import { FakeClock } from 'pulsework/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteAttemptStore } from '../../../src/stores/sqlite/sqlite-attempt-store.js';
import { sqliteConnection } from '../../../src/stores/sqlite/sqlite-driver.js';
import { SqliteFile } from '../../../src/stores/sqlite/sqlite-file.js';
import { resolveSqliteAttemptOptions } from '../../../src/stores/sqlite/sqlite-table-options.js';
import { TABLE_MIGRATIONS, tablesFormat } from '../../../src/stores/sqlite/sqlite-tables.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { everyKey, raceForClaims } from '../../support/claim-race.js';
import { sqliteDrivers } from '../../support/metadata-places.js';
import { StoreProcesses } from '../../support/store-processes.js';

const LEASE = { nowMs: 0, leaseMs: 60_000 };
const SKIPPED: RecordedOutcome = { version: 1, kind: 'skip', reason: 'done' };

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-tables-'));
  path = join(folder, 'service.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe.each(Object.entries(sqliteDrivers))('tables in a database of the user (%s)', (_name, driver) => {
  let database: SqliteDatabase;
  beforeEach(() => {
    database = new driver(path);
    database.exec('PRAGMA user_version = 7; CREATE TABLE receipt (id)');
  });
  afterEach(() => void database.close());
  const sql = () => sqliteConnection(database);

  it('leave what is there and how it is set up as it is, and the database open', async () => {
    const settings = ['user_version', 'application_id', 'journal_mode', 'synchronous', 'busy_timeout', 'locking_mode'];
    const before = settings.map((name) => sql().pragma(name));
    const keys = sqliteIdempotencyStore({ database });
    const attempts = sqliteAttemptStore({ database });
    await keys.claim('k', 'one', LEASE);
    await attempts.open();
    await attempts.close();
    await keys.close();

    expect(settings.map((name) => sql().pragma(name))).toEqual(before);
    expect(sql().prepare('SELECT key FROM pulsework_idempotency').all()).toMatchObject([{ key: 'k' }]);
    expect(sql().prepare('SELECT * FROM receipt').all()).toEqual([]);
  });

  it('wait for a transaction of the user on the same connection, and are not in it', async () => {
    const clock = new FakeClock();
    const keys = sqliteIdempotencyStore({ database, clock });
    const before = keys.claim('before', 'one', LEASE);
    await clock.advanceBy(1);
    await before;
    database.exec('BEGIN; INSERT INTO receipt VALUES (1)');
    const claim = keys.claim('meanwhile', 'one', LEASE);
    await clock.advanceBy(100);
    database.exec('ROLLBACK');
    await clock.advanceBy(100);

    expect(await claim).toEqual({ kind: 'claimed' });
    expect(sql().prepare('SELECT key FROM pulsework_idempotency').all()).toHaveLength(2);
    expect(sql().prepare('SELECT * FROM receipt').all()).toEqual([]);
  });

  it('are refused by name while such a transaction goes on for longer than busyTimeoutMs', async () => {
    const keys = sqliteIdempotencyStore({ database, busyTimeoutMs: 20 });
    await keys.claim('before', 'one', LEASE);
    database.exec('BEGIN');

    await expect(keys.claim('k', 'one', LEASE)).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining('a transaction of yours is open') as string,
    });
    database.exec('COMMIT');
  });
});

describe('the version of the tables', () => {
  const LATER = [
    ...TABLE_MIGRATIONS,
    'CREATE TABLE later (x); INSERT INTO later SELECT key FROM pulsework_idempotency',
  ];
  const file = (migrations: readonly string[]): SqliteFile =>
    new SqliteFile({
      name: 'sqlite',
      place: { path },
      exclusive: false,
      busyTimeoutMs: 5_000,
      clock: systemClock,
      format: tablesFormat(migrations),
    });

  it('an older one is brought up to date with all it holds, by one of several at once', async () => {
    const keys = sqliteIdempotencyStore({ path });
    await keys.claim('kept', 'one', LEASE);
    await keys.close();
    const files = Array.from({ length: 4 }, () => file(LATER));
    const [connection] = await Promise.all(files.map((each) => each.open()));

    expect(connection?.prepare('SELECT x FROM later').all()).toMatchObject([{ x: 'kept' }]);
    for (const each of files) await each.close();
  });

  it('a newer one is refused with both versions named, also by who opens it with attempts', async () => {
    const newer = file(LATER);
    await newer.open();
    await newer.close();

    const refused = {
      code: 'STORE_FORMAT_UNKNOWN',
      message: expect.stringContaining(
        `have version ${LATER.length}, this program reads up to version ${TABLE_MIGRATIONS.length}`,
      ) as string,
    };
    const keys = sqliteIdempotencyStore({ path });
    await expect(keys.claim('k', 'one', LEASE)).rejects.toMatchObject(refused);
    await expect(sqliteAttemptStore({ path }).open()).rejects.toMatchObject(refused);
    await keys.close();
  });

  it('a file of these tables is none of a metadata store', async () => {
    const keys = sqliteIdempotencyStore({ path });
    await keys.claim('k', 'one', LEASE);
    await keys.close();

    const store = sqliteMetadataStore({ path });
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_FORMAT_UNKNOWN' });
    await store.close();
  });
});

describe('idempotency keys in SQLite', () => {
  it('of two processes that claim the same 400 keys each key goes to one', async () => {
    const processes = new StoreProcesses();
    try {
      const place = { kind: 'sqlite', path } as const;
      const [one = [], other = []] = await raceForClaims(processes, place);

      expect([...one, ...other].sort((a, b) => a - b)).toEqual(everyKey);
      // Both were at it.
      expect(Math.min(one.length, other.length)).toBeGreaterThan(0);
    } finally {
      processes.end();
    }
  });

  it('go by the clock of the machine, whatever callers believe', async () => {
    const keys = sqliteIdempotencyStore({ path });
    await keys.claim('k', 'one', { nowMs: 0, leaseMs: 60_000 });

    const answer = await keys.claim('k', 'two', { nowMs: Number.MAX_SAFE_INTEGER, leaseMs: 60_000 });
    expect(answer).toMatchObject({ kind: 'busy' });
    expect((answer as { readonly remainingMs: number }).remainingMs).toBeGreaterThan(50_000);
    await keys.close();
  });

  it('are removed once they are over, but for a claim that may still be asked for', async () => {
    const keys = sqliteIdempotencyStore({ path });
    await keys.claim('ended', 'one', { nowMs: 0, leaseMs: 0 });
    for (let n = 0; n < 100; n++) {
      await keys.claim(`k${n}`, 'one', LEASE);
      await keys.record(`k${n}`, 'one', SKIPPED, { nowMs: 0, ttlMs: n < 40 ? 0 : 60_000 });
    }
    expect(await keys.renew('ended', 'one', LEASE)).toBe(true);
    await keys.close();

    const [driver] = Object.values(sqliteDrivers);
    const database = new (driver as NonNullable<typeof driver>)(path);
    expect(sqliteConnection(database).prepare('SELECT count(*) AS n FROM pulsework_idempotency').get()?.['n']).toBe(61);
    database.close();
  });

  it('check their options', () => {
    expect(() => sqliteIdempotencyStore({ paths: 'x' } as never)).toThrow(
      expect.objectContaining({
        problems: [
          'sqliteIdempotencyStore: unknown option "paths", did you mean "path"?',
          'sqliteIdempotencyStore: needs either "path", a file, or "database", an open one',
        ],
      }) as Error,
    );
    expect(() => sqliteAttemptStore({ path: ':memory:', maxRecords: 0 })).toThrow(/must be a file.*"maxRecords" must/s);
  });
});

describe('attempts in SQLite', () => {
  function storeOf(host: string, processId: number, takeOverFromOtherHosts = false): SqliteAttemptStore {
    const processes = { host, processId, isAlive: () => false };
    return new SqliteAttemptStore(
      resolveSqliteAttemptOptions({ path, takeOverFromOtherHosts }, processes, systemClock),
    );
  }

  it('are locked by a process of another host, which cannot be seen from here, unless told otherwise', async () => {
    const theirs = storeOf('there', 1);
    await theirs.open();
    await theirs.begin('k', { attempt: 2, alone: false });
    await expect(storeOf('here', 1).open()).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining('process 1 on host there') as string,
    });

    const mine = storeOf('here', 1, true);
    expect(await mine.open()).toEqual({ records: 1, suspects: 1 });
    await mine.close();
    await theirs.close();
  });

  it('of a dead process are taken over, also by one that has its number', async () => {
    const dead = storeOf('here', 1);
    await dead.open();
    await dead.begin('k', { attempt: 1, alone: true });
    // As if the table had been written by an earlier process of this number.
    const [driver] = Object.values(sqliteDrivers);
    const database = new (driver as NonNullable<typeof driver>)(path);
    database.exec(`UPDATE pulsework_attempt_holder SET token = 'earlier'`);
    database.close();

    const next = storeOf('here', 1);
    await next.open();
    expect(await next.find('k')).toEqual({ attempts: 1, notBeforeMs: undefined, suspect: true, deaths: 1 });
    await next.close();
    await dead.close();
  });
});
