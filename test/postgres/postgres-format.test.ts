// What is in the schema, from version to version: made once by however many processes, and left alone where it is not ours.
import { expect } from 'vitest';
import { postgresIdempotencyStore } from 'pulsework/postgres';
import { PostgresDatabase } from '../../src/stores/postgres/postgres-database.js';
import { MIGRATIONS } from '../../src/stores/postgres/postgres-format.js';
import { systemClock } from '../../src/system/system-clock.js';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { test } from '../support/postgres/postgres-test.js';

const LATER = [...MIGRATIONS, 'CREATE TABLE later (x text); INSERT INTO later SELECT key FROM idempotency'];
const LEASE = { nowMs: 0, leaseMs: 60_000 };

function database({ pool, schema }: PostgresPlace, migrations?: readonly string[]): PostgresDatabase {
  return new PostgresDatabase({ pool, schema, clock: systemClock, migrations });
}

async function tablesIn({ pool, schema }: PostgresPlace): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1',
    [schema],
  );
  return rows.map(({ name }) => name);
}

test('of eight that start at once one makes it, and all go on', async ({ postgres }) => {
  // Each with connections of its own, as processes have them.
  const pools = Array.from({ length: 8 }, () => postgres.newPool({ max: 1 }));
  await Promise.all(pools.map((pool) => pool.query('SELECT 1')));
  const { schema } = postgres;
  const claims = pools.map((pool, at) => postgresIdempotencyStore({ pool, schema }).claim(`k${at}`, 'one', LEASE));

  expect(await Promise.all(claims)).toEqual(pools.map(() => ({ kind: 'claimed' })));
  const { rows } = await postgres.pool.query(`SELECT version FROM ${schema}.format`);
  expect(rows).toEqual([{ version: MIGRATIONS.length }]);
});

test('of eight that bring it up to date at once one does, with all it holds', async ({ postgres }) => {
  const { pool, schema } = postgres;
  await postgresIdempotencyStore({ pool, schema }).claim('kept', 'one', LEASE);
  await Promise.all(Array.from({ length: 8 }, () => database(postgres, LATER).ready()));

  expect((await pool.query(`SELECT x FROM ${schema}.later`)).rows).toEqual([{ x: 'kept' }]);
});

test('a newer one is refused with both versions named, and stays as it is', async ({ postgres }) => {
  await database(postgres, LATER).ready();
  const before = await tablesIn(postgres);

  await expect(database(postgres).ready()).rejects.toMatchObject({
    code: 'STORE_FORMAT_UNKNOWN',
    message: expect.stringContaining(
      `it has version ${LATER.length}, this program reads up to version ${MIGRATIONS.length}`,
    ) as string,
  });
  expect(await tablesIn(postgres)).toEqual(before);
});

test('a schema of somebody else is refused, and stays as it is', async ({ postgres }) => {
  const { pool, schema } = postgres;
  await pool.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.theirs (x integer)`);

  await expect(database(postgres).ready()).rejects.toMatchObject({
    code: 'STORE_FORMAT_UNKNOWN',
    message: expect.stringContaining('not one of pulsework') as string,
  });
  expect(await tablesIn(postgres)).toEqual(['theirs']);
});

test('an empty schema that was made for it is taken', async ({ postgres }) => {
  await postgres.pool.query(`CREATE SCHEMA ${postgres.schema}`);
  await database(postgres).ready();

  expect(await tablesIn(postgres)).toContain('idempotency');
});

test('a migration that fails leaves the older one, and is tried again', async ({ postgres }) => {
  await database(postgres).ready();
  const before = await tablesIn(postgres);
  const onceThereIsAKey = 'SELECT 1 / count(*) FROM idempotency';
  const failing = database(postgres, [...MIGRATIONS, `CREATE TABLE half (x integer); ${onceThereIsAKey}`]);
  await expect(failing.ready()).rejects.toMatchObject({ code: 'STORE_FAILED' });
  expect(await tablesIn(postgres)).toEqual(before);

  await postgresIdempotencyStore({ pool: postgres.pool, schema: postgres.schema }).claim('k', 'one', LEASE);
  await failing.ready();
  expect(await tablesIn(postgres)).toContain('half');
});

test('one whose process dies while it makes it leaves nothing, and the next one makes it', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const dying = await pool.connect();
  dying.on('error', () => undefined);
  await dying.query('BEGIN');
  await dying.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`pulsework migrations of ${schema}`]);
  await dying.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.format (version integer)`);
  const pid = (await dying.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
  const next = database(postgres).ready();
  const waits = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
  await expect.poll(async () => (await pool.query(waits)).rowCount).toBe(1);
  await pool.query('SELECT pg_terminate_backend($1)', [pid]);
  await next;
  dying.release(true);

  expect(await tablesIn(postgres)).toContain('idempotency');
});

test('who may use what is there need not have the right to change it', async ({ postgres }) => {
  const { pool, schema } = postgres;
  await database(postgres).ready();
  const { role, url } = await postgres.newRole();
  await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`);
  const limited = postgres.newPool({ connectionString: url });

  const store = postgresIdempotencyStore({ pool: limited, schema });
  expect(await store.claim('k', 'one', LEASE)).toEqual({ kind: 'claimed' });
});
