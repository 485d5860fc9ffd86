// Transactions through the transport on the embedded broker: what is published and acknowledged in them counts once they are
// committed, all of it or nothing.
import { describe, expect, it, vi } from 'vitest';
import { PulseworkError } from '../../../src/core/errors.js';
import type { EncodedMessage } from '../../../src/core/message.js';
import type { SubscriptionType } from '../../../src/core/subscription-spec.js';
import { transactionKey } from '../../../src/core/transaction-id.js';
import { memoryMetadataStore } from '../../../src/embedded.js';
import type { EmbeddedBrokerOptions } from '../../../src/embedded.js';
import type { Transaction, TransactionOptions } from '../../../src/ports/transaction.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestTransport, drain, next, nextOrNone, text } from './transport-kit.js';

function world(options: Partial<EmbeddedBrokerOptions> = {}) {
  const test = new TestTransport({ transactions: { store: memoryMetadataStore() }, ...options });
  const { transport } = test;
  const begin = (given?: TransactionOptions): Promise<Transaction> => transport.newTransaction(given);
  return { test, transport, begin };
}

const message = (payload: string, more: Partial<EncodedMessage> = {}): EncodedMessage => ({
  payload: new TextEncoder().encode(payload),
  properties: {},
  ...more,
});

async function texts(...given: Parameters<typeof drain>): Promise<string> {
  return (await drain(...given)).map((one) => text(one)).join(' ');
}

describe('a commit that was decided but seemed to fail', () => {
  it('cannot be aborted any more: the abort says so, and the messages are shown (T-30)', async () => {
    const store = memoryMetadataStore();
    const append = store.append.bind(store);
    const { test, transport, begin } = world({ transactions: { store } });
    const subscription = await test.subscribe();
    const publisher = await transport.publisher(TOPIC);
    const transaction = await begin();
    await publisher.publish(message('a'), publisher.nextSequenceId(), { transaction });
    store.append = () => Promise.reject(new PulseworkError('STORE_FULL', 'no room for the event'));
    await expect(transaction.commit()).rejects.toMatchObject({ code: 'BROKER_ERROR', retriable: true });
    store.append = append;
    const end = vi.spyOn(transport.broker.transactions!, 'end');

    await expect(transaction.abort()).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect(transaction.state).toBe('committed');
    expect(end.mock.calls.map(([, action]) => action)).toEqual(['abort']);
    expect(await texts(subscription)).toBe('a');
  });
});

describe('messages in a transaction', () => {
  it('are shown once it is committed, with those of others behind them in their places (T-07)', async () => {
    const { test, transport, begin } = world();
    const subscription = await test.subscribe();
    const publisher = await transport.publisher(TOPIC);
    const transaction = await begin();
    const publish = (name: string, inIt: boolean) =>
      publisher.publish(message(name), publisher.nextSequenceId(), inIt ? { transaction } : undefined);
    await Promise.all([publish('before', false), publish('a', true), publish('between', false), publish('b', true)]);

    expect(await texts(subscription)).toBe('before');
    await transaction.commit();
    expect(await texts(subscription)).toBe('a between b');
  });

  it('are never shown after an abort, and count as acknowledged', async () => {
    const { test, transport, begin } = world();
    const subscription = await test.subscribe();
    const publisher = await transport.publisher(TOPIC);
    const transaction = await begin();
    await publisher.publish(message('a'), 0, { transaction });
    await publisher.publish(message('plain'), 1);
    expect(test.stats().backlog).toBe(2);
    await transaction.abort();
    expect(await texts(subscription)).toBe('plain');
    expect(test.stats().backlog).toBe(1);
  });
});

describe.each<SubscriptionType>(['shared', 'key-shared'])('on %s', (type) => {
  it('what is acknowledged comes no more once it is committed, and again, counted, after an abort (T-17)', async () => {
    const { test, begin } = world();
    const subscription = await test.subscribe({ type });
    await test.publish(['a', 'b']);
    const [a, b] = [await next(subscription), await next(subscription)];
    const [committed, aborted] = [await begin(), await begin()];
    await subscription.acknowledge([a.id], { transaction: committed });
    await subscription.acknowledge([b.id], { transaction: aborted });
    await committed.commit();
    await aborted.abort();
    expect(await texts(subscription)).toBe('b*');
    expect(test.stats().backlog).toBe(1);
  });
});

describe.each<SubscriptionType>(['exclusive', 'failover'])('on %s', (type) => {
  it('an abort sends nothing by itself; asked for, all of it comes (T-17)', async () => {
    const { test, begin } = world();
    const subscription = await test.subscribe({ type });
    await test.clock.advanceBy(2_000);
    await test.publish(['a', 'b']);
    const [a] = [await next(subscription), await next(subscription)];
    const transaction = await begin();
    await subscription.acknowledge([a.id], { transaction });
    await transaction.abort();
    await settlePromises();
    expect(await nextOrNone(subscription)).toBeUndefined();
    await subscription.redeliver([a.id]);
    await settlePromises();
    expect(await texts(subscription)).toBe('a b');
  });
});

