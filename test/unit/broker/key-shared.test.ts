// Owners used here (K-05): with c1 and c2, key A belongs to c2 and C to c1; c3 takes both over when it joins.
import { describe, expect, it } from 'vitest';
import { TOPIC, TestBroker, message } from './broker-kit.js';

describe('Key_Shared', () => {
  it('K-05: sends each key to its owner', async () => {
    const test = new TestBroker();
    const [c1, c2] = [await test.connect('key-shared', 'c1'), await test.connect('key-shared', 'c2')];
    await test.publish('1@A', '2@C', '3@key1', '4@B');
    expect([c1.take(), c2.take()]).toEqual(['2@C 3@key1', '1@A 4@B']);
  });

  it('K-01: the ordering key decides where there is one', async () => {
    const test = new TestBroker();
    const [c1, c2] = [await test.connect('key-shared', 'c1'), await test.connect('key-shared', 'c2')];
    const orderingKey = new TextEncoder().encode('C');
    await test.broker.publish(TOPIC, message('x', { key: 'A', orderingKey }));
    await test.publish();
    expect([c1.take(), c2.take()]).toEqual(['x', '']);
  });

  it('K-01: a batch goes whole to the owner of its first key', async () => {
    const test = new TestBroker();
    const [c1, c2] = [await test.connect('key-shared', 'c1'), await test.connect('key-shared', 'c2')];
    await test.batch('1@A', '2@C');
    expect([c1.take(), c2.take()]).toEqual(['', '1@A 2@C']);
  });

  it('one consumer without permits does not hold up the others', async () => {
    const test = new TestBroker();
    const c1 = await test.connect('key-shared', 'c1');
    const c2 = await test.connect('key-shared', 'c2', { permits: 1 });
    await test.publish('1@A', '2@A', '3@C', '4@A', '5@C');
    expect([c1.take(), c2.take()]).toEqual(['3@C 5@C', '1@A']);
    await c2.flow(5);
    expect(c2.take()).toBe('2@A 4@A');
  });

  it('K-09: the moved hash drains first, and goes to its new owner when the old one holds none of it', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2');
    await test.publish('1@A', '2@A', '3@k2');
    await test.connect('key-shared', 'c1');
    const c3 = await test.connect('key-shared', 'c3');
    await test.publish('4@A', '5@k2');
    expect([c2.take(), c3.take(), test.stats().drainingHashes]).toEqual(['1@A 2@A 3@k2 5@k2', '', 1]);
    await c2.ack('1@A');
    expect(c3.take()).toBe('');
    await c2.ack('2@A');
    expect([c3.take(), test.stats().drainingHashes]).toEqual(['4@A', 0]);
  });

  it('K-10: what the old owner gives back drains too, and goes to the new owner first', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2');
    await test.publish('1@A');
    const c3 = await test.connect('key-shared', 'c3');
    await test.publish('2@A');
    await c2.nack('1@A');
    expect(c3.take()).toBe('1@A* 2@A');
  });

  it('K-10: a hash that comes back to the one that drains it is free at once', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2');
    await test.publish('1@A');
    const c3 = await test.connect('key-shared', 'c3');
    await test.publish('2@A');
    await c3.close();
    expect([c2.take(), test.stats().drainingHashes]).toEqual(['1@A 2@A', 0]);
  });

  it('K-10: one message of a batch does not free the hash', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2');
    await test.batch('1@A', '2@A');
    const c3 = await test.connect('key-shared', 'c3');
    await test.publish('3@A');
    await c2.ack('1@A');
    expect([c3.take(), test.stats().drainingHashes]).toEqual(['', 1]);
  });

  it('K-12: what waits for its consumer keeps later messages of its key behind it', async () => {
    const test = new TestBroker();
    await test.connect('key-shared', 'c1', { permits: 0 });
    const c2 = await test.connect('key-shared', 'c2', { permits: 2 });
    await test.publish('1@A', '2@A', '3@A', '4@A');
    await c2.flow(1);
    expect(c2.take()).toBe('1@A 2@A 3@A');
  });

  it('K-13: a nacked message does not hold back later ones of its key', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2', { permits: 1 });
    await test.publish('1@A');
    await c2.nack('1@A');
    await test.publish('2@A', '3@A');
    await c2.flow(2);
    expect(c2.take()).toBe('1@A 1@A* 2@A');
  });

  it('K-13: what a leaving consumer held comes to the next owner in order, before later ones', async () => {
    const test = new TestBroker();
    const c1 = await test.connect('key-shared', 'c1', { permits: 2 });
    const c2 = await test.connect('key-shared', 'c2', { permits: 3 });
    await test.publish('1@A', '2@A', '3@A', '4@A');
    await c2.ack('2@A');
    await c2.close();
    await c1.flow(2);
    expect(c1.take()).toBe('1@A 3@A 4@A');
  });

  it('K-14: reads ahead no further than the limit for consumers that cannot take', async () => {
    const test = new TestBroker({ keySharedLookAheadPerConsumer: 1 });
    const c1 = await test.connect('key-shared', 'c1');
    const c2 = await test.connect('key-shared', 'c2', { permits: 0 });
    await test.publish('1@A', '2@A', '3@C');
    expect([c1.take(), test.stats().replay]).toEqual(['', 2]);
    await c2.flow(1);
    expect([c1.take(), c2.take()]).toEqual(['3@C', '1@A']);
  });

  it('K-08: two keys in one slot are drained together', async () => {
    const test = new TestBroker();
    // key-107 and key-411 share slot 52221 (K-04).
    const c1 = await test.connect('key-shared', 'c1');
    await test.publish('1@key-107');
    const others = await Promise.all(['c2', 'c3', 'c4', 'c5', 'c6'].map((name) => test.connect('key-shared', name)));
    await test.publish('2@key-411');
    const received = [c1, ...others].map((client) => client.take()).filter((text) => text !== '');
    expect(received).toEqual(['1@key-107']);
    await c1.ack('1@key-107');
    expect(others.map((client) => client.take()).join('')).toBe('2@key-411');
  });
});
