import { describe, expect, it } from 'vitest';
import type { Stored } from '../../../src/broker/broker-store.js';
import { hours, minutes } from '../../../src/core/options.js';
import { SUBSCRIPTION_TYPES } from '../../../src/core/subscription-spec.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

const TTL = { messageTtlMs: minutes(7) };

describe('S-29: time to live', () => {
  it('is looked at every 5 minutes and takes what was published more than that long ago', async () => {
    const test = new TestBroker(TTL);
    test.broker.createSubscription('t', 's');
    await test.publish('old');
    await test.clock.advanceBy(minutes(5));
    await test.publish('young');
    await test.clock.advanceBy(minutes(5) - 1);
    expect(test.stats().backlog).toBe(2);
    await test.clock.advanceBy(1);
    expect(test.stats().backlog).toBe(1);
    expect((await test.connect('shared')).take()).toBe('young');
  });

  it('keeps what is exactly that old', async () => {
    const test = new TestBroker({ messageTtlMs: minutes(5) });
    test.broker.createSubscription('t', 's');
    await test.publish('1');
    await test.clock.advanceBy(minutes(5));
    expect(test.stats().backlog).toBe(1);
  });

  it('of 0 is off and needs no timer', async () => {
    const test = new TestBroker();
    test.broker.createSubscription('t', 's');
    await test.publish('1');
    expect(test.clock.pendingTimers).toEqual([]);
    await test.clock.advanceBy(hours(100));
    expect(test.stats().backlog).toBe(1);
  });

  it('goes by publish time, also for what waits for its delivery time (Y-09)', async () => {
    const test = new TestBroker(TTL);
    const client = await test.connect('shared');
    void test.broker.publish(TOPIC, message('late', { deliverAtMs: test.clock.now() + hours(1) }));
    await test.clock.advanceBy(hours(2));
    expect([client.take(), test.stats().backlog, test.stats().delayed]).toEqual(['', 0, 0]);
  });

  it('holds for each subscription by itself and leaves a topic without any alone', async () => {
    const test = new TestBroker({ ...TTL, maxLedgerEntries: 1 });
    await test.broker.publish('other', message('kept'));
    test.broker.createSubscription('t', 's');
    test.broker.createSubscription('t', 'ahead');
    await test.publish('1');
    await test.clock.advanceBy(minutes(10));
    await test.publish('2');
    const backlogs = [...test.broker.stats('t').subscriptions.values()].map(({ backlog }) => backlog);
    expect([backlogs, test.broker.stats('other').entries]).toEqual([[1, 1], 1]);
  });

  it('records what it took, so that a store knows it', async () => {
    const records: unknown[] = [];
    const store = { append: () => undefined, acknowledge: (record: unknown) => void records.push(record) };
    const test = new TestBroker({ ...TTL, store });
    test.broker.createSubscription('t', 's');
    await test.publish('1', '2');
    await test.clock.advanceBy(minutes(10));
    expect(records).toMatchObject([{ subscription: 's', entryId: 1, cumulative: true }]);
  });
});

describe('expireMessages', () => {
  it('takes nothing too young where the store refused a message beside it', async () => {
    const refusing = { append: (): Stored => undefined, acknowledge: () => undefined };
    const test = new TestBroker({ store: refusing });
    const client = await test.connect('shared', 'c', { permits: 0 });
    await test.publish('old');
    await test.clock.advanceBy(minutes(5));
    await test.publish('young');
    refusing.append = () => Promise.reject(new Error('full'));
    await expect(test.broker.publish(TOPIC, message('refused'))).rejects.toThrow('full');
    refusing.append = () => undefined;
    await test.publish('younger');
    test.broker.expireMessages('t', 's', minutes(1));
    await client.flow(10);
    expect(client.take()).toBe('young younger');
  });
});

describe.each(SUBSCRIPTION_TYPES)('a message that expires in a consumer’s hands, %s', (type) => {
  it('is not told to it, is not sent again, and makes room', async () => {
    const test = new TestBroker({ ...TTL, activeConsumerFailoverDelayMs: 0, maxUnackedPerConsumer: 2 });
    const client = await test.connect(type);
    await test.publish('1', '2');
    await test.clock.advanceBy(minutes(10));
    expect([client.take(), client.disconnects]).toEqual(['1 2', 0]);
    expect(test.stats()).toMatchObject({ backlog: 0, unacked: 0 });
    await client.nack('1', '2');
    await client.ack('2');
    await test.publish('3');
    expect([client.take(), test.stats().redeliveries]).toEqual(['3', 0]);
  });

  it('goes to nobody else either when its consumer leaves', async () => {
    const test = new TestBroker({ ...TTL, activeConsumerFailoverDelayMs: 0 });
    const client = await test.connect(type);
    await test.publish('1');
    await client.nack('1');
    await test.clock.advanceBy(minutes(10));
    await client.close();
    expect((await test.connect(type, 'next')).take()).toBe('');
  });
});

describe('Y-08: how far ahead a delivery time may lie', () => {
  const at = (test: TestBroker, ms: number) =>
    test.broker.publish(TOPIC, message('x', { deliverAtMs: test.clock.now() + ms }));

  it('has a limit where one is set', async () => {
    const test = new TestBroker({ maxDeliveryDelayMs: 5_000 });
    await expect(at(test, 5_001)).rejects.toMatchObject({
      code: 'NOT_ALLOWED',
      retriable: false,
      message: expect.stringContaining('Exceeds max allowed delivery delay of 5000 milliseconds'),
    });
    const producer = test.broker.producer({ topic: TOPIC });
    const far = message('x', { deliverAtMs: test.clock.now() + 5_001 });
    await expect(producer.publish(far, 0)).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
    await at(test, 5_000);
    await test.publish('at once');
    expect(test.broker.stats('t').messagesIn).toBe(2);
  });

  it('has none otherwise', async () => {
    const test = new TestBroker();
    await at(test, hours(10_000));
    expect(test.broker.stats('t').messagesIn).toBe(1);
    await settlePromises();
  });
});
