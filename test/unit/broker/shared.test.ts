import { describe, expect, it } from 'vitest';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

describe('Shared: who gets what', () => {
  it('S-04: goes round the consumers in chunks', async () => {
    const test = new TestBroker({ roundRobinChunk: 2 });
    await test.publish('1', '2', '3', '4', '5', '6');
    const [a, b] = [
      await test.connect('shared', 'a', { permits: 0 }),
      await test.connect('shared', 'b', { permits: 0 }),
    ];
    a.handle.flow(10);
    b.handle.flow(10);
    await settlePromises();
    expect([a.take(), b.take()]).toEqual(['1 2 5 6', '3 4']);
  });

  it('S-04: uses a lower priority only when no higher one has permits', async () => {
    const test = new TestBroker({ roundRobinChunk: 1 });
    const permits = { C1: 2, C2: 1, C3: 1, C4: 2, C5: 1 };
    const clients = [];
    for (const name of Object.keys(permits)) {
      clients.push(await test.connect('shared', name, { permits: 0, priority: name > 'C3' ? 1 : 0 }));
    }
    for (const [i, client] of clients.entries()) client.handle.flow(Object.values(permits)[i]!);
    await test.publish('1', '2', '3', '4', '5', '6', '7');
    // The order C1, C2, C3, C1, C4, C5, C4 of Pulsar's own example.
    expect(clients.map((client) => client.take())).toEqual(['1 4', '2', '3', '5 7', '6']);
  });

  it('S-10: sends nothing without permits', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared', 'c', { permits: 0 });
    await test.publish('1', '2', '3');
    expect(client.take()).toBe('');
    await client.flow(2);
    expect(client.take()).toBe('1 2');
  });

  it('S-11: sends a whole batch for one permit and takes permits below zero', async () => {
    const test = new TestBroker();
    await test.batch('a', 'b', 'c');
    await test.publish('d');
    const client = await test.connect('shared', 'c', { permits: 1 });
    expect([client.take(), test.stats().consumers[0]?.permits]).toEqual(['a b c', -2]);
    await client.flow(2);
    expect(client.take()).toBe('');
    await client.flow(1);
    expect(client.take()).toBe('d');
  });

  it('S-11: charges only the messages of a batch that are still unacknowledged', async () => {
    const test = new TestBroker();
    await test.batch('a', 'b', 'c');
    const client = await test.connect('shared', 'c', { permits: 3 });
    await client.ack('b');
    await client.nack('a');
    await client.flow(4);
    expect([client.take(), test.stats().consumers[0]?.permits]).toEqual(['a b c a* c*', 2]);
  });

  it.each([0, -1, 1.5, Number.NaN])('S-13: refuses a flow of %s permits', async (permits) => {
    const client = await new TestBroker().connect('shared');
    expect(() => client.handle.flow(permits)).toThrow('permits must be a positive integer');
  });

  it('S-12: blocks a consumer at the limit and unblocks it at half, with the permits that came meanwhile', async () => {
    const test = new TestBroker({ maxUnackedPerConsumer: 4 });
    await test.publish('1', '2', '3', '4', '5', '6', '7');
    const client = await test.connect('shared', 'c', { permits: 4 });
    await client.flow(3);
    expect([client.take(), test.stats().consumers[0]?.blocked]).toEqual(['1 2 3 4', true]);
    await client.ack('1');
    expect(client.take()).toBe('');
    await client.ack('2');
    expect(client.take()).toBe('5 6');
  });

  it('S-12: a blocked subscription reads no new entries but sends again what was asked for', async () => {
    const test = new TestBroker({ maxUnackedPerSubscription: 4 });
    await test.publish('1', '2', '3', '4', '5', '6');
    const client = await test.connect('shared');
    await client.nack('2', '3');
    // Two were given back, so two are unacknowledged besides: not below half.
    expect([client.take(), test.stats().blocked]).toEqual(['1 2 3 4 2* 3*', true]);
    await client.ack('1', '2', '3');
    expect(client.take()).toBe('5 6');
  });
});

describe('Shared: redelivery and its counts', () => {
  it('S-20: sends again before new ones, smallest position first', async () => {
    const test = new TestBroker();
    await test.publish('1', '2', '3', '4');
    const client = await test.connect('shared', 'c', { permits: 3 });
    await client.nack('3', '1');
    await client.flow(3);
    expect(client.take()).toBe('1 2 3 1* 3* 4');
  });

  it('S-21: does not send again what was acknowledged meanwhile', async () => {
    const test = new TestBroker();
    await test.publish('1', '2');
    const client = await test.connect('shared', 'c', { permits: 2 });
    await client.nack('1', '2');
    await client.ack('1');
    expect(test.stats().replay).toBe(1);
    await client.flow(2);
    expect(client.take()).toBe('1 2 2*');
  });

  it('S-22: ignores ids that are not pending at the sender, and counts nothing', async () => {
    const test = new TestBroker({ roundRobinChunk: 1 });
    await test.publish('1', '2');
    const a = await test.connect('shared', 'a', { permits: 1 });
    const b = await test.connect('shared', 'b', { permits: 1 });
    b.handle.redeliver([a.id('1')]);
    await b.flow(1);
    expect([b.take(), test.stats().redeliveries]).toEqual(['2', 0]);
  });

  it('A-17: counts each request once', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const client = await test.connect('shared');
    await client.nack('1');
    await client.nack('1');
    expect(client.take()).toBe('1 1* 1**');
  });

  it('A-18: does not count when a consumer leaves', async () => {
    const test = new TestBroker();
    await test.publish('1', '2');
    const a = await test.connect('shared', 'a', { permits: 2 });
    const b = await test.connect('shared', 'b');
    await a.nack('2');
    expect(b.take()).toBe('2*');
    await a.close();
    expect(b.take()).toBe('1');
  });

  it('A-19: starts again at 0 after one message of the entry was acknowledged', async () => {
    const test = new TestBroker();
    await test.batch('a', 'b');
    const client = await test.connect('shared');
    await client.nack('a');
    await client.ack('a');
    await client.nack('b');
    expect(client.take()).toBe('a b a* b* b*');
  });

  it('A-19, S-06: forgets all counts when the last consumer leaves, nothing is acknowledged, and the next finds a fresh state', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const client = await test.connect('shared');
    await client.nack('1');
    await client.close();
    const next = await test.connect('shared');
    expect([client.take(), next.take(), test.stats().backlog]).toEqual(['1 1*', '1', 1]);
  });

  it('A-20: asking for everything counts what the client had not handed on', async () => {
    const test = new TestBroker();
    await test.publish('1', '2');
    const client = await test.connect('shared');
    client.handle.redeliverAll();
    await settlePromises();
    expect(client.take()).toBe('1 2 1* 2*');
  });

  it('A-21: a redelivery request lowers the unacknowledged count and unblocks the consumer', async () => {
    const test = new TestBroker({ maxUnackedPerConsumer: 2 });
    await test.publish('1', '2');
    const client = await test.connect('shared', 'c', { permits: 2 });
    expect(test.stats().consumers[0]).toMatchObject({ unacked: 2, blocked: true });
    await client.nack('1', '2');
    expect(test.stats().consumers[0]).toMatchObject({ unacked: 0, blocked: false });
  });
});

