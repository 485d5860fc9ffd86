// The broker half of PIP-493: what a negative acknowledgement holds back on Key_Shared, and until when.
// Owners used here (K-05): with c1 and c2, key A belongs to c2 and C to c1; c3 takes both over when it joins.
import { describe, expect, it } from 'vitest';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TestBroker } from './broker-kit.js';

describe('K-55: a failed message, and what the client had of its key', () => {
  it('come again in their place while other keys go on', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('A1@A', 'B1@B', 'A2@A', 'B2@B', 'A3@A', 'B3@B');
    expect(client.take()).toBe('A1@A B1@B A2@A B2@B A3@A B3@B');
    await client.fail(['A1@A'], ['A2@A', 'A3@A']);
    await client.ack('B1@B', 'B2@B', 'B3@B');
    await test.publish('A4@A', 'B4@B');
    expect(client.take()).toBe('B4@B');
    await client.nack('A1@A');
    expect(client.take()).toBe('A1@A*');
    await client.ack('A1@A');
    expect(client.take()).toBe('A2@A A3@A A4@A');
  });
});

describe('K-20: after a nack nothing later of the key is delivered to anybody until it is acknowledged', () => {
  it.each([
    ['on the ring', {}, {}],
    ['on split ranges', { keySharedConsistentHashing: false }, {}],
    ['on ranges that consumers name', {}, { stickyRanges: [{ start: 0, end: 65_535 }] }],
  ])('%s', async (_mode, options, more) => {
    const test = new TestBroker(options);
    const client = await test.connect('key-shared', 'c1', more);
    await test.publish('1@A', '2@A');
    await client.fail(['1@A'], ['2@A']);
    await test.publish('3@A', '4@B');
    expect(client.take()).toBe('1@A 2@A 4@B');
    await client.ack('1@A');
    expect(client.take()).toBe('2@A 3@A');
  });

  it('but where a key may come out of order it is ignored', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared', 'c1', { allowOutOfOrder: true });
    await test.publish('1@A', '2@A');
    await client.fail(['1@A'], ['2@A']);
    await test.publish('3@A');
    expect([client.take(), test.stats().retryingHashes]).toEqual(['1@A 2@A 2@A 3@A', 0]);
  });

  it.each(['shared', 'exclusive', 'failover'] as const)('and on %s too', async (type) => {
    const test = new TestBroker({ activeConsumerFailoverDelayMs: 0 });
    const client = await test.connect(type);
    await test.publish('1@A');
    await client.fail(['1@A']);
    await test.publish('2@A');
    expect([client.take(), test.stats().retryingHashes, test.stats().unacked]).toEqual(['1@A 2@A', 0, 2]);
  });

  it('and on topics that keep nothing', async () => {
    const topic = 'non-persistent://public/default/t';
    const test = new TestBroker();
    const client = await test.connect('key-shared', 'c1', { topic });
    await test.broker.publish(topic, { payload: new TextEncoder().encode('1@A'), properties: {}, key: 'A' });
    await settlePromises();
    await client.fail(['1@A']);
    expect(test.stats(topic)).toMatchObject({ retryingHashes: 0, replay: 0 });
  });
});

describe('K-21: the command has no answer', () => {
  it('and over a connection that the broker closed it asks nothing', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('1@A');
    test.broker.unload('t');
    await client.fail(['1@A']);
    expect(test.stats().retryingPositions).toBe(0);
    await client.close();
    await expect(client.fail(['1@A'])).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
  });
});

describe('K-22: no entry is negatively acknowledged and returned', () => {
  it('not by two messages of one batch either: it is refused by name, and nothing has changed', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.batch('1@A', '2@A');
    const entry = `${client.id('1@A').ledgerId}:0:-1`;
    await expect(client.fail(['1@A'], ['2@A'])).rejects.toMatchObject({
      code: 'MESSAGE_ID_INVALID',
      message: `entry ${entry} is negatively acknowledged and returned at once`,
    });
    expect(test.stats()).toMatchObject({ retryingPositions: 0, unacked: 2 });
  });

  it.each([
    ['message ids must be a list', 5, []],
    ['message ids must be a list', [], null],
    ['message id must be an object', [], ['1:2:3']],
  ])('%s', async (rule, nacked, returned) => {
    const test = new TestBroker();
    const { handle } = await test.connect('key-shared');
    expect(() => handle.negativeAcknowledgeOrdered(nacked as never, returned as never)).toThrow(rule);
  });
});

