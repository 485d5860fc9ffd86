// Runtimes whose stores are in PostgreSQL, on an embedded broker: what the stores promise reaches handlers.
import type { Delivery } from 'pulsework';
import { defineHandler, idempotent, minutes, Runtime, seconds, success, topic } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { postgresAttemptStore, postgresIdempotencyStore } from 'pulsework/postgres';
import { expect } from 'vitest';
import { test } from '../support/postgres/postgres-test.js';

const REPEATS = 4;
const orders = topic<{ readonly id: string }>('orders');
const receipts = topic<{ readonly id: string; readonly by: string }>('receipts');

test('two runtimes with stores in one schema: a repeat is answered by whichever gets it', async ({ postgres }) => {
  const { pool, schema } = postgres;
  const transport = embedded();
  const ran: string[] = [];
  const answers: string[] = [];
  let allCame: () => void = () => undefined;
  const came = new Promise<void>((resolve) => (allCame = resolve));
  const collect = defineHandler({
    name: 'Receipts.collect',
    source: receipts,
    subscription: 'receipts',
    handle: ({ payload }: Delivery<{ readonly id: string; readonly by: string }>) => {
      answers.push(`${payload.id} by ${payload.by}`);
      if (answers.length === 10 * REPEATS) allCame();
      return success();
    },
  });
  const charge = (name: string) =>
    defineHandler({
      name: 'Billing.charge',
      source: orders,
      subscription: 'billing',
      publishes: [receipts],
      idempotent: idempotent(orders, {
        key: ({ payload }) => payload.id,
        store: postgresIdempotencyStore({ pool, schema }),
        ttlMs: minutes(1),
        // A repeat that comes while the other runtime has the key waits for the end of its lease.
        leaseMs: seconds(3),
      }),
      handle: ({ payload }) => {
        ran.push(`${payload.id} by ${name}`);
        return success(receipts.message({ id: payload.id, by: name }));
      },
    });
  const start = (handlers: Parameters<typeof Runtime.start>[0]['handlers']) =>
    Runtime.start({ transport, handlers, attemptStore: postgresAttemptStore({ pool, schema }) });
  const runtimes = [await start([charge('one'), collect]), await start([charge('other')])];
  const ids = Array.from({ length: 10 * REPEATS }, (_, n) => String(n % 10));
  const publisher = runtimes[0]?.publisher(orders);
  await Promise.all(ids.map(async (id) => publisher?.publish({ id })));
  await came;
  await Promise.all(runtimes.map((runtime) => runtime.drain()));

  expect(ran).toHaveLength(10);
  expect(answers.sort()).toEqual(ran.flatMap((answer) => Array.from({ length: REPEATS }, () => answer)).sort());
  // All are acknowledged: nothing of them is kept.
  expect((await pool.query(`SELECT * FROM ${schema}.attempt`)).rows).toEqual([]);
  const keys = await pool.query<{ count: number }>(`SELECT count(*)::integer FROM ${schema}.idempotency`);
  expect(keys.rows).toEqual([{ count: 10 }]);
});
