// The tests of the workflow: no broker, no waiting, two weeks in a moment.
import 'reflect-metadata';
import { days, hours } from 'pulsework';
import type { CrashScenario } from 'pulsework/testing';
import { replayHistory, testWorkflow, workflowCrashes } from 'pulsework/testing';
import { expect, it } from 'vitest';
import type { Order, Payments, Stock } from './services.js';
import { FulfilOrder } from './services.js';

const ORDER: Order = { id: 'A-1', item: 'lamp', amount: 40 };
const START = { id: ORDER.id, input: ORDER };

/** A shop that writes down what happens, and the instance of the workflow in it. */
function shop() {
  const log: string[] = [];
  const payments: Payments = {
    charge: async (order) => (log.push(`charged ${order.id}`), { id: `ch-${order.id}` }),
    refund: async (chargeId) => void log.push(`refunded ${chargeId}`),
  };
  const stock: Stock = {
    reserve: async (order) => void log.push(`reserved ${order.item}`),
    release: async (orderId) => void log.push(`released ${orderId}`),
  };
  return { log, resolve: () => new FulfilOrder(payments, stock) };
}

it('sends the receipt two weeks after the order was packed', async () => {
  const { log, resolve } = shop();
  await using test = await testWorkflow(FulfilOrder, { resolve });
  await test.start(FulfilOrder, START);
  await test.signal(FulfilOrder, 'A-1', 'packed', { by: 'dock-3' });
  expect(await test.query(FulfilOrder, 'A-1', 'stage')).toBe('packed by dock-3');
  await test.advanceBy(days(14) - 1);
  expect(await test.published('receipts')).toEqual([]);

  expect(await test.result(FulfilOrder, 'A-1')).toEqual({ orderId: 'A-1', chargeId: 'ch-A-1' });
  expect(await test.published('receipts')).toEqual([{ orderId: 'A-1', chargeId: 'ch-A-1' }]);
  expect(log).toEqual(['charged A-1', 'reserved lamp']);
});

it('gives everything back when nobody packs it within two days', async () => {
  const { log, resolve } = shop();
  await using test = await testWorkflow(FulfilOrder, { resolve });
  await test.start(FulfilOrder, START);
  await test.advanceBy(hours(48));

  await expect(test.result(FulfilOrder, 'A-1')).rejects.toThrow(/never packed/);
  expect(log).toEqual(['charged A-1', 'reserved lamp', 'released A-1', 'refunded ch-A-1']);
});

it('goes on in another process', async () => {
  const { log, resolve } = shop();
  await using test = await testWorkflow(FulfilOrder, { resolve });
  await test.start(FulfilOrder, START);
  test.kill();
  await test.restart();
  await test.signal(FulfilOrder, 'A-1', 'packed', { by: 'dock-3' });

  expect(await test.result(FulfilOrder, 'A-1')).toMatchObject({ orderId: 'A-1' });
  expect(log).toEqual(['charged A-1', 'reserved lamp']);
});

it('gives everything back wherever the process dies', async () => {
  const events = [{ afterMs: 1_000, workflow: FulfilOrder, id: 'A-1', start: ORDER }];
  const scenario = (): CrashScenario & { readonly log: string[] } => {
    const { log, resolve } = shop();
    return { definitions: [FulfilOrder], resolve: () => resolve, events, lastsMs: hours(50), log };
  };
  // Calls of two days of waiting are left out: nothing happens in them.
  const calls = (count: number) => Array.from({ length: Math.min(count, 20) }, (_, i) => i + 1);
  for await (const { scenario: world, run } of workflowCrashes(scenario, { faults: ['process-gone'], calls })) {
    expect(run.violations).toEqual([]);
    expect(run.workflows.map(({ status }) => status)).toEqual(['failed']);
    expect([...new Set(world.log)]).toEqual(['charged A-1', 'reserved lamp', 'released A-1', 'refunded ch-A-1']);
  }
});

it('still fits workflows that have begun: keep such a history in your repository', async () => {
  const { resolve } = shop();
  await using test = await testWorkflow(FulfilOrder, { resolve });
  await test.start(FulfilOrder, START);

  await replayHistory(FulfilOrder, await test.history(FulfilOrder, 'A-1'), { resolve });
});
