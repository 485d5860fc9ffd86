// Entry point `pulsework/postgres`: stores in a PostgreSQL database, by the pool of the user.
import type { AttemptStore } from './ports/attempt-store.js';
import type { EffectStore } from './ports/effect-store.js';
import type { IdempotencyStore } from './ports/idempotency-store.js';
import { PostgresAttemptStore } from './stores/postgres/postgres-attempt-store.js';
import { PostgresEffectStore } from './stores/postgres/postgres-effect-store.js';
import { PostgresIdempotencyStore } from './stores/postgres/postgres-idempotency-store.js';
import { AsyncOutbox } from './runtime/outbox/outbox.js';
import type { PostgresQuerier } from './stores/postgres/postgres-client.js';
import type {
  PostgresAttemptOptions,
  PostgresOutboxOptions,
  PostgresStoreOptions,
} from './stores/postgres/postgres-options.js';
import {
  resolvePostgresAttemptOptions,
  resolvePostgresOptions,
  resolvePostgresOutboxOptions,
} from './stores/postgres/postgres-options.js';
import { PostgresOutboxStore } from './stores/postgres/postgres-outbox-store.js';
import { PostgresWorkflowStore } from './stores/postgres/postgres-workflow-store.js';
import type { WorkflowStore } from './ports/workflow-store.js';
import { systemClock } from './system/system-clock.js';

export type {
  PostgresClient,
  PostgresPool,
  PostgresQuerier,
  PostgresResult,
  PostgresRow,
} from './stores/postgres/postgres-client.js';
export type {
  PostgresAttemptOptions,
  PostgresOutboxOptions,
  PostgresStoreOptions,
} from './stores/postgres/postgres-options.js';
export type { AsyncOutbox } from './runtime/outbox/outbox.js';

/**
 * Attempts in PostgreSQL, for all processes that share the schema. They survive the death of a process at once, and that of the
 * server but for its last second. One connection of the pool is held while the store is open: who it belongs to is alive. So it must
 * lead to the server itself, or through a proxy that keeps connections (sessions) together.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function postgresAttemptStore(options: PostgresAttemptOptions): AttemptStore {
  return new PostgresAttemptStore(resolvePostgresAttemptOptions(options, systemClock));
}

/**
 * Keys and outcomes in PostgreSQL: of all processes that share the schema one at a time works on a key. Leases and times to live
 * go by the clock of the server. A claim that was given and an outcome that was recorded are on its disk.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function postgresIdempotencyStore(options: PostgresStoreOptions): IdempotencyStore {
  const { database, schema } = resolvePostgresOptions('postgresIdempotencyStore', options, systemClock);
  return new PostgresIdempotencyStore(database, schema);
}

/**
 * Messages that are written in your own transactions: `await outbox.add(client, ...)` with the client of `pg` that has one open. One
 * of the runtimes that have the outbox relays them, and holds one connection of its pool meanwhile, which must lead to the server
 * itself, or through a proxy that keeps connections (sessions) together.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function postgresOutbox(options: PostgresOutboxOptions): AsyncOutbox<PostgresQuerier> {
  const settings = resolvePostgresOutboxOptions(options, systemClock);
  return new AsyncOutbox(new PostgresOutboxStore(settings), settings.clock);
}

/**
 * Transactions for handlers with `effects({ store })`: `effects.transaction(delivery)` is a client of the pool with one open. A run
 * holds one connection until it has ended, so the pool needs as many as handlers run at once, and one for the outbox. A commit is
 * answered when it is on the disk of the server: `synchronous_commit = off` is `on` in these transactions.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function postgresEffects(options: PostgresStoreOptions): EffectStore<PostgresQuerier> {
  return new PostgresEffectStore(resolvePostgresOptions('postgresEffects', options, systemClock));
}

/**
 * Workflows in PostgreSQL, for all processes that share the schema: any of them goes on with what another one left. A call that
 * resolved is committed: it survives what `synchronous_commit` of the pool's user says, by default a crash of the server.
 * Leases go by the clocks of the processes: keep them within a second or so of each other. Clocks that differ by more cost repeated
 * steps, never a write by two. `Workflows.start` opens the store and closes it with the runtime; the pool stays open.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function postgresWorkflowStore(options: PostgresStoreOptions): WorkflowStore {
  const { database, schema } = resolvePostgresOptions('postgresWorkflowStore', options, systemClock);
  return new PostgresWorkflowStore(database, schema);
}