describe('K-24: an entry of a retrying hash waits only when it is strictly later than the earliest that failed', () => {
  it('so that what lies before it, at a consumer that leaves, comes first and does not wait for ever', async () => {
    const test = new TestBroker();
    const c1 = await test.connect('key-shared', 'c1');
    const c2 = await test.connect('key-shared', 'c2');
    await test.publish('1@A', '2@A', '3@A');
    await c2.fail(['2@A'], ['3@A']);
    await c2.close();
    expect([c2.take(), c1.take()]).toEqual(['1@A 2@A 3@A', '1@A 2@A']);
    await c1.ack('1@A');
    expect(c1.take()).toBe('');
    await c1.ack('2@A');
    expect(c1.take()).toBe('3@A');
  });

  it('so that of two that failed the second waits for the first', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('1@A', '2@A', '3@A');
    await client.fail(['2@A']);
    await client.fail(['1@A'], ['3@A']);
    await client.nack('2@A', '1@A');
    expect([client.take(), test.stats().replay]).toEqual(['1@A 2@A 3@A 1@A*', 2]);
    await client.ack('1@A');
    expect(client.take()).toBe('2@A*');
    await client.ack('2@A');
    expect(client.take()).toBe('3@A');
  });

  it('so that a delayed entry from before it comes when its time has come', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    const deliverAtMs = test.clock.now() + 1_000;
    await test.broker.publish('t', { payload: new TextEncoder().encode('0@A'), properties: {}, key: 'A', deliverAtMs });
    await test.publish('1@A');
    await client.fail(['1@A']);
    await test.publish('2@A');
    await test.clock.advanceBy(1_000);
    expect(client.take()).toBe('1@A 0@A');
  });
});

describe('K-25: at every gate, beside draining', () => {
  it('what was put aside before waits as well when its consumer gets room', async () => {
    const test = new TestBroker();
    const [c1, c2] = [await test.connect('key-shared', 'c1'), await test.connect('key-shared', 'c2', { permits: 1 })];
    await test.publish('1@A', '2@A', '3@C');
    expect([c1.take(), c2.take(), test.stats().replay]).toEqual(['3@C', '1@A', 1]);
    await c2.fail(['1@A']);
    await c2.flow(5);
    expect(c2.take()).toBe('');
    await c2.nack('1@A');
    expect(c2.take()).toBe('1@A*');
    await c2.ack('1@A');
    expect(c2.take()).toBe('2@A');
  });

  it('what waits counts as put aside: reading ahead stops at its limit', async () => {
    const test = new TestBroker({ keySharedLookAheadPerConsumer: 2 });
    const client = await test.connect('key-shared');
    await test.publish('1@A');
    await client.fail(['1@A']);
    await test.publish('2@A', '3@A', '4@B');
    expect([client.take(), test.stats().replay]).toEqual(['1@A', 2]);
    await client.ack('1@A');
    expect(client.take()).toBe('2@A 3@A 4@B');
  });

  it('draining wins: the failed one itself waits while its old owner holds another of the hash', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2');
    await test.publish('1@A', '2@A');
    const c3 = await test.connect('key-shared', 'c3');
    await c2.fail(['1@A']);
    await c2.nack('1@A');
    expect([c3.take(), test.stats()]).toMatchObject(['', { drainingHashes: 1, retryingHashes: 1 }]);
    await c2.fail([], ['2@A']);
    expect([c3.take(), test.stats()]).toMatchObject(['1@A*', { drainingHashes: 0, retryingHashes: 1 }]);
    await c3.ack('1@A');
    expect(c3.take()).toBe('2@A');
  });

  it('and a hash that has drained still retries', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2');
    await test.publish('1@A');
    const c3 = await test.connect('key-shared', 'c3');
    await c2.fail(['1@A']);
    await test.publish('2@A');
    await c2.nack('1@A');
    expect([c2.take(), c3.take()]).toEqual(['1@A', '1@A*']);
    await c3.ack('1@A');
    expect(c3.take()).toBe('2@A');
  });
});

