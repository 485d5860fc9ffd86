// What each fault does to one consumer or publisher of the embedded broker, and that nothing stored is lost by it.
import { describe, expect, it } from 'vitest';
import { seconds } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import type { FaultOptions } from '../../../src/testing.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

const NOTHING = { drop: 0, delay: 0, duplicate: 0, disconnect: 0, failPublish: 0, slowAcknowledge: 0 };

describe('drop', () => {
  it('loses a delivery and all that follows until the connection is given up; then all of it comes again, uncounted', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    const faults = test.broker.inject({ drop: { times: 1, silentMs: seconds(5) }, topics: ['t'] });
    await test.publish('1', '2');
    await test.clock.advanceBy(seconds(5) - 1);

    expect([client.take(), client.disconnects, test.stats().unacked]).toEqual(['', 0, 2]);
    await test.clock.advanceBy(1);
    expect([client.disconnects, test.stats().consumers, test.stats().backlog]).toEqual([1, [], 2]);
    expect((await test.connect('shared', 'c2')).take()).toBe('1 2');
    expect(faults.counts).toEqual({ ...NOTHING, drop: 1 });
  });

  it('is found out after 30 s, the keep-alive interval of Pulsar, where nothing else is said', async () => {
    const test = new TestBroker();
    const client = await test.connect('exclusive');
    test.broker.inject({ drop: { times: 1 } });
    await test.publish('1');
    await test.clock.advanceBy(seconds(30) - 1);

    expect(client.disconnects).toBe(0);
    await test.clock.advanceBy(1);
    expect(client.disconnects).toBe(1);
  });

  it('disconnects nobody who has left before it is found out', async () => {
    const test = new TestBroker();
    const client = await test.connect('exclusive');
    test.broker.inject({ drop: { times: 1 } });
    await test.publish('1');
    await client.close();
    const next = await test.connect('exclusive', 'c2');
    await test.clock.advanceBy(seconds(31));

    expect([client.disconnects, next.disconnects, next.take()]).toEqual([0, 0, '1']);
  });
});

describe('delay', () => {
  it('lets a delivery arrive later, and nothing pass it', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    test.broker.inject({ delay: { times: 1, ms: 700 } });
    await test.publish('1', '2');
    await test.clock.advanceBy(699);

    expect(client.take()).toBe('');
    await test.clock.advanceBy(1);
    expect(client.take()).toBe('1 2');
  });

  it('never delivers what is late over a connection that has ended meanwhile', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    test.broker.inject({ delay: { times: 1, ms: 700 } });
    await test.publish('1');
    test.broker.unload(TOPIC);
    const next = await test.connect('shared', 'c2');
    await test.clock.advanceBy(seconds(1));

    expect([client.take(), next.take()]).toEqual(['', '1']);
  });

  it('keeps which messages of a batch were unacknowledged when it left', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.batch('a', 'b', 'c');
    await client.ack('b');
    client.take();
    test.broker.inject({ delay: { ms: 100 } });
    await client.nack('a');
    await client.ack('c');
    await test.clock.advanceBy(100);

    expect(client.take()).toBe('a* c*');
  });
});

describe('duplicate', () => {
  it('delivers a message again without being asked, uncounted, also when it is acknowledged', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    const faults = test.broker.inject({ duplicate: { times: 1, afterMs: seconds(20) } });
    await test.publish('1', '2');
    await client.ack('1', '2');

    expect(client.take()).toBe('1 2');
    await test.clock.advanceBy(seconds(20));
    expect([client.take(), test.stats().backlog, faults.counts.duplicate]).toEqual(['1', 0, 1]);
  });

  it('counts against the permits, as every delivery', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared', 'c1', { permits: 10 });
    test.broker.inject({ duplicate: { times: 1 } });
    await test.publish('1');

    expect([client.take(), test.stats().consumers[0]?.permits]).toEqual(['1 1', 8]);
  });
});

it('disconnect: ends the connection after a delivery, which comes again', async () => {
  const test = new TestBroker();
  const client = await test.connect('failover', 'c1');
  await test.clock.advanceBy(seconds(1));
  test.broker.inject({ disconnect: { times: 1 } });
  await test.publish('1', '2');

  expect([client.take(), client.disconnects]).toEqual(['1', 1]);
  const next = await test.connect('failover', 'c2');
  await test.clock.advanceBy(seconds(1));
  expect(next.take()).toBe('1 2');
});

