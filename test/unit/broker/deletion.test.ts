import { describe, expect, it } from 'vitest';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

const refused = (connected: number): Error =>
  expect.objectContaining({
    code: 'NOT_ALLOWED',
    retriable: true,
    message: expect.stringContaining(`${connected} `),
  }) as Error;
const notFound = expect.objectContaining({ code: 'TOPIC_NOT_FOUND' }) as Error;

describe('deleting a topic', () => {
  it('removes it with its subscriptions and what they had not acknowledged', async () => {
    const test = new TestBroker();
    await (await test.connect('shared')).close();
    await test.publish('1');
    test.broker.deleteTopic('t');
    expect(test.broker.topics()).toEqual([]);
    expect(() => test.broker.deleteTopic('t')).toThrow(notFound);
    expect((await test.connect('shared')).take()).toBe('');
  });

  it('is refused while consumers or producers are connected', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    const producer = test.broker.producer({ topic: 't' });
    expect(() => test.broker.deleteTopic('t')).toThrow(refused(2));
    await client.close();
    expect(() => test.broker.deleteTopic('t')).toThrow(refused(1));
    producer.close();
    test.broker.deleteTopic('t');
    expect(test.broker.topics()).toEqual([]);
  });

  it('by force disconnects them; who comes again makes it anew', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.publish('1');
    let disconnects = 0;
    const producer = test.broker.producer({ topic: 't', producerName: 'n' }, () => (disconnects += 1));
    test.broker.deleteTopic('t', { force: true });
    expect([client.disconnects, disconnects]).toEqual([0, 0]);
    await settlePromises();
    expect([client.disconnects, disconnects, test.broker.topics()]).toEqual([1, 1, []]);

    const lost = { code: 'CONNECTION_LOST', retriable: true };
    await expect(producer.publish(message('x'), 0)).rejects.toMatchObject(lost);
    expect(() => client.handle.acknowledge([client.id('1')])).toThrow(expect.objectContaining(lost));

    const again = await test.connect('shared', 'again');
    await test.broker.producer({ topic: 't', producerName: 'n' }).publish(message('2'), 0);
    await settlePromises();
    expect([again.take(), test.broker.stats('t').messagesIn]).toEqual(['2', 1]);
  });

  it('takes all partitions; a partition that somebody comes back to is a topic without a parent then', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 2);
    const [, second] = test.broker.partitionsOf('p') as [string, string];
    const client = await test.connect('shared', 'c', { topic: second });
    expect(() => test.broker.deleteTopic('p')).toThrow(refused(1));
    test.broker.deleteTopic('p', { force: true });
    await settlePromises();
    expect(client.disconnects).toBe(1);
    await test.connect('shared', 'c', { topic: second });
    expect(test.broker.topics()).toEqual([second]);
    test.broker.createPartitionedTopic('p', 3);
    expect(test.broker.partitionsOf('p')).toHaveLength(3);
  });

  it('leaves no timer of delayed messages behind', async () => {
    const test = new TestBroker();
    await test.connect('shared');
    void test.broker.publish(TOPIC, message('late', { deliverAtMs: test.clock.now() + 5_000 }));
    await settlePromises();
    expect(test.clock.pendingTimers).toEqual([5_000]);
    test.broker.deleteTopic('t', { force: true });
    expect(test.clock.pendingTimers).toEqual([]);
  });
});

describe('deleting a subscription', () => {
  it('forgets what it had not acknowledged, and ledgers that were kept for it alone', async () => {
    const test = new TestBroker({ maxLedgerEntries: 1 });
    test.broker.createSubscription('t', 's');
    await test.publish('1', '2', '3');
    expect(test.broker.stats('t').entries).toBe(3);
    test.broker.deleteSubscription('t', 's');
    expect(test.broker.stats('t')).toMatchObject({ entries: 1, subscriptions: new Map() });
  });

  it('is refused while consumers are connected, on any partition, and changes nothing then', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 2);
    test.broker.createSubscription('p', 's');
    const [, second] = test.broker.partitionsOf('p');
    await test.connect('shared', 'c', { topic: second ?? '' });
    expect(() => test.broker.deleteSubscription('p', 's')).toThrow(refused(1));
    expect(() => test.broker.deleteSubscription('p', 's')).toThrow('"force" disconnects them');
    expect(test.broker.partitionsOf('p').map((name) => test.stats(name).backlog)).toEqual([0, 0]);
  });

  it('by force disconnects them', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    test.broker.deleteSubscription('t', 's', { force: true });
    await settlePromises();
    expect([client.disconnects, test.broker.stats('t').subscriptions.size]).toEqual([1, 0]);
  });

  it('that does not exist is an error', async () => {
    const test = new TestBroker();
    await test.publish('1');
    expect(() => test.broker.deleteSubscription('t', 'nobody')).toThrow(notFound);
  });
});

describe('S-30: unsubscribing', () => {
  it('deletes the subscription and closes the consumer', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.publish('1');
    client.handle.unsubscribe();
    await settlePromises();
    expect([test.broker.stats('t').subscriptions.size, client.disconnects]).toEqual([0, 0]);
    expect(() => client.handle.flow(1)).toThrow(expect.objectContaining({ code: 'ALREADY_CLOSED' }));
  });

  it.each(['shared', 'failover'] as const)('takes exactly one connected consumer, %s', async (type) => {
    const test = new TestBroker();
    const clients = [await test.connect(type, 'a'), await test.connect(type, 'b')] as const;
    for (const { handle } of clients) {
      expect(() => handle.unsubscribe()).toThrow(expect.objectContaining({ code: 'BROKER_ERROR', retriable: true }));
    }
    await clients[0].close();
    clients[1].handle.unsubscribe();
    expect(test.broker.stats('t').subscriptions.size).toBe(0);
  });

  it('needs a consumer that is still connected', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    test.broker.unload('t');
    expect(() => client.handle.unsubscribe()).toThrow(expect.objectContaining({ code: 'CONNECTION_LOST' }));
    expect(test.broker.stats('t').subscriptions.size).toBe(1);
  });
});
