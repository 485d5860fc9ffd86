// Effects in PostgreSQL where the connection fails at an end of the transaction, and with settings that promise less than they do.
import { postgresEffects, postgresOutbox } from 'pulsework/postgres';
import type { PostgresClient, PostgresQuerier } from 'pulsework/postgres';
import { FakeClock } from 'pulsework/testing';
import type pg from 'pg';
import { describe, expect, onTestFinished } from 'vitest';
import type { EffectStore, RecordedOutcome } from '../../src/index.js';
import { FaultyProxy } from '../support/real-pulsar/faulty-proxy.js';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { test } from '../support/postgres/postgres-test.js';

const DONE: RecordedOutcome = { version: 1, kind: 'success', messages: [] };
const TIMES = { ttlMs: 60_000, waitMs: 5_000 };

async function beginIn(store: EffectStore<PostgresQuerier>, key = 'k') {
  const answer = await store.begin(key, TIMES);
  if (answer.kind !== 'begun') throw new Error(answer.kind);
  return answer.transaction;
}

/** A store whose connections go through a proxy, by a clock that the test moves. */
async function proxied(postgres: PostgresPlace) {
  const url = new URL(postgres.url);
  const proxy = await FaultyProxy.start({ targetPort: Number(url.port) });
  onTestFinished(() => proxy.close());
  url.port = String(proxy.port);
  const pool = postgres.newPool({ connectionString: url.href });
  const clock = new FakeClock();
  const store = postgresEffects({ pool, schema: postgres.schema, clock });
  await store.open();
  return { proxy, pool, clock, store };
}

describe('a server that says nothing any more', () => {
  test('is not waited for with a rollback, and the pool does not get its connection back', async ({ postgres }) => {
    const { proxy, pool, clock, store } = await proxied(postgres);
    const transaction = await beginIn(store);
    proxy.freeze();
    const rolledBack = transaction.rollback();
    await clock.advanceBy(5_000);
    await rolledBack;
    expect(pool.totalCount).toBe(0);
    proxy.heal();
    // The server hears that the connection is gone, and rolls back.
    await (await beginIn(store)).rollback();
  });

  test('is waited for with a begin as long as another transaction may take, and no longer', async ({ postgres }) => {
    const { proxy, pool, clock, store } = await proxied(postgres);
    await (await beginIn(store)).rollback();
    proxy.freeze();
    const beginning = store.begin('k', TIMES);
    const rejected = expect(beginning).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    await clock.advanceUntil(() => pool.totalCount === 0, { maxMs: 20_000 });
    await rejected;
    expect(clock.now() - new FakeClock().now()).toBeGreaterThanOrEqual(10_000);
  });
});

test('a connection that is lost before the commit was asked for: nothing is done, and that is known', async ({
  postgres,
}) => {
  const { proxy, pool, store } = await proxied(postgres);
  const transaction = await beginIn(store);
  proxy.reset();
  await expect(transaction.commit(DONE)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
  await transaction.rollback();
  expect(pool.totalCount).toBe(0);
});

/** A store of which COMMIT is sent by `commit`. */
async function committedBy(postgres: PostgresPlace, commit: (client: PostgresClient) => Promise<never>) {
  const { pool, schema } = postgres;
  await postgresEffects({ pool, schema }).open();
  return postgresEffects({
    schema,
    pool: {
      query: (text, values) => pool.query(text, values),
      connect: async () => {
        const client: PostgresClient = await pool.connect();
        const query: PostgresClient['query'] = (text, values) =>
          text === 'COMMIT' ? commit(client) : client.query(text, values);
        return new Proxy(client, {
          get: (_target, name) => {
            if (name === 'query') return query;
            const value: unknown = Reflect.get(client, name);
            return typeof value === 'function' ? (value.bind(client) as unknown) : value;
          },
        });
      },
    },
  });
}

test('a commit whose answer is lost is told as such, and a repeat finds it done', async ({ postgres }) => {
  const store = await committedBy(postgres, async (client) => {
    await client.query('COMMIT');
    throw new Error('Connection terminated unexpectedly');
  });
  const transaction = await beginIn(store);
  await expect(transaction.commit(DONE)).rejects.toMatchObject({ code: 'STORE_COMMIT_UNKNOWN' });
  await transaction.rollback();
  expect(await store.begin('k', TIMES)).toEqual({ kind: 'recorded', outcome: DONE });
});

test('a commit that the server ends is unknown, and a repeat finds out', async ({ postgres }) => {
  const store = await committedBy(postgres, async (client) => {
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
    await postgres.pool.query('SELECT pg_terminate_backend($1, 5000)', [rows[0]?.['pid']]);
    await client.query('COMMIT');
    throw new Error('it must not be committed');
  });
  const transaction = await beginIn(store);
  await expect(transaction.commit(DONE)).rejects.toMatchObject({ code: 'STORE_COMMIT_UNKNOWN' });
  await transaction.rollback();
  await (await beginIn(store)).rollback();
});

test('a commit without an answer is given up at once, with its connection', async ({ postgres }) => {
  const store = await committedBy(postgres, () => new Promise(() => undefined));
  const before = postgres.pool.totalCount;
  const transaction = await beginIn(store);
  void transaction.commit(DONE).catch(() => undefined);
  // Behind its record, which is written by then.
  await transaction.tx.query('SELECT 1');
  await transaction.rollback();
  expect(postgres.pool.totalCount).toBe(before - 1);
});

test('a commit that the database refuses is known to have failed', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const store = postgresEffects({ pool, schema });
  await store.open();
  await pool.query(`CREATE TABLE ${schema}.line (line text UNIQUE DEFERRABLE INITIALLY DEFERRED)`);
  const transaction = await beginIn(store);
  await transaction.tx.query(`INSERT INTO ${schema}.line VALUES ('a'), ('a')`);
  await expect(transaction.commit(DONE)).rejects.toMatchObject({ code: 'STORE_FAILED' });
  await transaction.rollback();
});

