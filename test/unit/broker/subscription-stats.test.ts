import { describe, expect, it } from 'vitest';
import { seconds } from '../../../src/core/options.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

describe('statistics of redelivery', () => {
  it('count what each consumer asked back, each time anew', async () => {
    const test = new TestBroker({ roundRobinChunk: 2 });
    const [a, b] = [await test.connect('shared', 'a'), await test.connect('shared', 'b')];
    await test.batch('1', '2');
    await test.publish('3', '4');
    await a.nack('1');
    await b.nack('3');
    const [ofA, ofB] = test.stats().consumers;
    expect([ofA?.redelivered, ofB?.redelivered, test.stats().redeliveries]).toEqual([2, 1, 2]);
  });

  it('say the rate of the last full minute', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared', 'a');
    await test.publish('1', '2', '3');
    await client.nack('1', '2', '3');
    expect(test.stats().redeliveryRate).toBe(0);
    await test.clock.advanceBy(seconds(60));
    expect(test.stats()).toMatchObject({ redeliveryRate: 3 / 60, consumers: [{ redeliveryRate: 3 / 60 }] });
    await test.clock.advanceBy(seconds(60));
    expect([test.stats().redeliveryRate, test.stats().consumers[0]?.redelivered]).toEqual([0, 3]);
  });

  it('forget the count of an entry with its acknowledgement', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared', 'a');
    await test.publish('1', '2');
    await client.nack('1', '2');
    await client.nack('1');
    expect(test.stats().redeliveries).toBe(3);
    await client.ack('1');
    expect(test.stats().redeliveries).toBe(1);
  });

  it('count on Exclusive too, where messages carry no count (A-16)', async () => {
    const test = new TestBroker();
    const client = await test.connect('exclusive');
    await test.publish('1', '2');
    await client.nack('2');
    expect([test.stats().redeliveries, test.stats().consumers[0]?.redelivered]).toEqual([0, 2]);
  });
});

describe('what a passed mark-delete position takes with it', () => {
  it.each(['shared', 'key-shared'] as const)('S-26: %s forgets what waits and what is held', async (type) => {
    const test = new TestBroker({ messageTtlMs: seconds(60) });
    const client = await test.connect(type, 'c', { permits: 3 });
    await test.publish('1@A', '2@A', '3@A', '4@A');
    await client.nack('1@A', '2@A');
    expect(test.stats()).toMatchObject({ replay: 2, unacked: 1, redeliveries: 2 });
    await test.clock.advanceBy(seconds(360));
    expect(test.stats()).toMatchObject({ replay: 0, unacked: 0, redeliveries: 0, backlog: 0, drainingHashes: 0 });
    await client.flow(5);
    await test.publish('5@A');
    expect(client.take()).toBe('1@A 2@A 3@A 5@A');
  });
});

describe('seek', () => {
  it('G-07: empties what is parked, waits and is held, and forgets the counts', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared', 'c', { permits: 2 });
    await test.publish('1', '2');
    await test.broker.publish(TOPIC, message('late', { deliverAtMs: test.clock.now() + 1_000 }));
    await client.flow(1);
    await client.nack('1', '2');
    await client.nack('1');
    client.handle.seek('latest');
    await settlePromises();
    const none = { replay: 0, delayed: 0, unacked: 0, redeliveries: 0, backlog: 0, consumers: [] };
    expect([test.stats(), test.clock.pendingTimers]).toMatchObject([none, []]);
    const next = await test.connect('shared');
    await test.clock.advanceBy(1_000);
    expect(next.take()).toBe('');
  });

  it('S-28: to a time goes to the first message published then or later', async () => {
    const test = new TestBroker({ maxLedgerEntries: 2 });
    test.broker.createSubscription(TOPIC, 's');
    const times: Date[] = [];
    for (const text of ['1', '2', '3', '4', '5']) {
      await test.clock.advanceBy(10);
      times.push(new Date(test.clock.now()));
      await test.publish(text);
    }
    const after = async (to: Date): Promise<string> => {
      const client = await test.connect('shared');
      client.handle.seek(to);
      await settlePromises();
      const next = await test.connect('shared');
      const received = next.take();
      await next.close();
      return received;
    };
    const before = new Date(times[0]!.getTime() - 1);
    const [, , third] = times;
    expect(await after(before)).toBe('1 2 3 4 5');
    expect(await after(third!)).toBe('3 4 5');
    expect(await after(new Date(third!.getTime() + 1))).toBe('4 5');
    expect(await after(new Date(times[4]!.getTime() + 1))).toBe('');
  });
});
