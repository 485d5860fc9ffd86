// Where the tests of metadata stores keep them: in memory, and in SQLite files by each driver that this Node can load.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MetadataStore, SqliteDatabaseClass } from 'pulsework/sqlite';
import { sqliteMetadataStore } from 'pulsework/sqlite';
import { memoryMetadataStore } from 'pulsework/testing';

const load = createRequire(import.meta.url);

export const sqliteDrivers: Readonly<Record<string, SqliteDatabaseClass>> = {
  libsql: load('libsql') as SqliteDatabaseClass,
  // From Node 22.13 on.
  ...(isBuiltin('node:sqlite') && {
    'node:sqlite': (load('node:sqlite') as { readonly DatabaseSync: SqliteDatabaseClass }).DatabaseSync,
  }),
};

export interface MetadataPlace {
  newStore(): MetadataStore;
  /** Removes what is on the disk. */
  end(): void;
}

export const metadataPlaces: Readonly<Record<string, () => MetadataPlace>> = {
  memory: () => ({ newStore: memoryMetadataStore, end: () => undefined }),
  ...Object.fromEntries(
    Object.entries(sqliteDrivers).flatMap(([name, driver]) => [
      [`sqlite by ${name}`, () => sqlitePlace(driver, false)],
      [`sqlite by ${name}, exclusive`, () => sqlitePlace(driver, true)],
    ]),
  ),
};

function sqlitePlace(driver: SqliteDatabaseClass, exclusive: boolean): MetadataPlace {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-metadata-'));
  return {
    newStore: () => sqliteMetadataStore({ path: join(folder, 'store.db'), driver, exclusive }),
    end: () => rmSync(folder, { recursive: true }),
  };
}
