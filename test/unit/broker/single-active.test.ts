import { describe, expect, it } from 'vitest';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TestBroker } from './broker-kit.js';

describe('Exclusive', () => {
  it('S-01: refuses a second consumer', async () => {
    const test = new TestBroker();
    await test.connect('exclusive');
    await expect(test.connect('exclusive')).rejects.toThrow('Exclusive consumer is already connected');
  });

  it('K-07: refuses a consumer of another type while one is connected', async () => {
    const test = new TestBroker();
    await test.connect('exclusive');
    await expect(test.connect('key-shared')).rejects.toThrow(
      "Subscription is of different type. Active subscription type of 'Exclusive' is different than the connecting consumer's type 'Key_Shared'.",
    );
  });

  it('S-05: takes another type once nobody is connected', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const first = await test.connect('exclusive');
    await first.close();
    const second = await test.connect('shared');
    expect(second.take()).toBe('1');
  });

  it('S-23, A-16: sends everything unacknowledged again, without a count', async () => {
    const test = new TestBroker();
    await test.publish('1', '2', '3');
    const client = await test.connect('exclusive');
    await client.ack('2');
    await client.nack('3');
    expect(client.take()).toBe('1 2 3 1 3');
  });

  it('S-25: acknowledges everything up to a message', async () => {
    const test = new TestBroker();
    await test.publish('1', '2', '3');
    const client = await test.connect('exclusive');
    void client.handle.acknowledgeCumulative(client.id('2'));
    await client.nack('3');
    expect([client.take(), test.stats().backlog, test.stats().unacked]).toEqual(['1 2 3 3', 1, 1]);
  });

  it('acknowledges the first messages of a batch cumulatively', async () => {
    const test = new TestBroker();
    await test.publish('1');
    await test.batch('a', 'b', 'c');
    const client = await test.connect('exclusive');
    void client.handle.acknowledgeCumulative(client.id('b'));
    await client.nack('c');
    expect([client.take(), test.stats().backlog, test.stats().unacked]).toEqual(['1 a b c c', 1, 1]);
  });

  it('S-24: gives what it held to whoever comes next', async () => {
    const test = new TestBroker();
    await test.publish('1', '2');
    const first = await test.connect('exclusive');
    await first.ack('1');
    await first.close();
    expect((await test.connect('exclusive')).take()).toBe('2');
  });
});

describe('Failover', () => {
  it('S-03: the first message comes after the takeover delay', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const client = await test.connect('failover');
    await test.clock.advanceBy(999);
    expect([client.take(), client.active]).toEqual(['', []]);
    await test.clock.advanceBy(1);
    expect([client.take(), client.active]).toEqual(['1', [true]]);
  });

  it('S-02, S-03: a consumer whose name comes first on the partition takes over, and unacknowledged messages come again', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 1);
    const topic = 'persistent://public/default/p-partition-0';
    for (const text of ['1', '2'])
      await test.broker.publish(topic, { payload: new TextEncoder().encode(text), properties: {} });
    const b = await test.connect('failover', 'b', { topic });
    await test.clock.advanceBy(1_000);
    await b.ack('1');
    const a = await test.connect('failover', 'a', { topic });
    await test.clock.advanceBy(1_000);
    expect([b.take(), a.take(), b.active, a.active]).toEqual(['1 2', '2', [true, false], [true]]);
  });

  it('tells a consumer that stands by so at once', async () => {
    const test = new TestBroker();
    const topic = 'persistent://public/default/q-partition-0';
    await test.connect('failover', 'a', { topic });
    await test.clock.advanceBy(1_000);
    const b = await test.connect('failover', 'b', { topic });
    expect(b.active).toEqual([false]);
  });

  it('S-13: keeps the permits of a consumer that stands by', async () => {
    const test = new TestBroker();
    const topic = 'persistent://public/default/q-partition-0';
    const a = await test.connect('failover', 'a', { topic });
    const b = await test.connect('failover', 'b', { topic, permits: 7 });
    await test.clock.advanceBy(1_000);
    await a.close();
    await test.clock.advanceBy(1_000);
    await test.broker.publish(topic, { payload: null, properties: {} });
    await settlePromises();
    expect([b.received.length, test.stats(topic).consumers[0]?.permits]).toEqual([1, 6]);
  });

  it('S-23: only the active one may ask for redelivery', async () => {
    const test = new TestBroker();
    const topic = 'persistent://public/default/q-partition-0';
    await test.broker.publish(topic, { payload: new TextEncoder().encode('1'), properties: {} });
    const a = await test.connect('failover', 'a', { topic });
    const b = await test.connect('failover', 'b', { topic });
    await test.clock.advanceBy(1_000);
    b.handle.redeliver([a.id('1')]);
    await settlePromises();
    expect(a.take()).toBe('1');
  });

  it('leaves no timer behind when the last consumer leaves', async () => {
    const test = new TestBroker();
    const client = await test.connect('failover');
    await client.close();
    expect(test.clock.pendingTimers).toEqual([]);
  });
});
