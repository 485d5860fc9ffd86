// Effects in PostgreSQL: the cases of all stores, and what only it has.
import { postgresEffects, postgresIdempotencyStore } from 'pulsework/postgres';
import type { PostgresQuerier } from 'pulsework/postgres';
import { describe, expect } from 'vitest';
import type { RecordedOutcome } from '../../src/index.js';
import { EFFECT_STORE_CASES } from '../conformance/effect-store-cases.js';
import type { EffectPlace } from '../conformance/effect-store-cases.js';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { test } from '../support/postgres/postgres-test.js';

const DONE: RecordedOutcome = { version: 1, kind: 'success', messages: [] };
const TIMES = { ttlMs: 60_000, waitMs: 5_000 };

async function placeIn({ pool, schema }: Pick<PostgresPlace, 'pool' | 'schema'>): Promise<EffectPlace> {
  const store = postgresEffects({ pool, schema });
  await store.open();
  await pool.query(`CREATE TABLE ${schema}.line (line text PRIMARY KEY)`);
  return {
    store,
    write: async (tx, line) =>
      void (await (tx as PostgresQuerier).query(`INSERT INTO ${schema}.line VALUES ($1)`, [line])),
    read: async () => {
      const { rows } = await pool.query<{ line: string }>(`SELECT line FROM ${schema}.line`);
      return rows.map(({ line }) => line);
    },
  };
}

async function beginIn(place: EffectPlace, key = 'k') {
  const answer = await place.store.begin(key, TIMES);
  if (answer.kind !== 'begun') throw new Error(answer.kind);
  return answer.transaction;
}

describe('an effect store (postgres)', () => {
  for (const { name, run } of EFFECT_STORE_CASES) test(name, async ({ postgres }) => run(await placeIn(postgres)));
});

test('a statement that failed in the handler is not committed over, also where its error was swallowed', async ({
  postgres,
}) => {
  const place = await placeIn(postgres);
  const transaction = await beginIn(place);
  await place.write(transaction.tx, 'a');
  await place.write(transaction.tx, 'a').catch(() => undefined);
  await expect(transaction.commit(DONE)).rejects.toMatchObject({ code: 'STORE_FAILED' });
  await transaction.rollback();
  expect(await place.read()).toEqual([]);
  await (await beginIn(place)).rollback();
});

test('a handler that rolled back by itself has not succeeded', async ({ postgres }) => {
  const place = await placeIn(postgres);
  const transaction = await beginIn(place);
  await (transaction.tx as PostgresQuerier).query('ROLLBACK');
  await expect(transaction.commit(DONE)).rejects.toThrow(/rolled back the transaction of its effects itself/);
  await transaction.rollback();
});

test('a process that dies leaves nothing, and its key is free at once', async ({ postgres }) => {
  const place = await placeIn(postgres);
  const transaction = await beginIn(place);
  await place.write(transaction.tx, 'a');
  const { rows } = await (transaction.tx as PostgresQuerier).query('SELECT pg_backend_pid() AS pid');
  await postgres.pool.query('SELECT pg_terminate_backend($1, 5000)', [rows[0]?.['pid']]);
  await expect(transaction.commit(DONE)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
  await transaction.rollback();
  expect(await place.read()).toEqual([]);
  await (await beginIn(place)).rollback();
});

test('shares its records with the idempotency store of the schema', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const place = await placeIn(postgres);
  await (await beginIn(place, 'a')).commit(DONE);
  const keys = postgresIdempotencyStore({ pool, schema });
  const lease = { nowMs: 0, leaseMs: 60_000 };
  expect(await keys.claim('a', 'somebody', lease)).toEqual({ kind: 'recorded', outcome: DONE });
  await keys.claim('b', 'somebody', lease);
  expect(await place.store.begin('b', TIMES)).toMatchObject({ kind: 'busy' });
});

test.for(['read committed', 'repeatable read', 'serializable'])(
  'the record of a transaction that was waited for is found (%s)',
  async (isolation, { postgres }) => {
    const pool = postgres.newPool({ options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}` });
    const place = await placeIn({ pool, schema: postgres.schema });
    const transaction = await beginIn(place);
    const meanwhile = place.store.begin('k', TIMES);
    await postgres.waiting(1);
    await transaction.commit(DONE);

    const answer = await meanwhile;
    // A transaction that has begun does not see it there: it is to be asked again, at once.
    const isBusy = { kind: 'busy', remainingMs: 0 };
    const recorded = { kind: 'recorded', outcome: DONE };
    expect(answer).toEqual(isolation === 'read committed' ? recorded : isBusy);
    expect(await place.store.begin('k', TIMES)).toEqual(recorded);
  },
);
