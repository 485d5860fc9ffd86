// Transactions of a durable embedded broker over the death of its process: what was committed is there, and what was open is as
// if it had never been once its time is over.
import { afterEach, expect, it, vi } from 'vitest';
import { minutes, seconds } from '../../../src/core/options.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { DurableWorld, message, receive, text } from '../../support/durable/durable-world.js';

let here: DurableWorld;

afterEach(() => here.end());

/** One message is consumed and another one published in a transaction that is open. */
async function underWay() {
  here = new DurableWorld();
  const orders = await here.subscribe();
  const invoices = await here.transport.publisher('invoices', { initialSubscription: 's' });
  await here.publish('order');
  const [order] = await receive(orders, 1);
  const transaction = await here.transport.newTransaction({ timeoutMs: seconds(30) });
  await invoices.publish(message('invoice'), invoices.nextSequenceId(), { transaction });
  await orders.acknowledge([order!.id], { transaction });
  return transaction;
}

async function invoicesNow(): Promise<readonly string[]> {
  const invoices = await here.subscribe({ topics: ['invoices'] });
  await settlePromises();
  const { unacked = 0 } = here.transport.broker.stats('invoices').subscriptions.get('s') ?? {};
  return (await receive(invoices, unacked)).map(text);
}

it.each(['closed', 'killed'] as const)('what was committed is there after the process was %s', async (how) => {
  const transaction = await underWay();
  await transaction.commit();

  await here.restart(how);

  // What a death left to do is done within moments.
  expect((await receive(await here.subscribe({ topics: ['invoices'] }), 1)).map(text)).toEqual(['invoice']);
  expect(await here.backlog()).toEqual([]);
  await vi.waitFor(() => expect(here.transport.broker.stats('orders').subscriptions.get('s')?.backlog).toBe(0));
});

it('what was open when the process was killed is neither seen nor acknowledged', async () => {
  await underWay();

  await here.restart('killed');
  expect(await invoicesNow()).toEqual([]);
  const orders = await here.subscribe();
  // Its time, and some for whoever looks.
  await here.clock.advanceBy(minutes(5));

  expect((await receive(orders, 1)).map(text)).toEqual(['order']);
  expect(await invoicesNow()).toEqual([]);
});
