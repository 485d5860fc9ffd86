import { describe, expect, it } from 'vitest';
import { SUBSCRIPTION_TYPES } from '../../../src/core/subscription-spec.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

async function unload(test: TestBroker, topic = TOPIC): Promise<void> {
  test.broker.unload(topic);
  await settlePromises();
}

describe.each(SUBSCRIPTION_TYPES)('an unload, %s', (type) => {
  it('disconnects the consumer; what it held comes again to the next one, and what it acknowledged does not', async () => {
    const test = new TestBroker({ activeConsumerFailoverDelayMs: 0 });
    const client = await test.connect(type);
    await test.publish('1', '2', '3');
    await client.ack('2');

    await unload(test);

    expect([client.disconnects, test.stats().consumers]).toEqual([1, []]);
    expect((await test.connect(type, 'c2')).take()).toBe('1 3');
  });

  it('sends nothing more to the consumer, whose permits are void and whose calls fail until it subscribes again', async () => {
    const test = new TestBroker({ activeConsumerFailoverDelayMs: 0 });
    const client = await test.connect(type);
    await test.publish('1');
    client.take();

    test.broker.unload(TOPIC);

    const lost = { code: 'CONNECTION_LOST', retriable: true };
    expect(() => client.handle.acknowledge([client.id('1')])).toThrow(expect.objectContaining(lost));
    expect(() => client.handle.redeliver([client.id('1')])).toThrow(expect.objectContaining(lost));
    expect(() => client.handle.seek('earliest')).toThrow(expect.objectContaining(lost));
    await client.flow(10);
    await test.publish('2');
    expect(client.take()).toBe('');
    await client.close();
    expect(() => client.handle.redeliver([])).toThrow(expect.objectContaining({ code: 'ALREADY_CLOSED' }));
  });
});

describe('an unload', () => {
  it('A-19: loses all counts', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.publish('1');
    await client.nack('1');
    expect(client.take()).toBe('1 1*');

    await unload(test);

    const next = await test.connect('shared', 'c2');
    expect(next.take()).toBe('1');
    await next.nack('1');
    expect(next.take()).toBe('1*');
  });

  it('disconnects those that stand by, too', async () => {
    const test = new TestBroker();
    const clients = [await test.connect('failover', 'a'), await test.connect('failover', 'b')];
    await unload(test);
    expect(clients.map(({ disconnects }) => disconnects)).toEqual([1, 1]);
  });

  it('forgets the type, so that another one may come first', async () => {
    const test = new TestBroker();
    await test.connect('exclusive');
    test.broker.unload(TOPIC);
    await test.publish('1');
    expect((await test.connect('shared', 'other')).take()).toBe('1');
  });

  it('begins a new ledger with the next entry, and the order stays', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    const [first] = await test.publish('1');
    await unload(test);
    await unload(test);
    const [second] = await test.publish('2');
    expect([second?.ledgerId, second?.entryId]).toEqual([(first?.ledgerId ?? 0) + 1, 0]);
    expect(client.take()).toBe('1');
    expect((await test.connect('shared', 'c2')).take()).toBe('1 2');
  });

  it('A-11: forgets what was acknowledged of a batch that is not done', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.batch('1', '2', '3');
    await test.batch('4', '5');
    await client.ack('1', '3', '4', '5');
    await unload(test);
    const next = await test.connect('shared', 'c2');
    expect([next.take(), test.stats().unacked]).toEqual(['1 2 3', 3]);
    await next.ack('1', '2', '3');
    expect(test.stats().backlog).toBe(0);
  });

  it('keeps delivery times', async () => {
    const test = new TestBroker();
    await test.connect('shared');
    void test.broker.publish(TOPIC, message('late', { deliverAtMs: test.clock.now() + 5_000 }));
    await settlePromises();
    await unload(test);
    const next = await test.connect('shared', 'c2');
    await test.clock.advanceBy(4_999);
    expect(next.take()).toBe('');
    await test.clock.advanceBy(1);
    expect(next.take()).toBe('late');
  });

  it('reaches each partition, or the one that is named', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 2);
    const names = test.broker.partitionsOf('p');
    const clients = await Promise.all(names.map((topic) => test.connect('shared', 'c', { topic })));
    await unload(test, names[1]);
    expect(clients.map(({ disconnects }) => disconnects)).toEqual([0, 1]);
    await unload(test, 'p');
    expect(clients.map(({ disconnects }) => disconnects)).toEqual([1, 1]);
  });

  it('S-25: removes what everybody has acknowledged, also where it is all that there is', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.publish('1', '2');
    await client.ack('1', '2');

    await unload(test);

    expect(test.broker.stats(TOPIC)).toMatchObject({ ledgers: 1, entries: 0 });
    const next = await test.connect('shared', 'c2');
    next.handle.seek('earliest');
    await test.publish('3');
    expect((await test.connect('shared', 'c3')).take()).toBe('3');
  });

  it('S-25: leaves what is acknowledged afterwards until a message of the next ledger is', async () => {
    const test = new TestBroker();
    await test.connect('shared');
    await test.publish('1', '2');
    await unload(test);
    await test.publish('3', '4');
    const client = await test.connect('shared', 'c2');

    await client.ack('1', '2');
    expect(test.broker.stats(TOPIC)).toMatchObject({ ledgers: 2, entries: 4 });
    await client.ack('3');
    expect(test.broker.stats(TOPIC)).toMatchObject({ ledgers: 1, entries: 2 });
  });

  it('of a topic that does not exist is an error', () => {
    const test = new TestBroker();
    expect(() => test.broker.unload('nobody')).toThrow(expect.objectContaining({ code: 'TOPIC_NOT_FOUND' }));
  });
});
