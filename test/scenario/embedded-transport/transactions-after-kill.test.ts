// Transactions over the end of a durable broker's process: what was committed counts, what was open is aborted by the next
// broker, and nothing of it is shown.
import { afterEach, describe, expect, it } from 'vitest';
import { minutes } from '../../../src/core/options.js';
import type { Transaction } from '../../../src/ports/transaction.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { DurableWorld, message, receive, text } from '../../support/durable/durable-world.js';

const worlds: DurableWorld[] = [];

function world(): DurableWorld {
  const made = new DurableWorld();
  worlds.push(made);
  return made;
}

afterEach(async () => {
  for (const made of worlds.splice(0)) await made.end();
});

/** A message is acknowledged, and another one published, in one transaction. */
async function halfDone(here: DurableWorld, ...more: readonly string[]): Promise<Transaction> {
  const orders = await here.subscribe();
  const invoices = await here.subscribe({ topics: ['invoices'], consumerName: 'reader' });
  await here.publish('order', ...more);
  const [order] = await receive(orders, 1 + more.length);
  const transaction = await here.transport.newTransaction({ timeoutMs: minutes(5) });
  const publisher = await here.transport.publisher('invoices');
  await publisher.publish(message('invoice'), publisher.nextSequenceId(), { transaction });
  await publisher.publish(message('behind'), publisher.nextSequenceId());
  await orders.acknowledge([order!.id], { transaction });
  await invoices.close();
  return transaction;
}

/** What there is to receive of both topics. */
async function shown(here: DurableWorld): Promise<readonly string[]> {
  await here.transport.broker.open();
  const subscriptions = [await here.subscribe(), await here.subscribe({ topics: ['invoices'] })];
  const texts: string[] = [];
  for (const subscription of subscriptions) {
    const end = new AbortController();
    const receiving = (async () => {
      for (;;) {
        const one = await subscription.receive(end.signal);
        if (one === undefined) return;
        texts.push(text(one));
      }
    })();
    await passes(here);
    end.abort();
    await receiving;
    await subscription.close();
  }
  return texts;
}

/** Virtual time, and turns for what the disk does. */
async function passes(here: DurableWorld, ms = 1_000): Promise<void> {
  await here.clock.advanceBy(ms);
  for (let turn = 0; turn < 20; turn++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    await settlePromises();
  }
}

describe('after the process was killed', () => {
  it('what was committed counts, all of it', async () => {
    const here = world();
    const transaction = await halfDone(here, 'other');
    await transaction.commit();
    await here.restart('killed');
    expect(await shown(here)).toEqual(['other', 'invoice', 'behind']);
  });

  it('what was open is aborted before anybody uses the next broker, and nothing of it counts, whoever ends it', async () => {
    const here = world();
    const { id } = await halfDone(here, 'other');
    await here.restart('killed');
    await here.transport.broker.open();
    await expect(here.transport.broker.transactions?.end(id, 'commit')).rejects.toThrow('is ABORTED');
    expect((await shown(here)).toSorted()).toEqual(['behind', 'order', 'other']);
    await here.restart('killed');
    expect((await shown(here)).toSorted()).toEqual(['behind', 'order', 'other']);
  });

  it('long after it, the headers gone, what was aborted is still none and what was committed is still there', async () => {
    const here = world();
    const aborted = await halfDone(here);
    await aborted.abort();
    await passes(here);
    const committed = await here.transport.newTransaction();
    const publisher = await here.transport.publisher('invoices');
    await publisher.publish(message('second'), publisher.nextSequenceId(), { transaction: committed });
    await committed.commit();
    // Something must be open for the collection to run.
    await here.transport.broker.transactions?.begin({ timeoutMs: minutes(60) });
    for (let minute = 0; minute < 30; minute++) await passes(here, minutes(1));
    await here.restart('killed');
    expect(await shown(here)).toEqual(['order', 'behind', 'second']);
  });
});

it('a transport that closes aborts what is open first', async () => {
  const here = world();
  await halfDone(here);
  await here.restart('closed');
  expect(await shown(here)).toEqual(['order', 'behind']);
});
