import { describe, expect, it } from 'vitest';
import { SUBSCRIPTION_TYPES } from '../../../src/core/subscription-spec.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

async function restart(test: TestBroker): Promise<void> {
  test.broker.restart();
  await settlePromises();
}

describe.each(SUBSCRIPTION_TYPES)('a restart of the broker, %s', (type) => {
  it('disconnects all consumers of all topics and keeps what is stored and acknowledged', async () => {
    const test = new TestBroker({ activeConsumerFailoverDelayMs: 0 });
    const other = 'persistent://public/default/other';
    const clients = [await test.connect(type), await test.connect(type, 'c', { topic: other })] as const;
    await test.publish('1', '2', '3');
    await test.broker.publish('other', message('4'));
    await clients[0].ack('2');
    test.broker.restart();
    expect(clients.map(({ disconnects }) => disconnects)).toEqual([0, 0]);
    await settlePromises();
    expect(clients.map(({ disconnects }) => disconnects)).toEqual([1, 1]);
    expect((await test.connect(type, 'n')).take()).toBe('1 3');
    expect((await test.connect(type, 'n', { topic: other })).take()).toBe('4');
  });
});

describe('a restart of the broker', () => {
  it('A-19: resets counts', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.publish('1');
    await client.nack('1');
    await restart(test);
    expect([client.take(), (await test.connect('shared')).take()]).toEqual(['1 1*', '1']);
  });

  it('keeps messages until their delivery time', async () => {
    const test = new TestBroker();
    await test.connect('shared');
    void test.broker.publish(TOPIC, message('late', { deliverAtMs: test.clock.now() + 5_000 }));
    await settlePromises();
    await restart(test);
    const next = await test.connect('shared');
    await test.clock.advanceBy(4_999);
    expect(next.take()).toBe('');
    await test.clock.advanceBy(1);
    expect(next.take()).toBe('late');
  });

  it('lets producers go on, into new ledgers; a terminated topic stays so', async () => {
    const test = new TestBroker();
    const producer = test.broker.producer({ topic: TOPIC });
    const first = await producer.publish(message('1'), 0);
    await restart(test);
    const second = await producer.publish(message('2'), 1);
    expect(second.ledgerId).toBeGreaterThan(first.ledgerId);
    test.broker.terminate('t');
    await restart(test);
    await expect(producer.publish(message('3'), 2)).rejects.toMatchObject({ code: 'TOPIC_TERMINATED' });
  });

  it('of an empty broker does nothing', () => {
    const test = new TestBroker();
    test.broker.restart();
    expect(test.broker.topics()).toEqual([]);
  });
});
