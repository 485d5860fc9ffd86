// The metadata store in a SQLite file: what is beyond the cases that every metadata store passes. Its file and its driver.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MetadataStore, SqliteDatabase, SqliteDatabaseClass, SqliteMetadataStoreOptions } from 'pulsework/sqlite';
import { sqliteMetadataStore } from 'pulsework/sqlite';
import { FakeClock } from 'pulsework/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteFile } from '../../../src/stores/sqlite/sqlite-file.js';
import { MIGRATIONS, fileFormat } from '../../../src/stores/sqlite/sqlite-format.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { sqliteDrivers } from '../../support/metadata-places.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const NOTHING = bytes('');

let folder: string;
let path: string;
const stores: { close(): Promise<void> }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-sqlite-'));
  path = join(folder, 'store.db');
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

function newStore(options: SqliteMetadataStoreOptions = { path }): MetadataStore {
  const store = sqliteMetadataStore({ busyTimeoutMs: 50, ...options });
  stores.push(store);
  return store;
}

async function opened(options?: SqliteMetadataStoreOptions): Promise<MetadataStore> {
  const store = newStore(options);
  await store.open();
  return store;
}

/** `Database` of libsql that runs `before` ahead of each statement given to `exec`. */
function watched(before: (sql: string) => void): SqliteDatabaseClass {
  const Database = sqliteDrivers['libsql'] as SqliteDatabaseClass;
  return class extends Database {
    override exec(sql: string): unknown {
      before(sql);
      return super.exec(sql);
    }
  };
}

/** What a driver throws. */
function sqliteFailure(code: string): Error {
  return Object.assign(new Error(`played ${code}`), { code });
}

