// The idempotency store in PostgreSQL: the cases of all stores, and what only it has.
import type { IdempotencyStore, RecordedOutcome } from 'pulsework';
import { postgresIdempotencyStore } from 'pulsework/postgres';
import { describe, expect } from 'vitest';
import { PostgresDatabase } from '../../src/stores/postgres/postgres-database.js';
import { PostgresIdempotencyStore } from '../../src/stores/postgres/postgres-idempotency-store.js';
import { systemClock } from '../../src/system/system-clock.js';
import { idempotencyStoreCases } from '../conformance/idempotency-store-cases.js';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { test } from '../support/postgres/postgres-test.js';

const SKIPPED: RecordedOutcome = { version: 1, kind: 'skip', reason: 'done' };
const LEASE = { nowMs: 0, leaseMs: 60_000 };

/** Its clock is a row, set to the time of each call. */
async function storeWithClock({ pool, schema }: PostgresPlace): Promise<IdempotencyStore> {
  const database = new PostgresDatabase({ pool, schema, clock: systemClock });
  await database.ready();
  await pool.query(`CREATE TABLE ${schema}.clock AS SELECT now() AS at`);
  const store = new PostgresIdempotencyStore(database, schema, `(SELECT at FROM ${schema}.clock)`);
  const moveTo = ({ nowMs }: { readonly nowMs: number }) =>
    pool.query(`UPDATE ${schema}.clock SET at = to_timestamp($1::double precision / 1000)`, [nowMs]);
  return {
    name: store.name,
    claim: (key, owner, times) => moveTo(times).then(() => store.claim(key, owner, times)),
    renew: (key, owner, times) => moveTo(times).then(() => store.renew(key, owner, times)),
    record: (key, owner, outcome, times) => moveTo(times).then(() => store.record(key, owner, outcome, times)),
    release: (key, owner) => store.release(key, owner),
  };
}

describe('an idempotency store (postgres)', () => {
  for (const { title, run } of idempotencyStoreCases)
    test(title, async ({ postgres }) => run(await storeWithClock(postgres)));
});

test('goes by the clock of the server, whatever callers believe', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const store = postgresIdempotencyStore({ pool, schema });
  const inTenYears = Date.now() + 10 * 365 * 24 * 3_600_000;
  await store.claim('k', 'one', { nowMs: 0, leaseMs: 60_000 });

  const answer = await store.claim('k', 'two', { nowMs: inTenYears, leaseMs: 60_000 });
  expect(answer).toMatchObject({ kind: 'busy' });
  const { remainingMs } = answer as { readonly remainingMs: number };
  expect(remainingMs).toBeGreaterThan(50_000);
  expect(remainingMs).toBeLessThanOrEqual(60_000);
});

test('stores of one schema share their keys, of others they do not', async ({ postgres }) => {
  const { pool, schema } = postgres;
  await postgresIdempotencyStore({ pool, schema }).claim('k', 'one', LEASE);
  const other = `${schema} "2"`;

  expect(await postgresIdempotencyStore({ pool, schema }).claim('k', 'two', LEASE)).toMatchObject({ kind: 'busy' });
  expect(await postgresIdempotencyStore({ pool, schema: other }).claim('k', 'two', LEASE)).toEqual({ kind: 'claimed' });
  await pool.query(`DROP SCHEMA "${other.replaceAll('"', '""')}" CASCADE`);
});

test('removes what is over, and keeps what may still be asked for', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const store = postgresIdempotencyStore({ pool, schema });
  await store.claim('held', 'one', LEASE);
  await store.claim('ended', 'one', { nowMs: 0, leaseMs: 1 });
  for (let n = 0; n < 99; n++) {
    await store.claim(`k${n}`, 'one', LEASE);
    await store.record(`k${n}`, 'one', SKIPPED, { nowMs: 0, ttlMs: n < 40 ? 0 : 60_000 });
  }
  await store.claim('last', 'one', LEASE);
  await store.record('last', 'one', SKIPPED, { nowMs: 0, ttlMs: 60_000 });

  const count = async (): Promise<number> =>
    Number((await pool.query<{ count: string }>(`SELECT count(*) FROM ${schema}.idempotency`)).rows[0]?.count);
  // It is done beside, and takes a moment.
  await expect.poll(count).toBe(62);
  expect(await store.renew('ended', 'one', LEASE)).toBe(true);
});

test('in a database whose transactions are serializable of 50 claims at once one gets the key too', async ({
  postgres,
}) => {
  const pool = postgres.newPool({ options: '-c default_transaction_isolation=serializable' });
  const store = postgresIdempotencyStore({ pool, schema: postgres.schema });
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => store.claim('k', `owner-${n}`, LEASE)));

  expect(answers.filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
  expect(answers.filter(({ kind }) => kind === 'busy')).toHaveLength(49);
});
