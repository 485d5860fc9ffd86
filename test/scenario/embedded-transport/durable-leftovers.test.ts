// What a broker that died left of transactions, and what the next one on the folder does about it before anybody uses it.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EmbeddedBroker, embedded } from '../../../src/embedded.js';
import { TxnMetadataStore } from '../../../src/broker/transactions/txn-metadata-store.js';
import { PulseworkError } from '../../../src/core/errors.js';
import { hours, minutes } from '../../../src/core/options.js';
import type { MetadataStore } from '../../../src/ports/metadata-store.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';
import { message, receive, text } from '../../support/durable/durable-world.js';
import { sqliteStore } from '../../../src/sqlite.js';

const SPEC = { topics: ['orders'], subscription: 's', type: 'shared', consumerName: 'c', prefetch: 10 } as const;
const NEVER: Promise<never> = new Promise(() => undefined);
let folder: string;
let clock: FakeClock;
const lives: Life[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-left-'));
  clock = new FakeClock(1_800_000_000_000);
});
afterEach(async () => {
  for (const life of lives.splice(0)) await life.end();
  rmSync(folder, { recursive: true });
});

class Life {
  readonly store: ReturnType<typeof sqliteStore>;
  readonly failures: string[] = [];
  readonly broker: EmbeddedBroker;
  readonly transport: ReturnType<typeof embedded>;
  readonly records: TxnMetadataStore;

  constructor(dir: string, change: (metadata: MetadataStore) => void = () => undefined) {
    this.store = sqliteStore({ dir });
    change(this.store.metadata);
    const transactions = {
      store: this.store.metadata,
      onFailed: (error: Error) => void this.failures.push(error.message),
    };
    this.broker = new EmbeddedBroker({ clock, store: this.store, transactions });
    this.transport = embedded({ broker: this.broker });
    this.records = new TxnMetadataStore(this.store.metadata);
    lives.push(this);
  }

  async left() {
    return {
      topics: await this.records.writtenSegments(),
      subscriptions: await this.records.acknowledgingSubscriptions(),
      open: (await this.records.open()).length,
    };
  }

  async end(): Promise<void> {
    await this.transport.close();
    await this.broker.close();
  }
}

const first = (change?: (metadata: MetadataStore) => void): Life => new Life(join(folder, '0'), change);

/** The next broker, on what the last one had on the disk. */
function next(change?: (metadata: MetadataStore) => void): Life {
  const to = join(folder, String(lives.length));
  cpSync(join(folder, String(lives.length - 1)), to, { recursive: true });
  return new Life(to, change);
}

/** A message is acknowledged and another one published in a transaction that has hours. */
async function halfDone({ transport }: Life) {
  const orders = await transport.subscribe({ ...SPEC, initialPosition: 'earliest' });
  const toOrders = await transport.publisher('orders');
  await toOrders.publish(message('order'), 0);
  const [order] = await receive(orders, 1);
  const transaction = await transport.newTransaction({ timeoutMs: hours(5) });
  const toInvoices = await transport.publisher('invoices', { initialSubscription: 's' });
  await toInvoices.publish(message('invoice'), 0, { transaction });
  await toInvoices.publish(message('behind'), 1);
  await orders.acknowledge([order!.id], { transaction });
  return transaction;
}

describe('a transaction that was open when its process died', () => {
  it('is aborted by the next broker before anything else: nothing waits for its time', async () => {
    await halfDone(first());
    const after = next();
    const orders = await after.transport.subscribe({ ...SPEC, initialPosition: 'earliest' });
    const invoices = await after.transport.subscribe({ ...SPEC, topics: ['invoices'], initialPosition: 'earliest' });

    // No virtual time passes.
    expect((await receive(orders, 1)).map(text)).toEqual(['order']);
    expect((await receive(invoices, 1)).map(text)).toEqual(['behind']);
    expect((await after.left()).open).toBe(0);
    expect(after.failures).toEqual([]);
  });

  it.each(['exclusive', 'failover'] as const)('what it acknowledged comes in its place on %s, once', async (type) => {
    const before = first();
    const spec = { ...SPEC, type, initialPosition: 'earliest' } as const;
    const orders = await before.transport.subscribe(spec);
    const toOrders = await before.transport.publisher('orders');
    for (const [at, one] of ['a', 'b', 'c'].entries()) await toOrders.publish(message(one), at);
    await clock.advanceBy(1_000);
    const [a] = await receive(orders, 3);
    const transaction = await before.transport.newTransaction({ timeoutMs: hours(5) });
    await orders.acknowledge([a!.id], { transaction });
    const again = await next().transport.subscribe(spec);
    await clock.advanceBy(1_000);
    expect((await receive(again, 3)).map(text)).toEqual(['a', 'b', 'c']);
    expect(await again.receive(AbortSignal.timeout(50))).toBeUndefined();
  });

  it('cannot be committed any more by whoever still knows its id', async () => {
    const { id } = await halfDone(first());
    const after = next();
    await after.broker.open();
    const committing = after.broker.transactions!.end(id, 'commit');
    await expect(committing).rejects.toMatchObject({ code: 'TRANSACTION_ENDED', state: 'ABORTED' });
  });

  it('is left to its time where the disk takes nothing: the topics open all the same, and it is reported', async () => {
    await halfDone(first());
    let isFull = true;
    const after = next((metadata) => {
      const put = metadata.put.bind(metadata);
      metadata.put = (...given) =>
        isFull ? Promise.reject(new PulseworkError('STORE_FULL', 'no room')) : put(...given);
    });
    const orders = await after.transport.subscribe({ ...SPEC, initialPosition: 'earliest' });
    expect(after.failures).toEqual([expect.stringContaining('no room')]);
    expect((await after.left()).open).toBe(1);

    isFull = false;
    await clock.advanceBy(hours(5) + minutes(2));
    expect((await receive(orders, 1)).map(text)).toEqual(['order']);
  });

  it('stays open where its store may be of several brokers', async () => {
    const before = first();
    const { id } = await halfDone(before);
    const other = new EmbeddedBroker({ clock, transactions: { store: before.store.metadata } });
    await other.transactions!.open();
    await before.broker.transactions!.end(id, 'commit');
  });
});

describe('a topic whose removal its process did not survive', () => {
  it('leaves no records once the next broker has opened', async () => {
    const before = first();
    await halfDone(before);
    await before.transport.close();
    // From here on the records of transactions cannot be removed.
    before.store.metadata.delete = () => NEVER;
    before.broker.deleteTopic('orders');
    before.broker.deleteTopic('invoices');
    await before.broker.written();
    const after = next();
    lives.splice(lives.indexOf(before), 1);
    await after.broker.open();

    expect(await after.left()).toEqual({ topics: [], subscriptions: [], open: 0 });
  });

  it('takes nothing from the topics that are there', async () => {
    const transaction = await halfDone(first());
    await transaction.commit();
    const after = next();
    const invoices = await after.transport.subscribe({ ...SPEC, topics: ['invoices'], initialPosition: 'earliest' });
    expect((await receive(invoices, 2)).map(text)).toEqual(['invoice', 'behind']);
  });
});
