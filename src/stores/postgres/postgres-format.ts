// What the schema of this library looks like inside, from version to version: how it is recognised, made and brought up to date,
// also by several processes that start at once.
import { PulseworkError } from '../../core/errors.js';
import type { PostgresQuerier } from './postgres-client.js';

/**
 * The n-th brings a schema from version n to n + 1; the first finds an empty one. Names without a schema are in it. What was
 * released is never changed: a new version is added at the end.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE idempotency (
     key text PRIMARY KEY,
     owner text NOT NULL,
     outcome text,
     until timestamptz NOT NULL
   );
   CREATE INDEX idempotency_until ON idempotency (until);
   CREATE SEQUENCE attempt_process AS integer CYCLE;
   CREATE SEQUENCE attempt_touched;
   CREATE TABLE attempt (
     key text PRIMARY KEY,
     state text NOT NULL CHECK (state IN ('open', 'alone', 'closed', 'suspect')),
     attempts bigint NOT NULL,
     deaths bigint NOT NULL,
     not_before_ms double precision,
     process integer NOT NULL,
     touched bigint NOT NULL,
     judged text
   );
   CREATE INDEX attempt_running ON attempt (process) WHERE state IN ('open', 'alone');
   CREATE INDEX attempt_touched_at ON attempt (touched);`,
  `CREATE TABLE outbox (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     topic text NOT NULL,
     ordered_by text,
     payload bytea,
     headers text NOT NULL,
     added timestamptz NOT NULL DEFAULT clock_timestamp(),
     number bigint,
     refused timestamptz,
     reason text
   );
   CREATE INDEX outbox_waiting ON outbox (id) WHERE number IS NULL AND refused IS NULL;
   CREATE UNIQUE INDEX outbox_claimed ON outbox (number) WHERE number IS NOT NULL;
   CREATE INDEX outbox_refused ON outbox (id) WHERE refused IS NOT NULL;
   CREATE TABLE outbox_relay (outbox_id uuid NOT NULL DEFAULT gen_random_uuid(), last_number bigint NOT NULL DEFAULT 0);
   INSERT INTO outbox_relay DEFAULT VALUES;`,
  `CREATE TABLE workflow (
     number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     key text NOT NULL UNIQUE,
     name text COLLATE "C" NOT NULL,
     id text COLLATE "C" NOT NULL,
     beginning text NOT NULL,
     created_ms double precision NOT NULL,
     version bigint NOT NULL,
     run bigint NOT NULL,
     run_started_ms double precision NOT NULL,
     seed text NOT NULL,
     input text,
     status text NOT NULL,
     waits text NOT NULL,
     result text,
     error text,
     ended_ms double precision,
     wake_ms double precision,
     epoch bigint NOT NULL DEFAULT 0,
     owner text,
     until_ms double precision NOT NULL DEFAULT 0,
     write_version bigint NOT NULL DEFAULT 0,
     last_epoch bigint NOT NULL DEFAULT 0,
     was_released boolean NOT NULL DEFAULT false,
     last_event bigint NOT NULL DEFAULT 0
   );
   CREATE INDEX workflow_wake ON workflow (wake_ms) WHERE wake_ms IS NOT NULL;
   CREATE INDEX workflow_created ON workflow (created_ms);
   CREATE INDEX workflow_status ON workflow (status, created_ms);
   CREATE INDEX workflow_ended ON workflow (ended_ms) WHERE ended_ms IS NOT NULL;
   CREATE TABLE workflow_attribute (
     attribute text NOT NULL,
     workflow bigint NOT NULL,
     PRIMARY KEY (attribute, workflow)
   );
   CREATE INDEX workflow_attribute_workflow ON workflow_attribute (workflow);
   CREATE TABLE workflow_entry (
     workflow bigint NOT NULL,
     seq bigint GENERATED ALWAYS AS IDENTITY,
     entry text NOT NULL,
     PRIMARY KEY (workflow, seq)
   );
   CREATE TABLE workflow_event (
     workflow bigint NOT NULL,
     seq bigint NOT NULL,
     event_id text NOT NULL,
     event text,
     PRIMARY KEY (workflow, seq),
     UNIQUE (workflow, event_id)
   );
   CREATE INDEX workflow_event_new ON workflow_event (workflow, seq) WHERE event IS NOT NULL;
   CREATE TABLE workflow_signal (
     seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     key text NOT NULL,
     event_id text NOT NULL,
     event text NOT NULL,
     until_ms double precision NOT NULL
   );
   CREATE INDEX workflow_signal_key ON workflow_signal (key);
   CREATE INDEX workflow_signal_until ON workflow_signal (until_ms);
   CREATE TABLE workflow_outgoing (
     seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     workflow bigint NOT NULL,
     key text NOT NULL,
     message_id text NOT NULL UNIQUE,
     message text NOT NULL,
     owner text,
     until_ms double precision NOT NULL DEFAULT 0
   );
   CREATE INDEX workflow_outgoing_workflow ON workflow_outgoing (workflow, seq);`,
];

/** Whoever makes it newer lets the others wait for him, not for ever. */
const LOCK_TIMEOUT = '30s';

