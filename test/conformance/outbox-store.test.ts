// The cases that every OutboxStore must pass, on the stores that need no server: in memory and in SQLite.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from 'pulsework';
import type { SqliteDatabase, SqliteDatabaseClass } from 'pulsework/sqlite';
import { describe, it, onTestFinished } from 'vitest';
import type { OutboxStore } from '../../src/ports/outbox-store.js';
import { MemoryOutboxStore } from '../../src/stores/memory/memory-outbox-store.js';
import { SqliteOutboxStore } from '../../src/stores/sqlite/sqlite-outbox-store.js';
import { resolveSqliteUserDatabaseOptions } from '../../src/stores/sqlite/sqlite-table-options.js';
import { sqliteDrivers } from '../support/metadata-places.js';
import type { OutboxPlace } from './outbox-store-cases.js';
import { OUTBOX_STORE_CASES } from './outbox-store-cases.js';

function memoryPlace(): OutboxPlace {
  const store = new MemoryOutboxStore(systemClock);
  return {
    store: store as OutboxStore<unknown>,
    hasConcurrentTransactions: true,
    begin: async () => {
      const tx = store.begin();
      return { tx, commit: async () => tx.commit(), rollback: async () => tx.rollback() };
    },
    leaderDies: async () => store.leaderDies(),
  };
}

async function sqlitePlace(driver: SqliteDatabaseClass): Promise<OutboxPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-outbox-'));
  const database: SqliteDatabase = new driver(join(folder, 'service.db'));
  onTestFinished(() => {
    database.close();
    rmSync(folder, { recursive: true });
  });
  const dead = new Set<number>();
  const processes = { host: 'here', processId: 1, isAlive: (id: number) => !dead.has(id) };
  const settings = resolveSqliteUserDatabaseOptions('test', { database }, systemClock);
  const store = new SqliteOutboxStore({ ...settings, processes });
  await store.open();
  return {
    store: store as OutboxStore<unknown>,
    hasConcurrentTransactions: false,
    begin: async () => {
      database.exec('BEGIN');
      return {
        tx: database,
        commit: async () => void database.exec('COMMIT'),
        rollback: async () => void database.exec('ROLLBACK'),
      };
    },
    leaderDies: async () => {
      dead.add(processes.processId);
      processes.processId += 1;
    },
  };
}

const places: Readonly<Record<string, () => OutboxPlace | Promise<OutboxPlace>>> = {
  memory: memoryPlace,
  ...Object.fromEntries(
    Object.entries(sqliteDrivers).map(([name, driver]) => [`sqlite by ${name}`, () => sqlitePlace(driver)]),
  ),
};

describe.each(Object.entries(places))('an outbox store (%s)', (name, newPlace) => {
  // Transactions of one connection cannot be open side by side, and SQLite commits writers one after the other.
  const cases = OUTBOX_STORE_CASES.filter(
    ({ needsConcurrentTransactions }) => needsConcurrentTransactions !== true || name === 'memory',
  );
  it.each(cases)('$name', async ({ run }) => run(await newPlace()));
});