describe('slowAcknowledge', () => {
  it('gives the receipt late; the message is acknowledged at once', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.publish('1');
    test.broker.inject({ slowAcknowledge: { ms: 300 } });
    let receipt = false;
    void client.handle.acknowledge([client.id('1')])?.then(() => (receipt = true));
    await test.clock.advanceBy(299);

    expect([receipt, test.stats().backlog]).toEqual([false, 0]);
    await test.clock.advanceBy(1);
    expect(receipt).toBe(true);
  });

  it('fails with CONNECTION_LOST when the connection ends before the receipt', async () => {
    const test = new TestBroker();
    const client = await test.connect('exclusive');
    await test.publish('1');
    test.broker.inject({ slowAcknowledge: { ms: 300 } });
    const receipt = client.handle.acknowledgeCumulative(client.id('1'));
    test.broker.unload(TOPIC);

    await expect(receipt).rejects.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
  });
});

describe('failPublish', () => {
  it.each([
    { stored: false, backlog: 0 },
    { stored: true, backlog: 1 },
  ])('fails with CONNECTION_LOST; stored $stored', async ({ stored, backlog }) => {
    const test = new TestBroker();
    test.broker.createSubscription(TOPIC, 's');
    const publisher = await embedded({ broker: test.broker }).publisher(TOPIC);
    const faults = test.broker.inject({ failPublish: { times: 1, stored } });
    const lost = { code: 'CONNECTION_LOST', retriable: true };

    await expect(publisher.publish(message('1'), 0)).rejects.toMatchObject(lost);
    expect([test.stats().backlog, faults.counts.failPublish]).toEqual([backlog, 1]);
    await expect(publisher.publish(message('2'), 1)).resolves.toBeDefined();
  });

  it('spares what a test publishes by the broker itself', async () => {
    const test = new TestBroker();
    test.broker.inject({ failPublish: 1 });

    await expect(test.broker.publish(TOPIC, message('1'))).resolves.toBeDefined();
  });
});

describe('an injection', () => {
  /** What reaches a consumer, and when, of twenty messages. */
  async function course(faults: FaultOptions): Promise<string> {
    const test = new TestBroker();
    const client = await test.connect('shared');
    test.broker.inject(faults);
    const seen: string[] = [];
    for (let n = 0; n < 20; n++) {
      await test.publish(String(n));
      await test.clock.advanceBy(50);
      seen.push(client.take());
    }
    return seen.join('|');
  }
  const WILD: FaultOptions = { duplicate: 0.4, delay: { probability: 0.3, ms: [1, 200] } };

  it('does the same for the same seed, and something else for another', async () => {
    const first = await course({ ...WILD, seed: 7 });

    expect(await course({ ...WILD, seed: 7 })).toBe(first);
    expect(await course({ ...WILD, seed: 8 })).not.toBe(first);
  });

  it('concerns its topics and subscriptions only; a partitioned topic with its partitions', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 1);
    const spared = await test.connect('shared');
    const hit = await test.connect('shared', 'c2', { topic: 'persistent://public/default/p-partition-0' });
    test.broker.inject({ duplicate: 1, topics: ['p'], subscriptions: ['s'] });
    test.broker.inject({ duplicate: 1, subscriptions: ['another'] });
    await test.publish('1');
    await test.broker.publish('p', message('2'));
    await settlePromises();

    expect([spared.take(), hit.take()]).toEqual(['1', '2 2']);
  });

  it('ends: nothing more goes wrong, and what is late still comes', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    const faults = test.broker.inject({ delay: { ms: 100 } });
    await test.publish('1');
    faults.end();
    await test.clock.advanceBy(100);
    await test.publish('2');

    expect([client.take(), faults.counts]).toEqual(['1 2', { ...NOTHING, delay: 1 }]);
  });

  it('names all that is wrong with it at once', () => {
    const { broker } = new TestBroker();
    const wrong = {
      seed: 0.5,
      topics: [],
      drop: { silentMs: [5, 1] },
      delay: 2,
      duplicate: { times: 0, after: 3 },
      failPublish: { stored: 'no' },
      slowAck: 1,
    };

    expect(() => broker.inject(wrong as never)).toThrow(
      expect.objectContaining({
        code: 'CONFIGURATION_INVALID',
        problems: [
          'inject: unknown option "slowAck", known options are seed, topics, subscriptions, drop, delay, duplicate, disconnect, failPublish, slowAcknowledge',
          'inject: "seed" must be a whole number, got 0.5',
          'inject: "topics" must be a list of at least one name, got an array of 0',
          'inject: "drop.silentMs" must be whole milliseconds, or [least, most] of them',
          'inject: "delay.probability" must be a number from 0 to 1, got 2',
          'inject: unknown option "duplicate.after", did you mean "afterMs"?',
          'inject: "duplicate.times" must be a positive integer, got 0',
          'inject: "failPublish.stored" must be true or false, got "no"',
        ],
      }),
    );
    expect(() => broker.inject({ delay: { ms: [0.2, 0.8] } })).toThrow('"delay.ms" must be whole milliseconds');
    expect(() => broker.inject({})).toThrow(/nothing is to go wrong: give one of drop, /);
    expect(() => broker.inject(undefined as never)).toThrow(/"options" must be an object/);
  });
});
