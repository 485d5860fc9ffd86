// The cases that every EffectStore must pass, on the stores that need no server: in memory and in SQLite.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryOutbox } from 'pulsework/testing';
import { sqliteEffects } from 'pulsework/sqlite';
import type { SqliteDatabase, SqliteDatabaseClass } from 'pulsework/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sqliteConnection } from '../../src/stores/sqlite/sqlite-driver.js';
import type { MemoryOutboxTransaction } from '../../src/stores/memory/memory-outbox-store.js';
import { sqliteDrivers } from '../support/metadata-places.js';
import type { EffectPlace } from './effect-store-cases.js';
import { EFFECT_STORE_CASES } from './effect-store-cases.js';

async function memoryPlace(): Promise<EffectPlace> {
  const lines: string[] = [];
  return {
    store: memoryOutbox().effects(),
    write: async (tx, line) => (tx as MemoryOutboxTransaction).onCommit(() => lines.push(line)),
    read: async () => lines,
  };
}

async function sqlitePlace(driver: SqliteDatabaseClass): Promise<EffectPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-effects-'));
  const database: SqliteDatabase = new driver(join(folder, 'service.db'));
  onTestFinished(() => {
    database.close();
    rmSync(folder, { recursive: true });
  });
  database.exec('CREATE TABLE line (line TEXT)');
  const connection = sqliteConnection(database);
  const store = sqliteEffects({ database });
  await store.open();
  return {
    store,
    write: async (_tx, line) => void connection.prepare('INSERT INTO line VALUES (?)').run(line),
    read: async () =>
      connection
        .prepare('SELECT line FROM line')
        .all()
        .map((row) => String(row['line'])),
  };
}

const places: Readonly<Record<string, () => Promise<EffectPlace>>> = {
  memory: memoryPlace,
  ...Object.fromEntries(
    Object.entries(sqliteDrivers).map(([name, driver]) => [`sqlite by ${name}`, () => sqlitePlace(driver)]),
  ),
};

describe.each(Object.entries(places))('an effect store (%s)', (name, newPlace) => {
  it.each(EFFECT_STORE_CASES)('$name', async ({ run }) => run(await newPlace()));

  it('says so where the handler has rolled back by itself', async ({ skip }) => {
    skip(name === 'memory', 'a transaction in memory has no statements with which to end it');
    const { store } = await newPlace();
    const answer = await store.begin('k', { ttlMs: 60_000, waitMs: 1_000 });
    if (answer.kind !== 'begun') expect.unreachable();
    else {
      (answer.transaction.tx as SqliteDatabase).exec('ROLLBACK');
      const committing = answer.transaction.commit({ version: 1, kind: 'success', messages: [] });
      await expect(committing).rejects.toMatchObject({ code: 'STORE_FAILED' });
      await answer.transaction.rollback();
    }
  });
});