/**
 * Makes the schema the newest, all or nothing. Of several processes one does it. A schema that is up to date needs no right to
 * change it.
 * @param client in no transaction, and used by nobody else meanwhile.
 * @param name of the store, for errors.
 * @throws PulseworkError STORE_FORMAT_UNKNOWN, and what PostgreSQL throws.
 */
export async function migrate(
  client: PostgresQuerier,
  schema: string,
  name: string,
  migrations: readonly string[] = MIGRATIONS,
): Promise<void> {
  if ((await checkedVersion(client, schema, name, migrations)) === migrations.length) return;
  // Each statement is to see what others committed while it waited.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
  try {
    await client.query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
    await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`pulsework migrations of ${schema}`]);
    const version = await checkedVersion(client, schema, name, migrations);
    if (version < migrations.length) await bringUpToDate(client, schema, version, migrations);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** As PostgreSQL writes a name that may hold anything. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

async function bringUpToDate(
  client: PostgresQuerier,
  schema: string,
  version: number,
  migrations: readonly string[],
): Promise<void> {
  const quoted = quotedName(schema);
  // Asked first: `IF NOT EXISTS` wants the right to make one also where there is one.
  const { rows } = await client.query('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [schema]);
  if (rows.length === 0) await client.query(`CREATE SCHEMA ${quoted}`);
  await client.query(`SET LOCAL search_path = ${quoted}`);
  if (version === 0)
    await client.query('CREATE TABLE format (version integer NOT NULL); INSERT INTO format VALUES (0)');
  for (const migration of migrations.slice(version)) await client.query(migration);
  await client.query('UPDATE format SET version = $1', [migrations.length]);
}

/** Looks before anything is written: a schema of somebody else stays as it is. 0 where there is nothing yet. */
async function checkedVersion(
  client: PostgresQuerier,
  schema: string,
  name: string,
  migrations: readonly string[],
): Promise<number> {
  const { rows } = await client.query(
    `SELECT relname AS name FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON relnamespace = pg_namespace.oid
     WHERE nspname = $1 AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')`,
    [schema],
  );
  if (rows.length === 0) return 0;
  if (!rows.some((row) => row['name'] === 'format'))
    throw unknownFormat(name, 'it is a schema with tables, but not one of pulsework');
  const found = await client.query(`SELECT version FROM ${quotedName(schema)}.format`);
  const version = Number(found.rows[0]?.['version']);
  if (!Number.isInteger(version)) throw unknownFormat(name, 'its table "format" is not one of pulsework');
  if (version > migrations.length)
    throw unknownFormat(name, `it has version ${version}, this program reads up to version ${migrations.length}`);
  return version;
}

function unknownFormat(name: string, rule: string): PulseworkError {
  return new PulseworkError('STORE_FORMAT_UNKNOWN', `store "${name}": ${rule}; set another "schema"`);
}