describe('Shared: acknowledgement', () => {
  it('A-11: a batch goes with its last message, and what was acknowledged does not come again', async () => {
    const test = new TestBroker();
    await test.batch('a', 'b', 'c');
    const client = await test.connect('shared');
    await client.ack('b');
    await client.nack('a');
    expect([client.take(), test.stats().backlog, test.stats().unacked]).toEqual(['a b c a* c*', 1, 2]);
    await client.ack('a', 'c');
    expect([test.stats().backlog, test.stats().unacked]).toEqual([0, 0]);
  });

  it('A-14: any consumer may acknowledge what another one holds', async () => {
    const test = new TestBroker({ roundRobinChunk: 1 });
    await test.publish('1');
    const a = await test.connect('shared', 'a');
    const b = await test.connect('shared', 'b');
    void b.handle.acknowledge([a.id('1')]);
    expect([test.stats().backlog, test.stats().unacked]).toEqual([0, 0]);
  });

  it('A-15: acknowledging again, or an entry that is not there, changes nothing', async () => {
    const test = new TestBroker();
    await test.publish('1', '2');
    const client = await test.connect('shared');
    await client.ack('1', '1');
    void client.handle.acknowledge([{ ...client.id('2'), entryId: 17 }]);
    expect([test.stats().backlog, test.stats().unacked]).toEqual([1, 1]);
  });

  it('A-13: refuses a cumulative one', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const client = await test.connect('shared');
    expect(() => client.handle.acknowledgeCumulative(client.id('1'))).toThrow('needs an exclusive or failover');
  });
});

describe('delayed delivery', () => {
  const later = (test: TestBroker, text: string, delayMs: number): Promise<unknown> =>
    test.broker.publish(TOPIC, message(text, { deliverAtMs: test.clock.now() + delayMs, key: 'k' }));

  it.each(['shared', 'key-shared'] as const)('Y-02: %s gets it when it is due, never before', async (type) => {
    const test = new TestBroker();
    const client = await test.connect(type);
    await later(test, 'late', 1_000);
    await test.publish('now@k');
    await test.clock.advanceBy(999);
    expect(client.take()).toBe('now@k');
    await test.clock.advanceBy(1);
    expect(client.take()).toBe('late');
  });

  it.each(['exclusive', 'failover'] as const)('Y-02: %s gets it at once', async (type) => {
    const test = new TestBroker({ activeConsumerFailoverDelayMs: 0 });
    const client = await test.connect(type);
    await later(test, 'late', 1_000);
    await settlePromises();
    expect(client.take()).toBe('late');
  });

  it('Y-05: takes no permit and counts as neither unacknowledged nor acknowledged while it is parked', async () => {
    const test = new TestBroker();
    await test.connect('shared', 'c', { permits: 1 });
    await later(test, 'late', 1_000);
    await settlePromises();
    expect(test.stats()).toMatchObject({ delayed: 1, unacked: 0, backlog: 1, consumers: [{ permits: 1 }] });
  });

  it('Y-05: comes in position order among those due, with the count unchanged', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared', 'c', { permits: 0 });
    await client.flow(1);
    await test.publish('first');
    await later(test, 'b', 200);
    await later(test, 'a', 100);
    await settlePromises();
    await test.clock.advanceBy(200);
    await client.flow(5);
    expect(client.take()).toBe('first b a');
  });

  it('Y-06: a time in the past means at once, and a nack does not delay again', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await later(test, 'x', -5);
    await settlePromises();
    await client.nack('x');
    expect(client.take()).toBe('x x*');
  });

  it('Y-08: a new first consumer parks it anew, and no timer outlives the last one', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await later(test, 'late', 1_000);
    await settlePromises();
    await client.close();
    expect(test.clock.pendingTimers).toEqual([]);
    const next = await test.connect('shared');
    await test.clock.advanceBy(1_000);
    expect(next.take()).toBe('late');
  });

  it('Y-01: a batch with a delayed message is refused', async () => {
    const test = new TestBroker();
    const batch = test.broker.publishBatch(TOPIC, [message('x', { deliverAtMs: 5 })]);
    await expect(batch).rejects.toThrow('a batch holds no delayed messages');
  });
});