describe('a transaction', () => {
  it('cannot be had where the broker has none, and the transport does not say that it can', async () => {
    const { transport } = world({ transactions: undefined });
    expect(transport.capabilities.has('transactions')).toBe(false);
    await expect(transport.newTransaction()).rejects.toMatchObject({
      code: 'TRANSACTIONS_UNAVAILABLE',
      retriable: false,
    });
  });

  it('is refused with options that are none', async () => {
    const { begin } = world();
    await expect(begin({ timeoutMs: 0 })).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
    await expect(begin({ timeout: 5 } as TransactionOptions)).rejects.toThrow(/timeoutMs/);
  });

  it('must be one that a transport made', async () => {
    const { test, transport } = world();
    const subscription = await test.subscribe();
    await test.publish(['a']);
    const a = await next(subscription);
    const publisher = await transport.publisher(TOPIC);
    const invented = { transaction: { id: 1 } } as unknown as { readonly transaction: Transaction };
    await expect(publisher.publish(message('x'), 0, invented)).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
    await expect(subscription.acknowledge([a.id], invented)).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
  });

  it('whose commit could not be recorded is committed when it is asked for again', async () => {
    let fails = false;
    const store = memoryMetadataStore();
    const put = store.put.bind(store);
    store.put = (...given) => (fails ? Promise.reject(new PulseworkError('STORE_FULL', 'no room')) : put(...given));
    const { test, transport, begin } = world({ transactions: { store } });
    const subscription = await test.subscribe();
    const publisher = await transport.publisher(TOPIC);
    const transaction = await begin();
    await publisher.publish(message('a'), 0, { transaction });
    fails = true;
    await expect(transaction.commit()).rejects.toMatchObject({ code: 'BROKER_ERROR', retriable: true });
    expect(transaction.state).toBe('committing');
    fails = false;
    await transaction.commit();
    expect(await texts(subscription)).toBe('a');
  });

  it('ends with its time also when its client is gone: at the next sweep of the broker (T-37)', async () => {
    const { test } = world();
    const subscription = await test.subscribe();
    const id = await test.broker.transactions!.begin({ timeoutMs: 5_000 });
    const producer = test.broker.producer({ topic: TOPIC });
    await producer.publish(message('never'), 0, undefined, transactionKey(id));
    await test.publish(['behind']);
    await test.clock.advanceBy(59_000);
    expect(await texts(subscription)).toBe('');
    await test.clock.advanceBy(2_000);
    expect(await texts(subscription)).toBe('behind');
  });

  it('leaves no record of a subscription that is deleted meanwhile, and the next one of the name begins anew', async () => {
    const store = memoryMetadataStore();
    const { test, begin } = world({ transactions: { store } });
    const before = await test.subscribe();
    await test.publish(['a']);
    const transaction = await begin();
    await before.acknowledge([(await next(before)).id], { transaction });
    test.broker.deleteSubscription(TOPIC, 's', { force: true });
    await before.close();
    const after = await test.subscribe();
    expect(await texts(after)).toBe('a');
    await transaction.abort();
    expect(await texts(after)).toBe('');
    const left = (await store.scan({ from: '/pending-ack-log', to: '/txn/a' })).map(({ path }) => path);
    expect(left).toEqual([]);
    expect((await store.scan({ from: '/txn/op', to: '/txn/op~' })).map(({ path }) => path)).toEqual([]);
  });
});

describe('a segment', () => {
  const SEGMENT = 'segment://shop/eu/orders/0000-7fff-3';

  it('is a topic as any other, with one name however it is written (T-48)', async () => {
    const { test, transport, begin } = world();
    const subscription = await test.subscribe({ topics: ['segment://shop/eu/orders/0-7FFF-3'] });
    await test.publish(['a'], {}, SEGMENT);
    const a = await next(subscription);
    expect(a.id.topic).toBe(SEGMENT);
    const publisher = await transport.publisher(SEGMENT);
    const transaction = await begin();
    await publisher.publish(message('b'), publisher.nextSequenceId(), { transaction });
    await subscription.acknowledge([a.id], { transaction });
    await transaction.commit();
    expect(await texts(subscription)).toBe('b');
    expect(test.stats(SEGMENT).backlog).toBe(1);
  });

  it('is refused in Pulsar’s words where its name is none, and cannot have partitions (T-48)', async () => {
    const { test, transport } = world();
    await expect(transport.publisher('segment://shop/eu/orders')).rejects.toThrow(
      "Invalid segment topic name: local name must contain '<parent-topic>/<hashStart>-<hashEnd>-<segmentId>'",
    );
    await expect(transport.publisher('segment://shop/eu/orders/7fff-0000-1')).rejects.toThrow(
      "Invalid segment descriptor: expected '<hexStart>-<hexEnd>-<segmentId>', got: '7fff-0000-1'",
    );
    expect(() => test.broker.createPartitionedTopic(SEGMENT, 2)).toThrow(/cannot have partitions/);
  });
});
