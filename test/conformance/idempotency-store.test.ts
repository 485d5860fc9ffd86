// The cases that every IdempotencyStore must pass, on the stores that need no server: in memory and in SQLite.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IdempotencyStore } from 'pulsework';
import { memoryIdempotencyStore } from 'pulsework';
import type { SqliteDatabase, SqliteDatabaseClass } from 'pulsework/sqlite';
import { describe, it } from 'vitest';
import { SqliteIdempotencyKeys } from '../../src/stores/sqlite/sqlite-idempotency-store.js';
import { resolveSqliteTableOptions } from '../../src/stores/sqlite/sqlite-table-options.js';
import { systemClock } from '../../src/system/system-clock.js';
import { sqliteDrivers } from '../support/metadata-places.js';
import { idempotencyStoreCases } from './idempotency-store-cases.js';

interface Place {
  readonly store: IdempotencyStore;
  end(): Promise<void> | void;
}

/** Its clock is a row, set to the time of each call. */
function storeWithClock(store: IdempotencyStore, database: SqliteDatabase): IdempotencyStore {
  database.exec('CREATE TABLE clock (now INTEGER); INSERT INTO clock VALUES (0)');
  const moveTo = ({ nowMs }: { readonly nowMs: number }) => database.exec(`UPDATE clock SET now = ${nowMs}`);
  return {
    name: store.name,
    claim: (key, owner, times) => (moveTo(times), store.claim(key, owner, times)),
    renew: (key, owner, times) => (moveTo(times), store.renew(key, owner, times)),
    record: (key, owner, outcome, times) => (moveTo(times), store.record(key, owner, outcome, times)),
    release: (key, owner) => store.release(key, owner),
  };
}

/** @param isGiven the user opens the database, and keeps other things there. */
function sqlitePlace(driver: SqliteDatabaseClass, isGiven: boolean): Place {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-idempotency-'));
  const path = join(folder, 'keys.db');
  const database = new driver(path);
  const options = resolveSqliteTableOptions('test', isGiven ? { database } : { path, driver }, systemClock);
  const store = new SqliteIdempotencyKeys(options, '(SELECT now FROM clock)');
  return {
    store: storeWithClock(store, database),
    end: async () => {
      await store.close();
      database.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const places: Readonly<Record<string, () => Place>> = {
  memory: () => ({ store: memoryIdempotencyStore(), end: () => undefined }),
  ...Object.fromEntries(
    Object.entries(sqliteDrivers).flatMap(([name, driver]) => [
      [`sqlite by ${name}`, () => sqlitePlace(driver, false)],
      [`sqlite by ${name}, in a database of the user`, () => sqlitePlace(driver, true)],
    ]),
  ),
};

describe.each(Object.entries(places))('an idempotency store (%s)', (_name, newPlace) => {
  it.each(idempotencyStoreCases)('$title', async ({ run }) => {
    const place = newPlace();
    try {
      await run(place.store);
    } finally {
      await place.end();
    }
  });
});
