// Entry point `pulsework/sqlite`: stores in SQLite files, by a driver that the user has or brings.
import type { AttemptStore } from './ports/attempt-store.js';
import type { DurableBrokerStore } from './ports/broker-store.js';
import type { EffectStore } from './ports/effect-store.js';
import type { MetadataStore } from './ports/metadata-store.js';
import { SqliteAttemptStore } from './stores/sqlite/sqlite-attempt-store.js';
import type { SqliteStoreOptions } from './stores/sqlite/sqlite-broker-options.js';
import { resolveSqliteStoreOptions } from './stores/sqlite/sqlite-broker-options.js';
import { SqliteBrokerStore } from './stores/sqlite/sqlite-broker-store.js';
import { SqliteEffectStore } from './stores/sqlite/sqlite-effect-store.js';
import type { SqliteIdempotencyStore } from './stores/sqlite/sqlite-idempotency-store.js';
import { SqliteIdempotencyKeys } from './stores/sqlite/sqlite-idempotency-store.js';
import type { SqliteMetadataStoreOptions } from './stores/sqlite/sqlite-options.js';
import { resolveSqliteMetadataStoreOptions } from './stores/sqlite/sqlite-options.js';
import { SqliteOutboxStore } from './stores/sqlite/sqlite-outbox-store.js';
import { SqliteMetadataStore } from './stores/sqlite/sqlite-metadata-store.js';
import type { SqliteDatabase } from './stores/sqlite/sqlite-driver.js';
import type {
  SqliteAttemptOptions,
  SqliteUserDatabaseOptions,
  SqliteTableOptions,
} from './stores/sqlite/sqlite-table-options.js';
import {
  resolveSqliteAttemptOptions,
  resolveSqliteUserDatabaseOptions,
  resolveSqliteTableOptions,
} from './stores/sqlite/sqlite-table-options.js';
import { SqliteWorkflowStore } from './stores/sqlite/sqlite-workflow-store.js';
import type { WorkflowStore } from './ports/workflow-store.js';
import { SyncOutbox } from './runtime/outbox/outbox.js';
import { systemProcessTable } from './system/process-table.js';
import { systemClock } from './system/system-clock.js';

export { NO_ENTRY } from './core/metadata-rules.js';
export type { SqliteStoreOptions } from './stores/sqlite/sqlite-broker-options.js';
export type { SqliteDatabase, SqliteDatabaseClass } from './stores/sqlite/sqlite-driver.js';
export type { SqliteIdempotencyStore } from './stores/sqlite/sqlite-idempotency-store.js';
export type { SqliteMetadataStoreOptions } from './stores/sqlite/sqlite-options.js';
export type {
  SqliteAttemptOptions,
  SqliteUserDatabaseOptions,
  SqliteTableOptions,
} from './stores/sqlite/sqlite-table-options.js';
export type { SyncOutbox } from './runtime/outbox/outbox.js';
export type {
  BrokerChange,
  DurableBrokerStore,
  StoredBroker,
  StoredEntry,
  StoredLedger,
  StoredSubscription,
  StoredTopic,
} from './ports/broker-store.js';
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

/**
 * The topics of an embedded broker in one SQLite file of a folder: `embedded({ store: sqliteStore({ dir }) })`. A receipt of a
 * publish or of an acknowledgement means that it was forced to the disk. The folder is for one process at a time: another
 * one is refused with STORE_LOCKED, and the lock goes with the process, however that ends.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function sqliteStore(options: SqliteStoreOptions): DurableBrokerStore {
  return new SqliteBrokerStore(resolveSqliteStoreOptions(options, systemClock));
}

/**
 * Attempts in a SQLite file or in a database of yours, for one process at a time. With `path` they survive the death of this
 * process, not that of the machine; with `database` what its settings say. In one thread of a process only.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function sqliteAttemptStore(options: SqliteAttemptOptions): AttemptStore {
  return new SqliteAttemptStore(resolveSqliteAttemptOptions(options, systemProcessTable, systemClock));
}

/**
 * Keys and outcomes in a SQLite file or in a database of yours, for all processes of this machine that open it. With `path` a
 * claim that was given and an outcome that was recorded are on the disk; with `database` what its settings say. Opened with the first
 * call.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function sqliteIdempotencyStore(options: SqliteTableOptions): SqliteIdempotencyStore {
  return new SqliteIdempotencyKeys(resolveSqliteTableOptions('sqliteIdempotencyStore', options, systemClock));
}

/**
 * Messages that are written in your own transactions: `outbox.add(database, ...)` between BEGIN and COMMIT, or inside
 * `database.transaction(() => ...)`. One of the runtimes of this machine that have the outbox relays them.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function sqliteOutbox(options: SqliteUserDatabaseOptions): SyncOutbox<SqliteDatabase> {
  const settings = resolveSqliteUserDatabaseOptions('sqliteOutbox', options, systemClock);
  const store = new SqliteOutboxStore({ ...settings, processes: systemProcessTable });
  return new SyncOutbox(store, settings.clock);
}

/**
 * Transactions for handlers with `effects({ store })`: `effects.transaction(delivery)` is the database, with one open. Runs take turns,
 * each from its begin to its end. The connection is for these handlers alone: whatever else is written on it meanwhile is part of
 * the transaction, and what is written by others waits for its end. A commit is answered when it is on the disk.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function sqliteEffects(options: SqliteUserDatabaseOptions): EffectStore<SqliteDatabase> {
  const settings = resolveSqliteUserDatabaseOptions('sqliteEffects', options, systemClock);
  return new SqliteEffectStore({ ...settings, place: options.database });
}

/**
 * Workflows in a SQLite file or in a database of yours, for all processes of this machine that open it: they survive crashes and
 * restarts. With `path` a call that resolved was forced to the disk; with `database` what its settings say. `Workflows.start` opens
 * it, and closes it with the runtime: make one for each.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function sqliteWorkflowStore(options: SqliteTableOptions): WorkflowStore {
  return new SqliteWorkflowStore(resolveSqliteTableOptions('sqliteWorkflowStore', options, systemClock));
}
