// Entry point `pulsework/sqlite`: stores in SQLite files, by a driver that the user has or brings.
import type { MetadataStore } from './ports/metadata-store.js';
import type { SqliteMetadataStoreOptions } from './stores/sqlite/sqlite-options.js';
import { resolveSqliteMetadataStoreOptions } from './stores/sqlite/sqlite-options.js';
import { SqliteMetadataStore } from './stores/sqlite/sqlite-metadata-store.js';
import { systemClock } from './system/system-clock.js';

export { NO_ENTRY } from './core/metadata-rules.js';
export type { SqliteDatabase, SqliteDatabaseClass } from './stores/sqlite/sqlite-driver.js';
export type { SqliteMetadataStoreOptions } from './stores/sqlite/sqlite-options.js';
export type {
  IndexedEntry,
  IndexKey,
  IndexRange,
  MetadataEntry,
  MetadataStore,
  PathRange,
  PutOptions,
  SequenceWatch,
} from './ports/metadata-store.js';

/**
 * Metadata in a SQLite file. A call that resolved survives the process and the machine: it was forced to the disk. Several
 * processes of one machine may use the file, unless one has it by `exclusive`. Open it before the first use.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function sqliteMetadataStore(options: SqliteMetadataStoreOptions): MetadataStore {
  return new SqliteMetadataStore(resolveSqliteMetadataStoreOptions(options, systemClock));
}