async function setting(client: PostgresQuerier, name: string): Promise<unknown> {
  const { rows } = await client.query('SELECT current_setting($1) AS is', [name]);
  return rows[0]?.['is'];
}

/** One connection, with settings that are lost with it. */
async function poolWith(postgres: PostgresPlace, set: string): Promise<pg.Pool> {
  const pool = postgres.newPool({ max: 1 });
  await pool.query(set);
  return pool;
}

describe('the settings of a connection', () => {
  test('that answer commits before they are on the disk are not for effects', async ({ postgres }) => {
    const { schema } = postgres;
    const pool = await poolWith(postgres, 'SET synchronous_commit = off');
    const store = postgresEffects({ pool, schema });
    await store.open();
    const transaction = await beginIn(store);
    expect(await setting(transaction.tx, 'synchronous_commit')).toBe('on');
    const { rows } = await transaction.tx.query('SELECT pg_current_wal_insert_lsn()::text AS place');
    await transaction.commit(DONE);
    const flushed = await postgres.pool.query('SELECT pg_current_wal_flush_lsn() > $1::pg_lsn AS is', [
      rows[0]?.['place'],
    ]);
    expect(flushed.rows).toEqual([{ is: true }]);
    expect(await setting(pool, 'synchronous_commit')).toBe('off');
  });

  for (const more of ['local', 'remote_write', 'remote_apply'])
    test(`that force commits to the disk in another way stay: ${more}`, async ({ postgres }) => {
      const { schema } = postgres;
      const pool = await poolWith(postgres, `SET synchronous_commit = ${more}`);
      const store = postgresEffects({ pool, schema });
      await store.open();
      const transaction = await beginIn(store);
      expect(await setting(transaction.tx, 'synchronous_commit')).toBe(more);
      await transaction.rollback();
    });

  test('say how long the statements of a handler wait for locks', async ({ postgres }) => {
    const { schema } = postgres;
    const pool = await poolWith(postgres, `SET lock_timeout = '777ms'`);
    const store = postgresEffects({ pool, schema });
    await store.open();
    const transaction = await beginIn(store);
    expect(await setting(transaction.tx, 'lock_timeout')).toBe('777ms');
    await transaction.rollback();
    expect(await setting(pool, 'lock_timeout')).toBe('777ms');
  });

  test('are not for the relay of an outbox either: what it claims is on the disk before it is sent', async ({
    postgres,
  }) => {
    const { schema } = postgres;
    const pool = await poolWith(postgres, 'SET synchronous_commit = off');
    let leader: PostgresClient | undefined;
    const outbox = postgresOutbox({
      schema,
      pool: {
        query: (text, values) => postgres.pool.query(text, values),
        connect: async () => (leader = await pool.connect()),
      },
    });
    await outbox.open();
    const lead = await outbox.store.lead();
    expect(await setting(leader as PostgresClient, 'synchronous_commit')).toBe('on');
    await lead?.end();
  });
});