describe('K-26: only what is pending at the sender is taken up', () => {
  it('the rest is passed over one by one', async () => {
    const test = new TestBroker();
    const [c1, c2] = [await test.connect('key-shared', 'c1'), await test.connect('key-shared', 'c2')];
    await test.publish('1@A', '2@C', '3@C', '4@B');
    await c1.ack('2@C');
    const elsewhere = { ...c2.id('1@A'), ledgerId: 999 };
    c1.handle.negativeAcknowledgeOrdered([c2.id('1@A'), elsewhere, c1.id('2@C'), c1.id('3@C')], [c2.id('4@B')]);
    await settlePromises();
    await test.publish('5@A', '6@C');
    expect([c1.take(), c2.take(), test.stats()]).toMatchObject([
      '2@C 3@C',
      '1@A 4@B 5@A',
      { retryingPositions: 1, unacked: 4, consumers: [{ unacked: 1 }, { unacked: 3 }] },
    ]);
  });

  it('doing it again changes nothing, and one that was asked back meanwhile is no longer taken up', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared', 'c1', { permits: 2 });
    await test.publish('1@A', '2@B');
    await client.fail(['1@A']);
    await client.fail(['1@A']);
    await client.nack('1@A', '2@B');
    await client.fail(['1@A', '2@B']);
    expect(test.stats()).toMatchObject({ retryingHashes: 1, retryingPositions: 1 });
  });

  it('the failed message stays pending, and counts as unacknowledged, until it is asked back', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('1@A', '2@A');
    await client.fail(['1@A'], ['2@A']);
    expect(test.stats()).toMatchObject({ unacked: 1, replay: 1 });
    await client.flow(1);
    expect(client.take()).toBe('1@A 2@A');
  });

  it('a message without a key has a hash too, of its producer and sequence id, and holds back no other one', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('1');
    await client.fail(['1']);
    await test.publish('2');
    expect([client.take(), test.stats().retryingHashes]).toEqual(['1 2', 1]);
  });
});

describe('K-27: what is returned comes again uncounted', () => {
  it.each(['shared', 'key-shared'] as const)('on %s, though its rate counts', async (type) => {
    const test = new TestBroker();
    const client = await test.connect(type);
    await test.publish('1@A', '2@A');
    await client.nack('2@A');
    await client.fail([], ['2@A']);
    await client.fail([], ['1@A']);
    expect(client.take()).toBe('1@A 2@A 2@A* 2@A* 1@A');
    expect(test.stats()).toMatchObject({ redeliveries: 1, unacked: 2, consumers: [{ redelivered: 3 }] });
  });

  it('an acknowledged one, or one of somebody else, is ignored', async () => {
    const test = new TestBroker();
    const [c1, c2] = [await test.connect('shared', 'c1'), await test.connect('shared', 'c2')];
    await test.publish('1', '2');
    await c1.ack('1');
    await c2.fail([], []);
    c2.handle.negativeAcknowledgeOrdered([], [c1.id('1'), c1.id('2')]);
    await settlePromises();
    expect([c1.take(), c2.take(), test.stats().unacked]).toEqual(['1 2', '', 1]);
  });

  it('it goes to the new owner of its hash, in its place', async () => {
    const test = new TestBroker();
    const c2 = await test.connect('key-shared', 'c2');
    await test.publish('1@A', '2@A');
    const c3 = await test.connect('key-shared', 'c3');
    await test.publish('3@A');
    await c2.fail([], ['2@A', '1@A']);
    expect([c2.take(), c3.take()]).toEqual(['1@A 2@A', '1@A 2@A 3@A']);
  });

  it('with the switch off too, where what failed holds back nothing', async () => {
    const test = new TestBroker({ keySharedNegativeAckOrdering: false });
    const client = await test.connect('key-shared');
    await test.publish('1@A', '2@A');
    await client.fail(['1@A'], ['2@A']);
    await test.publish('3@A');
    expect([client.take(), test.stats()]).toMatchObject(['1@A 2@A 2@A 3@A', { retryingHashes: 0, unacked: 3 }]);
  });
});

