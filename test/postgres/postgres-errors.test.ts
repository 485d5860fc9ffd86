// What fails has a name, and no secret in it.
import { inspect } from 'node:util';
import { postgresAttemptStore, postgresIdempotencyStore } from 'pulsework/postgres';
import type { PostgresPool } from 'pulsework/postgres';
import { expect } from 'vitest';
import { PostgresDatabase } from '../../src/stores/postgres/postgres-database.js';
import { systemClock } from '../../src/system/system-clock.js';
import { test } from '../support/postgres/postgres-test.js';

const LEASE = { nowMs: 0, leaseMs: 60_000 };

function containing(...words: readonly string[]): string {
  return expect.stringMatching(new RegExp(words.join('.*'), 's')) as string;
}

test('a server that is not there', async ({ postgres }) => {
  const url = new URL(postgres.url);
  url.port = '1';
  const store = postgresIdempotencyStore({ pool: postgres.newPool({ connectionString: url.href }) });

  const failure = await store.claim('k', 'one', LEASE).catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: 'STORE_UNREACHABLE',
    message: containing('postgres pulsework', 'ECONNREFUSED'),
  });
  expect(inspect(failure, { depth: 10 })).not.toContain(url.password);
});

test('a user whom the server does not know', async ({ postgres }) => {
  const url = new URL(postgres.url);
  url.password = 'guessed-wrong';
  const store = postgresIdempotencyStore({ pool: postgres.newPool({ connectionString: url.href }) });

  const failure = await store.claim('k', 'one', LEASE).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'STORE_UNREACHABLE', message: containing('password authentication failed') });
  expect(inspect(failure, { depth: 10 })).not.toContain('guessed-wrong');
});

test('what a driver repeats of how it connects is left out, of the cause too', async () => {
  const told = [
    'cannot parse postgres://me:secret@host/db now',
    'POSTGRESQL://me:secret@host/db',
    'host=db password=secret user=me',
  ];
  for (const message of told) {
    const connect = (): Promise<never> => Promise.reject(Object.assign(new Error(message), { input: message }));
    const store = postgresIdempotencyStore({ pool: { connect, query: connect } });

    const failure = await store.claim('k', 'one', LEASE).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'STORE_UNREACHABLE', message: containing('\\[redacted\\]') });
    expect(inspect(failure, { depth: 10, showHidden: true })).not.toContain('secret');
  }
});

test('a connection that is lost before the answer, and the next call has another one', async ({ postgres }) => {
  const { schema } = postgres;
  const pool = postgres.newPool({ application_name: schema });
  const store = postgresIdempotencyStore({ pool, schema });
  await store.claim('k', 'one', LEASE);
  const locking = await postgres.pool.connect();
  await locking.query(`BEGIN; LOCK TABLE ${schema}.idempotency`);
  const claim = store.claim('k', 'two', LEASE).catch((error: unknown) => error);
  const waits = 'SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = $2';
  await expect.poll(async () => (await postgres.pool.query(waits, [schema, 'Lock'])).rowCount).toBe(1);
  await postgres.pool.query(`SELECT pg_terminate_backend(pid) FROM (${waits}) AS waiting`, [schema, 'Lock']);

  expect(await claim).toMatchObject({ code: 'STORE_UNREACHABLE', message: containing('claiming a key failed') });
  await locking.query('ROLLBACK');
  locking.release();
  expect(await store.claim('k', 'two', LEASE)).toMatchObject({ kind: 'busy' });
});

test('a pool whose connections are all in use', async ({ postgres }) => {
  const pool = postgres.newPool({ max: 1 });
  const holder = await pool.connect();
  // From now on: to connect takes longer on a busy machine.
  pool.options.connectionTimeoutMillis = 50;
  const store = postgresIdempotencyStore({ pool, schema: postgres.schema });

  await expect(store.claim('k', 'one', LEASE)).rejects.toMatchObject({
    code: 'STORE_UNREACHABLE',
    message: containing('raise "max" of the pool'),
  });
  holder.release();
  expect(await store.claim('k', 'one', LEASE)).toEqual({ kind: 'claimed' });
});