describe.each(Object.entries(sqliteDrivers))('a metadata store in SQLite (%s)', (_name, driver) => {
  it('holds after it was closed and opened again what was put, and goes on counting', async () => {
    const first = await opened({ path, driver });
    await first.put('/a', bytes('1'), { indexes: [{ index: 'i', key: 'k' }] });
    const { path: appended, version } = await first.append('/s', bytes('2'));
    await first.delete(appended);
    await first.close();
    const second = await opened({ path, driver });

    expect(await second.scanIndex({ index: 'i' })).toMatchObject([{ path: '/a', key: 'k' }]);
    expect(await second.put('/b', NOTHING)).toBeGreaterThan(version);
    expect((await second.append('/s', NOTHING)).path > appended).toBe(true);
  });

  it('two stores of one process on a file see each other, and hear of each other', async () => {
    const [one, other] = [await opened({ path, driver, pollIntervalMs: 1 }), await opened({ path, driver })];
    let calls = 0;
    let hear: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (hear = resolve));
    await one.watch('/s', () => {
      calls += 1;
      hear();
    });
    await other.append('/t', NOTHING);
    const { path: appended } = await other.append('/s', bytes('x'));
    await heard;

    expect((await one.get(appended))?.path).toBe(appended);
    expect(calls).toBe(1);
  });

  it('is locked by who has it for itself, and free again when that is closed', async () => {
    const holder = await opened({ path, driver, exclusive: true });
    await holder.put('/a', NOTHING);
    await expect(newStore({ path, driver }).open()).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    await holder.close();

    expect(await (await opened({ path, driver, exclusive: true })).get('/a')).toBeDefined();
  });

  it('takes an open database, and leaves it open', async () => {
    const database = new driver(path);
    const store = await opened({ database });
    await store.put('/a', NOTHING);
    await store.close();
    database.exec('CREATE TABLE mine (x)');
    database.close();

    expect(existsSync(path)).toBe(true);
  });

  it('waits for another that writes, and says STORE_LOCKED when that takes too long; nothing has changed then', async () => {
    const store = await opened({ path, driver, busyTimeoutMs: 30 });
    const patient = await opened({ path, driver, busyTimeoutMs: 60_000 });
    const other = new driver(path);
    other.exec('BEGIN IMMEDIATE');
    await expect(store.put('/a', NOTHING)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    const waiting = patient.put('/b', NOTHING);
    await expect(store.put('/c', NOTHING)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    other.exec('COMMIT');
    other.close();
    await waiting;

    expect((await store.scan({})).map((entry) => entry.path)).toEqual(['/b']);
  });

  it('refuses a folder that is not there, a file that is no database, and a database of somebody else, which stays as it is', async () => {
    const missing = newStore({ path: join(folder, 'none', 'store.db'), driver });
    await expect(missing.open()).rejects.toMatchObject({ code: 'STORE_NOT_WRITABLE' });
    const garbage = join(folder, 'garbage');
    writeFileSync(garbage, 'no database at all. '.repeat(200));
    await expect(newStore({ path: garbage, driver }).open()).rejects.toMatchObject({ code: 'STORE_FORMAT_UNKNOWN' });

    const others = new driver(path);
    others.exec('CREATE TABLE theirs (x)');
    others.close();
    const before = readFileSync(path);
    await expect(newStore({ path, driver }).open()).rejects.toMatchObject({
      code: 'STORE_FORMAT_UNKNOWN',
      message: expect.stringContaining('not one of pulsework') as string,
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('a file that SQLite says is full is STORE_FULL, and everything confirmed stays', async () => {
    const database = new driver(path);
    const store = await opened({ database });
    await store.put('/a', new Uint8Array(20_000));
    const limit = database.prepare('PRAGMA max_page_count = 12') as { get(): unknown };
    limit.get();
    await expect(store.put('/b', new Uint8Array(50_000))).rejects.toMatchObject({ code: 'STORE_FULL' });
    await store.put('/c', NOTHING);

    expect((await store.scan({})).map((entry) => entry.path)).toEqual(['/a', '/c']);
    await store.close();
    database.close();
  });
});

describe('the version of a file', () => {
  const NEXT = [...MIGRATIONS, 'CREATE TABLE later (x); INSERT INTO later SELECT path FROM metadata_entry'];
  const file = (migrations: readonly string[]): SqliteFile => {
    const opening = new SqliteFile({
      name: `sqlite ${path}`,
      place: { path, driver: sqliteDrivers['libsql'] },
      exclusive: false,
      busyTimeoutMs: 50,
      clock: systemClock,
      format: fileFormat(migrations),
    });
    stores.push(opening);
    return opening;
  };

  it('an older one is brought up to date with all it holds, once', async () => {
    const old = await opened();
    await old.put('/kept', NOTHING);
    await old.close();
    for (let again = 0; again < 2; again++) {
      const connection = await file(NEXT).open();
      expect(connection.prepare('SELECT x FROM later').all()).toMatchObject([{ x: '/kept' }]);
      expect(connection.pragma('user_version')).toBe(NEXT.length);
    }
  });

  it('a newer one is refused with both versions named, and stays as it is', async () => {
    const newer = file(NEXT);
    await newer.open();
    await newer.close();

    await expect(newStore().open()).rejects.toMatchObject({
      code: 'STORE_FORMAT_UNKNOWN',
      message: expect.stringContaining(
        `it has version ${NEXT.length}, this program reads up to version ${MIGRATIONS.length}`,
      ) as string,
    });
    const again = file(NEXT);
    expect((await again.open()).pragma('user_version')).toBe(NEXT.length);
  });

  it('a file that was refused is not kept from others, also by who wanted it for itself', async () => {
    const newer = file(NEXT);
    await newer.open();
    await newer.close();
    await expect(newStore({ path, exclusive: true }).open()).rejects.toMatchObject({ code: 'STORE_FORMAT_UNKNOWN' });

    const again = file(NEXT);
    expect((await again.open()).pragma('user_version')).toBe(NEXT.length);
  });

  it('a migration that fails leaves the older one, which still opens', async () => {
    const old = await opened();
    await old.put('/kept', NOTHING);
    await old.close();
    await expect(file([...MIGRATIONS, 'CREATE TABLE half (x); NO SUCH WORD']).open()).rejects.toMatchObject({
      code: 'STORE_FAILED',
    });

    const reopened = await opened();
    expect(await reopened.get('/kept')).toBeDefined();
    const connection = await file(MIGRATIONS).open();
    expect(connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'half'").get()).toBeUndefined();
  });
});

describe('its transactions', () => {
  it('writes of one turn share one, up to 500', async () => {
    const statements: string[] = [];
    const store = await opened({ path, driver: watched((sql) => statements.push(sql)) });
    statements.length = 0;
    await Promise.all(Array.from({ length: 100 }, (_, n) => store.put(`/${n}`, NOTHING)));
    expect(statements).toEqual(['BEGIN IMMEDIATE', 'COMMIT']);

    statements.length = 0;
    await Promise.all(Array.from({ length: 501 }, (_, n) => store.put(`/${n}`, NOTHING)));
    expect(statements).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'BEGIN IMMEDIATE', 'COMMIT']);
  });

  it.each([
    ['SQLITE_FULL', 'STORE_FULL'],
    ['SQLITE_READONLY', 'STORE_NOT_WRITABLE'],
    ['SQLITE_ERROR', 'STORE_FAILED'],
    ['SQLITE_CORRUPT_VTAB', 'STORE_FORMAT_UNKNOWN'],
  ])('a commit that fails with %s fails all of its writes with %s, and none has happened', async (given, code) => {
    let failing = false;
    const driver = watched((sql) => {
      if (failing && sql === 'COMMIT') throw sqliteFailure(given);
    });
    const store = await opened({ path, driver });
    await store.put('/before', NOTHING);
    failing = true;
    const ends = await Promise.allSettled([store.put('/a', NOTHING), store.put('/b', NOTHING, { expectedVersion: 9 })]);
    failing = false;
    await store.put('/after', NOTHING);

    for (const end of ends) expect(end).toMatchObject({ status: 'rejected', reason: { code } });
    expect((await store.scan({})).map((entry) => entry.path)).toEqual(['/after', '/before']);
  });

  it('after a fault of the disk nothing is believed any more until the file is opened anew', async () => {
    let failing = false;
    const driver = watched((sql) => {
      if (failing && sql === 'COMMIT') throw sqliteFailure('SQLITE_IOERR_FSYNC');
    });
    const store = await opened({ path, driver });
    await store.put('/before', NOTHING);
    failing = true;
    await expect(store.put('/a', NOTHING)).rejects.toMatchObject({ code: 'STORE_FAILED' });
    failing = false;

    await expect(store.put('/b', NOTHING)).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await expect(store.get('/before')).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await store.close();
    expect(await (await opened()).get('/before')).toBeDefined();
  });

  it('are forced to the disk at each commit: WAL, synchronous FULL', async () => {
    const Database = sqliteDrivers['libsql'] as SqliteDatabaseClass;
    const database = new Database(path) as SqliteDatabase & { pragma(source: string): readonly object[] };
    const store = await opened({ database });

    expect(database.pragma('journal_mode')).toMatchObject([{ journal_mode: 'wal' }]);
    expect(database.pragma('synchronous')).toMatchObject([{ synchronous: 2 }]);
    await store.close();
    database.close();
  });
});

it('the file is for nobody else: its keys may name customers', async () => {
  await opened();

  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('asks for what others appended only while somebody watches, and never where nobody else can write', async () => {
  const clock = new FakeClock();
  const shared = await opened({ path, clock });
  const watch = await shared.watch('/s', () => undefined);
  expect(clock.pendingTimers).toEqual([100]);
  watch.close();
  expect(clock.pendingTimers).toEqual([]);
  await shared.close();

  const alone = await opened({ path, clock, exclusive: true });
  await alone.watch('/s', () => undefined);
  expect(clock.pendingTimers).toEqual([]);
  const appended = alone.append('/s', NOTHING);
  await clock.advanceBy(0);
  await appended;
});

it('names every problem of its options at once', () => {
  const wrong = { path: '', drivr: 1, busyTimeoutMs: -1, pollIntervalMs: 0, exclusive: 'yes', database: {} };

  expect(() => sqliteMetadataStore(wrong as unknown as SqliteMetadataStoreOptions)).toThrow(
    expect.objectContaining({
      problems: [
        expect.stringContaining('unknown option "drivr", did you mean "driver"?'),
        expect.stringContaining('"path" must be a text that is not empty'),
        expect.stringContaining('"busyTimeoutMs"'),
        expect.stringContaining('needs either "path", a file, or "database"'),
        expect.stringContaining('"database" must be an open database'),
        expect.stringContaining('"exclusive" must be true or false'),
        expect.stringContaining('"pollIntervalMs"'),
      ] as string[],
    }) as Error,
  );
  expect(() => sqliteMetadataStore({ path: ':memory:' })).toThrow(/"path" must be a file/);
  expect(() => sqliteMetadataStore({})).toThrow(/needs either "path"/);
});
