// The outbox in PostgreSQL: the cases of all stores, and what only it has.
import { systemClock } from 'pulsework';
import { describe, expect } from 'vitest';
import type { ClaimedRow, OutboxLead, OutboxStore } from '../../src/ports/outbox-store.js';
import { outboxRecord } from '../../src/core/outbox-record.js';
import { PostgresDatabase } from '../../src/stores/postgres/postgres-database.js';
import { PostgresOutboxStore } from '../../src/stores/postgres/postgres-outbox-store.js';
import { OUTBOX_STORE_CASES } from '../conformance/outbox-store-cases.js';
import type { OutboxPlace } from '../conformance/outbox-store-cases.js';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { test } from '../support/postgres/postgres-test.js';

function storeIn({ pool, schema }: PostgresPlace, notifies = true): PostgresOutboxStore {
  return new PostgresOutboxStore({
    database: new PostgresDatabase({ pool, schema, clock: systemClock }),
    schema,
    notifies,
  });
}

/** Ends the session of whoever leads. */
async function endLeader({ pool, schema }: PostgresPlace): Promise<void> {
  const { rowCount } = await pool.query(
    `SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'
     AND (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)`,
    [`pulsework outbox of ${schema}`],
  );
  expect(rowCount).toBe(1);
}

/** @param leads those to end with the test: each holds a connection of the pool. */
async function placeIn(postgres: PostgresPlace, leads: OutboxLead[]): Promise<OutboxPlace> {
  const store = storeIn(postgres);
  await store.open();
  const lead = store.lead.bind(store);
  store.lead = async () => {
    const given = await lead();
    if (given !== undefined) leads.push(given);
    return given;
  };
  return {
    store: store as OutboxStore<unknown>,
    hasConcurrentTransactions: true,
    begin: async () => {
      const tx = await postgres.pool.connect();
      await tx.query('BEGIN');
      const end = (how: string) => async (): Promise<void> => {
        await tx.query(how);
        tx.release();
      };
      return { tx, commit: end('COMMIT'), rollback: end('ROLLBACK') };
    },
    leaderDies: () => endLeader(postgres),
  };
}

describe('an outbox store (postgres)', () => {
  for (const { name, run } of OUTBOX_STORE_CASES)
    test(name, async ({ postgres }) => {
      const leads: OutboxLead[] = [];
      try {
        await run(await placeIn(postgres, leads));
      } finally {
        for (const lead of leads) await lead.end();
      }
    });
});

const record = (key: string) => outboxRecord('t', { payload: null, key, properties: {} });

test('keeps the order of commits of a key whose writers exclude each other', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const store = storeIn(postgres);
  await store.open();
  await pool.query(
    `CREATE TABLE ${schema}.account (id int PRIMARY KEY, version int); INSERT INTO ${schema}.account VALUES (1, 0)`,
  );
  const write = async (): Promise<void> => {
    const client = await pool.connect();
    await client.query('BEGIN');
    const { rows } = await client.query(
      `UPDATE ${schema}.account SET version = version + 1 WHERE id = 1 RETURNING version`,
    );
    await store.append(client, [record(String((rows[0] as { version: number }).version))]);
    await client.query('COMMIT');
    client.release();
  };
  const lead = await store.lead();
  const seen: string[] = [];
  let isWritten = false;
  const writing = Promise.all(Array.from({ length: 60 }, write)).finally(() => (isWritten = true));
  for (let isLast = false; !isLast;) {
    isLast = isWritten;
    for (
      let rows: readonly ClaimedRow[] = [];
      ;
      seen.push(...rows.map(({ orderedBy }) => JSON.parse(orderedBy ?? '') as string))
    ) {
      rows = (await lead?.claim({ limit: 7, exceptTopics: [], nowMs: 0 })) ?? [];
      if (rows.length === 0) break;
    }
  }
  await writing;
  await lead?.end();
  expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => String(i + 1)));
});

test('without notify the leader hears nothing', async ({ postgres }) => {
  const store = storeIn(postgres, false);
  await store.open();
  const lead = await store.lead();
  let told = 0;
  lead?.onNews(() => (told += 1));
  await store.append(postgres.pool, [record('a')]);
  expect(await lead?.claim({ limit: 9, exceptTopics: [], nowMs: 0 })).toHaveLength(1);
  await lead?.summary();
  expect(told).toBe(0);
  await lead?.end();
});