test('a user who may neither make nor change anything', async ({ postgres }) => {
  const { role, url } = await postgres.newRole();
  const { pool, schema } = postgres;
  const limited = postgres.newPool({ connectionString: url });
  const store = postgresIdempotencyStore({ pool: limited, schema });
  const refused = {
    code: 'STORE_NOT_WRITABLE',
    message: containing('permission denied', 'the user of the pool needs'),
  };
  await expect(store.claim('k', 'one', LEASE)).rejects.toMatchObject(refused);

  await postgresIdempotencyStore({ pool, schema }).claim('k', 'one', LEASE);
  await pool.query(
    `GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
  );
  await expect(store.claim('k', 'two', LEASE)).rejects.toMatchObject(refused);
  await expect(postgresAttemptStore({ pool: limited, schema }).open()).rejects.toMatchObject(refused);
});

test('a database that is read only', async ({ postgres }) => {
  const pool = postgres.newPool({ options: '-c default_transaction_read_only=on' });
  const { schema } = postgres;
  await postgresIdempotencyStore({ pool: postgres.pool, schema }).claim('k', 'one', LEASE);

  await expect(postgresIdempotencyStore({ pool, schema }).claim('k', 'two', LEASE)).rejects.toMatchObject({
    code: 'STORE_NOT_WRITABLE',
    message: containing('read-only'),
  });
});

test('a statement that always comes between others is given up, and told how often it was tried', async ({
  postgres,
}) => {
  const { pool, schema } = postgres;
  const database = new PostgresDatabase({ pool, schema, clock: systemClock });
  let tries = 0;
  const conflict = database.transaction('counting', async (client) => {
    tries += 1;
    await client.query(`DO $$ BEGIN RAISE EXCEPTION 'played' USING ERRCODE = 'serialization_failure'; END $$`);
  });

  await expect(conflict).rejects.toMatchObject({
    code: 'STORE_FAILED',
    message: containing('counting failed 5 times with played'),
  });
  expect(tries).toBe(5);
});

test('a transaction that comes between others twice is done at the third time, and once', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const database = new PostgresDatabase({ pool, schema, clock: systemClock });
  let tries = 0;
  const done = await database.transaction('counting', async (client) => {
    tries += 1;
    await client.query(`INSERT INTO ${schema}.idempotency VALUES ('k', 'o', NULL, now())`);
    const state = tries === 1 ? 'serialization_failure' : 'deadlock_detected';
    if (tries < 3) await client.query(`DO $$ BEGIN RAISE EXCEPTION 'played' USING ERRCODE = '${state}'; END $$`);
    return tries;
  });

  expect(done).toBe(3);
  expect((await pool.query(`SELECT key FROM ${schema}.idempotency`)).rows).toEqual([{ key: 'k' }]);
});

test('a pool that was ended', async ({ postgres }) => {
  const pool = postgres.newPool();
  const store = postgresIdempotencyStore({ pool, schema: postgres.schema });
  await store.claim('k', 'one', LEASE);
  await pool.end();

  await expect(store.claim('k', 'two', LEASE)).rejects.toMatchObject({
    code: 'STORE_UNREACHABLE',
    message: containing('after calling end on the pool'),
  });
});

test('options are checked, all at once', () => {
  const wrong = { pool: {} as PostgresPool, schema: 'x'.repeat(64), clocks: 1 };

  expect(() => postgresIdempotencyStore(wrong)).toThrow(
    expect.objectContaining({
      problems: [
        'postgresIdempotencyStore: unknown option "clocks", did you mean "clock"?',
        'postgresIdempotencyStore: "pool" must have the methods connect, query (a Pool of pg), got an object',
        'postgresIdempotencyStore: "schema" must be a name of at most 63 bytes without NUL',
      ],
    }) as Error,
  );
  expect(() => postgresAttemptStore({ maxRecords: 0 } as never)).toThrow(/"pool" is missing.*"maxRecords" must be/s);
});
