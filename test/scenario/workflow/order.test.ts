// An order from its start to its receipt, and the ways in which it does not get there.
import { days, hours, minutes } from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import { expect, it } from 'vitest';
import { orderWorkflow, shop } from './order-workflow.js';

const ORDER = { id: 'A-1', input: { id: 'A-1', amount: 5 } };

it('an order that is packed in time ends with its receipt, two weeks later', async () => {
  const outside = shop();
  const FulfilOrder = orderWorkflow(outside);
  await using test = await testWorkflow(FulfilOrder);
  const began = test.clock.now();
  await test.start(FulfilOrder, ORDER);

  expect(outside.log).toEqual(['charge A-1', 'reserve A-1']);
  expect(await test.query(FulfilOrder, 'A-1', 'stage')).toBe('waiting to be packed');
  await test.advanceBy(hours(10));
  await test.signal(FulfilOrder, 'A-1', 'packed', { by: 'dock-3' });
  expect((await test.describe(FulfilOrder, 'A-1'))?.waits).toEqual([
    { command: 'sleep', name: 'cool-off', untilMs: began + hours(10) + days(14) },
  ]);
  await test.advanceBy(days(14) - 1);
  expect(await test.published('receipts')).toEqual([]);
  await test.advanceBy(1);

  expect(await test.result(FulfilOrder, 'A-1')).toEqual({ orderId: 'A-1', chargeId: 'ch-A-1', by: 'dock-3' });
  expect(await test.published('receipts')).toEqual([{ orderId: 'A-1', chargeId: 'ch-A-1' }]);
  expect(outside.log).toEqual(['charge A-1', 'reserve A-1']);
  expect(test.steps).toEqual(['charge', 'reserve']);
});

it('an order that is never packed fails after its time, and what was done is undone in reverse', async () => {
  const outside = shop();
  const FulfilOrder = orderWorkflow(outside);
  await using test = await testWorkflow(FulfilOrder);
  await test.start(FulfilOrder, ORDER);
  await test.advanceBy(hours(48) - 1);
  expect(outside.log).toEqual(['charge A-1', 'reserve A-1']);

  await expect(test.result(FulfilOrder, 'A-1')).rejects.toMatchObject({
    code: 'WORKFLOW_FAILED',
    message: expect.stringContaining('never packed') as string,
  });
  expect(outside.log).toEqual(['charge A-1', 'reserve A-1', 'release A-1', 'refund ch-A-1']);
});

it('the same id twice is the same workflow', async () => {
  const outside = shop();
  const FulfilOrder = orderWorkflow(outside);
  await using test = await testWorkflow(FulfilOrder);
  await test.start(FulfilOrder, ORDER);
  await test.start(FulfilOrder, { id: 'A-1', input: { id: 'other', amount: 6 } });

  expect(outside.log).toEqual(['charge A-1', 'reserve A-1']);
});

it('a process that is killed while the workflow waits changes nothing', async () => {
  const outside = shop();
  const FulfilOrder = orderWorkflow(outside);
  await using test = await testWorkflow(FulfilOrder);
  await test.start(FulfilOrder, ORDER);
  test.kill();
  await test.restart();
  await test.signal(FulfilOrder, 'A-1', 'packed', { by: 'dock-3' });

  expect(await test.result(FulfilOrder, 'A-1')).toMatchObject({ by: 'dock-3' });
  expect(outside.log).toEqual(['charge A-1', 'reserve A-1']);
});

it('a signal before the start is kept for it, for a day', async () => {
  const FulfilOrder = orderWorkflow(shop());
  await using test = await testWorkflow(FulfilOrder);
  await test.signal(FulfilOrder, 'A-1', 'packed', { by: 'early' });
  await test.signal(FulfilOrder, 'A-2', 'packed', { by: 'too early' });
  await test.advanceBy(hours(24) - 1);
  await test.start(FulfilOrder, ORDER);
  await test.advanceBy(minutes(1));
  await test.start(FulfilOrder, { id: 'A-2', input: { id: 'A-2', amount: 1 } });

  expect(await test.result(FulfilOrder, 'A-1')).toMatchObject({ by: 'early' });
  await expect(test.result(FulfilOrder, 'A-2')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' });
});
