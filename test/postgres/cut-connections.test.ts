// Effects, the outbox and workflows on one PostgreSQL whose connections are cut all the time: what each promises holds for all at once.
import { Runtime, days, defineHandler, effects, fixedBackoff, seconds, success, topic } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { postgresEffects, postgresOutbox, postgresWorkflowStore } from 'pulsework/postgres';
import type { StepContext } from 'pulsework/workflow';
import { Workflows, defineWorkflow } from 'pulsework/workflow';
import { expect } from 'vitest';
import { z } from 'zod';
import { consoleLogger } from '../../src/index.js';
import { test } from '../support/postgres/postgres-test.js';

const ORDERS = 100;
/** Of the orders, which have a workflow too. */
const EVERY = 4;
const CUT_EVERY_MS = 15;
const CUT_AT_ONCE = 2;

const orders = topic<{ readonly id: string }>('orders');
const receipts = topic<{ readonly id: string }>('receipts');

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

test('each order is written once and told, and each workflow ends right, whatever connection ends when', async ({
  postgres,
}) => {
  const { pool, schema } = postgres;
  const own = postgres.newPool({ application_name: `${schema}-own`, max: 2 });
  const table = `${schema}_ledger.charge`;
  await own.query(`CREATE SCHEMA ${schema}_ledger; CREATE TABLE ${table} (id text)`);

  const outbox = postgresOutbox({ pool, schema });
  const once = effects(orders, { store: postgresEffects({ pool, schema }), ttlMs: days(1) });
  const charge = defineHandler({
    name: 'Billing.charge',
    source: orders,
    subscription: 'billing',
    effects: once,
    publishes: [receipts],
    concurrency: 8,
    redelivery: { maxDeliveries: 100, backoff: fixedBackoff(50) },
    handle: async (order) => {
      const transaction = once.transaction(order);
      await transaction.query(`INSERT INTO ${table} VALUES ($1)`, [order.payload.id]);
      await outbox.add(transaction, receipts.message({ id: order.payload.id }));
      return success();
    },
  });
  // Told once where the broker recognises repeats, which this one is not asked to.
  const told = new Set<string>();
  let allTold: () => void = () => undefined;
  const everythingTold = new Promise<void>((resolve) => (allTold = resolve));
  const collect = defineHandler({
    name: 'Receipts.collect',
    source: receipts,
    subscription: 'collector',
    handle: ({ payload }) => {
      told.add(payload.id);
      if (told.size === ORDERS) allTold();
      return success();
    },
  });
  const Parcel = defineWorkflow({
    name: 'parcel',
    version: 1,
    input: z.number(),
    async run(flow, number) {
      const key = ({ idempotencyKey }: StepContext): string => idempotencyKey;
      const packed = await flow.step('pack', key);
      await flow.sleep('rest', 100);
      return [number, packed, await flow.step('send', key)];
    },
  });
  const logger = consoleLogger({ level: 'silent' });
  const runtime = await Runtime.start({ transport: embedded(), handlers: [charge, collect], outbox, logger });
  const store = postgresWorkflowStore({ pool, schema });
  const times = { leaseMs: seconds(2), scanIntervalMs: 500 };
  const workflows = await Workflows.start({ runtime, store, definitions: [Parcel], ...times });

  const cutting = new AbortController();
  let cuts = 0;
  const cutter = (async () => {
    while (!cutting.signal.aborted) {
      const any = 'SELECT pid FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT $2';
      const { rowCount } = await own.query(`SELECT pg_terminate_backend(pid) FROM (${any}) AS cut`, [
        schema,
        CUT_AT_ONCE,
      ]);
      cuts += rowCount ?? 0;
      await pause(CUT_EVERY_MS);
    }
  })();
  cutter.catch(() => undefined);
  const publisher = runtime.publisher(orders);
  const started = [];
  for (let number = 0; number < ORDERS; number++) {
    await publisher.publish({ id: String(number) });
    if (number % EVERY === 0) started.push(await workflows.start(Parcel, { id: `p-${number}`, input: number }));
    await pause(CUT_EVERY_MS);
  }
  cutting.abort();
  await cutter;
  const results = await Promise.all(started.map((handle) => handle.result()));
  await everythingTold;
  await runtime.drain();

  const ids = Array.from({ length: ORDERS }, (_, number) => String(number)).sort();
  const { rows } = await own.query<{ id: string }>(`SELECT id FROM ${table}`);
  await own.query(`DROP SCHEMA ${schema}_ledger CASCADE`);
  expect(rows.map(({ id }) => id).sort()).toEqual(ids);
  expect([...told].sort()).toEqual(ids);
  expect(results).toEqual(started.map(({ id }, place) => [place * EVERY, `parcel/${id}/1/0`, `parcel/${id}/1/2`]));
  expect(cuts).toBeGreaterThan(0);
  expect(pool.waitingCount).toBe(0);
});
