// The cases that every AttemptStore must pass, on the stores that one process has for itself: in memory, in a file, in SQLite.
// test/unit/stores/attempt-store-kill.test.ts kills for real.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttemptStore } from 'pulsework';
import { fileAttemptStore } from 'pulsework/file';
import type { SqliteAttemptOptions, SqliteDatabase, SqliteDatabaseClass } from 'pulsework/sqlite';
import { AttemptMemory, memoryAttemptStore } from 'pulsework/testing';
import { describe, it } from 'vitest';
import { SqliteAttemptStore } from '../../src/stores/sqlite/sqlite-attempt-store.js';
import { resolveSqliteAttemptOptions } from '../../src/stores/sqlite/sqlite-table-options.js';
import { systemClock } from '../../src/system/system-clock.js';
import { sqliteDrivers } from '../support/metadata-places.js';
import type { AttemptMachine } from './attempt-store-cases.js';
import { attemptStoreCases, exclusiveAttemptStoreCases, runAttemptStoreCase } from './attempt-store-cases.js';

function memoryMachine(): AttemptMachine {
  const memory = new AttemptMemory();
  return {
    newStore: (maxRecords) => memoryAttemptStore({ memory, maxRecords }),
    processDies: () => memory.processDied(),
    end: async () => undefined,
  };
}

function fileMachine(): AttemptMachine {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-attempts-'));
  const stores: AttemptStore[] = [];
  let process = 0;
  const path = (): string => join(folder, `process-${process}.log`);
  return {
    newStore: (maxRecords) => {
      const store = fileAttemptStore({ path: path(), maxRecords });
      stores.push(store);
      return store;
    },
    // This process cannot die here, so the next one goes on with what the file holds at this moment.
    processDies: () => {
      const left = path();
      process += 1;
      copyFileSync(left, path());
    },
    end: async () => {
      for (const store of stores) await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** @param isGiven the user opens the database, and keeps other things there. */
function sqliteMachine(driver: SqliteDatabaseClass, isGiven: boolean): AttemptMachine {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-attempts-'));
  const path = join(folder, 'attempts.db');
  const stores: AttemptStore[] = [];
  const databases: SqliteDatabase[] = [];
  let process = 1;
  const place = (): SqliteAttemptOptions => {
    if (!isGiven) return { path, driver };
    const database = new driver(path);
    databases.push(database);
    database.exec('CREATE TABLE IF NOT EXISTS pulsework_of_mine (x)');
    return { database };
  };
  return {
    newStore: (maxRecords) => {
      const processes = { host: 'here', processId: process, isAlive: (id: number) => id === process };
      const store = new SqliteAttemptStore(
        resolveSqliteAttemptOptions({ ...place(), maxRecords, busyTimeoutMs: 100 }, processes, systemClock),
      );
      stores.push(store);
      return store;
    },
    // What it had confirmed is in the file.
    processDies: () => void (process += 1),
    end: async () => {
      for (const store of stores) await store.close();
      for (const database of databases) database.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const machines: Readonly<Record<string, () => AttemptMachine>> = {
  memory: memoryMachine,
  file: fileMachine,
  ...Object.fromEntries(
    Object.entries(sqliteDrivers).flatMap(([name, driver]) => [
      [`sqlite by ${name}`, () => sqliteMachine(driver, false)],
      [`sqlite by ${name}, in a database of the user`, () => sqliteMachine(driver, true)],
    ]),
  ),
};

describe.each(Object.entries(machines))('an attempt store (%s)', (_name, newMachine) => {
  it.each([...attemptStoreCases, ...exclusiveAttemptStoreCases])('$title', (attemptStoreCase) =>
    runAttemptStoreCase(newMachine, attemptStoreCase),
  );
});
