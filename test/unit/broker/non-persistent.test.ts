import { describe, expect, it } from 'vitest';
import type { BrokerStore } from '../../../src/broker/broker-store.js';
import { SUBSCRIPTION_TYPES } from '../../../src/core/subscription-spec.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import type { TestClient } from './broker-kit.js';
import { TestBroker, message } from './broker-kit.js';

const topic = 'non-persistent://public/default/n';

async function publish(test: TestBroker, ...texts: string[]): Promise<void> {
  for (const text of texts) await test.broker.publish(topic, message(text, { key: text }));
  await settlePromises();
}

describe.each(SUBSCRIPTION_TYPES)('a topic that is not persistent, %s', (type) => {
  const connect = (test: TestBroker, permits?: number): Promise<TestClient> =>
    test.connect(type, 'c', { topic, ...(permits !== undefined && { permits }) });

  it('sends at once, and only what there are permits for; the rest is gone', async () => {
    const test = new TestBroker();
    const client = await connect(test, 2);
    await publish(test, '1', '2', '3');
    await client.flow(5);
    await publish(test, '4');
    expect(client.take()).toBe('1 2 4');
  });

  it('keeps nothing: not what nobody reads, nor what is not acknowledged', async () => {
    const test = new TestBroker();
    await publish(test, 'before');
    const client = await connect(test);
    await publish(test, '1');
    expect([client.take(), test.stats(topic)]).toMatchObject(['1', { backlog: 0, unacked: 0, replay: 0, delayed: 0 }]);
    await client.close();
    await publish(test, 'meanwhile');
    expect((await connect(test)).take()).toBe('');
    expect(test.broker.stats(topic)).toMatchObject({ entries: 0, ledgers: 0, messagesIn: 3 });
  });

  it('A-16: counts nothing and sends nothing again, whatever is asked for', async () => {
    const test = new TestBroker();
    const client = await connect(test);
    await publish(test, '1');
    await client.nack('1');
    client.handle.redeliverAll();
    client.handle.seek('earliest');
    await client.ack('1');
    expect([client.take(), client.disconnects, test.stats(topic).redeliveries]).toEqual(['1', 0, 0]);
    await publish(test, '2');
    expect(client.take()).toBe('2');
  });

  it('Y-02: sends delayed messages at once', async () => {
    const test = new TestBroker();
    const client = await connect(test);
    await test.broker.publish(topic, message('late', { deliverAtMs: test.clock.now() + 5_000 }));
    await settlePromises();
    expect([client.take(), test.clock.pendingTimers]).toEqual(['late', []]);
  });

  it('goes on after an unload, of which subscriptions do not survive anything', async () => {
    const test = new TestBroker();
    const client = await connect(test);
    test.broker.unload(topic);
    expect(test.broker.stats(topic).subscriptions.size).toBe(0);
    await settlePromises();
    const next = await connect(test);
    await publish(test, '1');
    expect([client.disconnects, client.take(), next.take()]).toEqual([1, '', '1']);
  });
});

describe('a topic that is not persistent', () => {
  it('gives all messages the place 0:0', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared', 'c', { topic });
    const ids = await Promise.all([1, 2].map((n) => test.broker.publish(topic, message(`${n}`))));
    await settlePromises();
    expect([...ids, client.id('1'), client.id('2')].map(({ ledgerId, entryId }) => [ledgerId, entryId])).toEqual(
      [0, 0, 0, 0].map((zero) => [zero, zero]),
    );
  });

  it('gives each subscription what it publishes, and divides it among consumers of one', async () => {
    const test = new TestBroker();
    const clients = [await test.connect('shared', 'a', { topic }), await test.connect('shared', 'b', { topic })];
    await publish(test, ...Array.from({ length: 40 }, (_, n) => `${n}`));
    expect(clients.map((client) => client.received.length)).toEqual([20, 20]);
  });

  it('keeps a key at one consumer, and drops what that one cannot take', async () => {
    const test = new TestBroker();
    const clients = [
      await test.connect('key-shared', 'a', { topic, permits: 1 }),
      await test.connect('key-shared', 'b', { topic, permits: 1 }),
    ];
    await publish(test, 'k', 'k', 'k');
    expect(clients.map((client) => client.take()).toSorted()).toEqual(['', 'k']);
    for (const client of clients) await client.flow(10);
    expect([clients.map((client) => client.take()), test.stats(topic).replay]).toEqual([['', ''], 0]);
  });

  it('knows producers and their names, but no repetitions', async () => {
    const test = new TestBroker({ deduplication: true });
    const producer = test.broker.producer({ topic, producerName: 'n' });
    expect(() => test.broker.producer({ topic, producerName: 'n' })).toThrow(
      expect.objectContaining({ code: 'PRODUCER_BUSY' }),
    );
    await producer.publish(message('1'), 0);
    await producer.publish(message('1'), 0);
    expect(test.broker.stats(topic).messagesIn).toBe(2);
  });

  it('asks no store', async () => {
    let calls = 0;
    const count = (): undefined => void (calls += 1);
    const store: BrokerStore = { append: count, acknowledge: count };
    const test = new TestBroker({ store });
    await test.connect('shared', 'c', { topic });
    await publish(test, '1', '2', '3');
    expect(calls).toBe(0);
  });

  it('can have partitions, cannot be terminated, and takes no subscription without a consumer', async () => {
    const { broker } = new TestBroker();
    broker.createPartitionedTopic(topic, 2);
    expect((await broker.publish(topic, message('x'))).topic).toBe(`${topic}-partition-0`);
    const refused = expect.objectContaining({ code: 'NOT_SUPPORTED', retriable: false }) as Error;
    expect(() => broker.terminate(topic)).toThrow(refused);
    expect(() => broker.createSubscription(topic, 's')).toThrow(refused);
    broker.deleteTopic(topic);
    expect(broker.topics()).toEqual([]);
  });
});