describe('K-30: a retry is an ordinary redelivery request', () => {
  it('that adds one to the count, as often as it fails', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('1@A');
    for (let attempt = 0; attempt < 3; attempt++) {
      await client.fail(['1@A']);
      await client.nack('1@A');
    }
    expect([client.take(), test.stats().retryingPositions]).toEqual(['1@A 1@A* 1@A** 1@A***', 1]);
  });
});

describe('K-32: keys that share a hash', () => {
  // key-107 and key-411 share slot 52221, key-12 and key-540 slot 25709 (K-04).
  it('new messages of the other key wait too, those that are at the client do not', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('1@key-107', '2@key-411');
    await client.fail(['1@key-107']);
    await client.ack('2@key-411');
    await test.publish('3@key-411', '4@key-12');
    expect(client.take()).toBe('1@key-107 2@key-411 4@key-12');
    await client.ack('1@key-107');
    expect(client.take()).toBe('3@key-411');
  });

  it('a failed message of the other key waits behind the earliest of the hash', async () => {
    const test = new TestBroker();
    const client = await test.connect('key-shared');
    await test.publish('1@key-12', '2@key-540');
    await client.fail(['1@key-12', '2@key-540']);
    await client.nack('2@key-540');
    expect([client.take(), test.stats()]).toMatchObject([
      '1@key-12 2@key-540',
      { retryingHashes: 1, retryingPositions: 2 },
    ]);
    await client.nack('1@key-12');
    await client.ack('1@key-12');
    expect(client.take()).toBe('1@key-12* 2@key-540*');
  });
});

describe('K-31: the ceiling of failed entries', () => {
  it('lets pass only what retrying hashes wait for; nacks are taken up all the same', async () => {
    const test = new TestBroker({ keySharedMaxRetryingPositions: 2 });
    const client = await test.connect('key-shared');
    await test.publish('1@A', '2@B', '3@C', '4@k1', '5@key1');
    await client.fail(['1@A', '2@B']);
    await test.publish('6@key2');
    await client.fail(['3@C'], ['4@k1', '5@key1']);
    expect([client.take(), test.stats().retryingPositions]).toEqual(['1@A 2@B 3@C 4@k1 5@key1', 3]);
    await client.nack('2@B', '1@A');
    expect(client.take()).toBe('1@A* 2@B*');
    await client.ack('1@A');
    expect([client.take(), test.stats().retryingPositions]).toEqual(['', 2]);
    await client.ack('2@B');
    expect([client.take(), test.stats().retryingPositions]).toEqual(['4@k1 5@key1 6@key2', 1]);
  });

  it('what lies before the earliest one passes too, else it would come behind it', async () => {
    const test = new TestBroker({ keySharedMaxRetryingPositions: 1 });
    const [c1, c2] = [await test.connect('key-shared', 'c1'), await test.connect('key-shared', 'c2')];
    await test.publish('1@A', '2@A', '3@A', '4@B');
    await c2.fail(['2@A']);
    await c2.close();
    expect(c1.take()).toBe('1@A 2@A');
    await c1.ack('1@A', '2@A');
    expect(c1.take()).toBe('3@A 4@B');
  });

  it('the figures of partitions add up, and are none before the first consumer', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('t', 2);
    test.broker.createSubscription('t', 's');
    expect(test.stats()).toMatchObject({ retryingHashes: 0, retryingPositions: 0 });
    for (const partition of [0, 1]) {
      const topic = `persistent://public/default/t-partition-${partition}`;
      const client = await test.connect('key-shared', 'c', { topic });
      for (const text of ['1', '2'])
        await test.broker.publish(topic, { payload: new TextEncoder().encode(text), properties: {}, key: 'A' });
      await settlePromises();
      await client.fail(['1', '2']);
    }
    expect(test.stats()).toMatchObject({ retryingHashes: 2, retryingPositions: 4 });
  });

  it.each([{ keySharedMaxRetryingPositions: 0 }, { keySharedNegativeAckOrdering: 'no' as never }])(
    'refuses %j',
    (options) => {
      expect(() => new TestBroker(options)).toThrow(Object.keys(options)[0]);
    },
  );
});
