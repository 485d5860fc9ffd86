import { describe, expect, it } from 'vitest';
import type { BrokerStore } from '../../../src/broker/broker-store.js';
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import { ConfigurationError } from '../../../src/core/errors.js';
import { NO_PROPERTIES, copyProperties } from '../../../src/core/properties.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

describe('where a subscription begins', () => {
  it('S-27: latest gets what comes after it was created', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const client = await test.connect('shared', 'c', { from: 'latest' });
    await test.publish('2');
    expect(client.take()).toBe('2');
  });

  it('S-27: the position asked for is ignored when it exists', async () => {
    const test = new TestBroker();
    await (await test.connect('shared')).close();
    await test.publish('1');
    expect((await test.connect('shared', 'c', { from: 'latest' })).take()).toBe('1');
  });

  it('every subscription gets every message', async () => {
    const test = new TestBroker();
    const first = await test.connect('shared');
    await test.publish('1');
    await first.ack('1');
    const other = { deliver: () => (other.count += 1), count: 0, activeChanged: () => 0, disconnected: () => 0 };
    const request = { topic: 't', subscription: 'other', initialPosition: 'earliest', consumerName: 'o' } as const;
    test.broker.subscribe({ ...request, type: 'exclusive' }, other).flow(5);
    await settlePromises();
    expect(other.count).toBe(1);
  });
});

describe('S-28: seek', () => {
  const seeked = async (to: (test: TestBroker) => Parameters<EmbeddedSeek>[0]): Promise<string> => {
    const test = new TestBroker({ maxLedgerEntries: 2 });
    const client = await test.connect('shared');
    for (const text of ['0', '1', '2', '3']) {
      await test.publish(text);
      await test.clock.advanceBy(1_000);
    }
    await client.ack('1');
    client.handle.seek(to(test));
    await settlePromises();
    client.handle.close();
    return `${client.disconnects} ${(await test.connect('shared')).take()}`;
  };
  type EmbeddedSeek = Awaited<ReturnType<TestBroker['connect']>>['handle']['seek'];
  const id = (ledgerId: number, entryId: number) => ({
    ...{ ledgerId, entryId, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC },
  });

  it('to an id sends that message first, acknowledged ones included', async () => {
    expect(await seeked(() => id(1, 1))).toBe('1 1 2 3');
  });

  it('to an id before the first or after the last means these ends', async () => {
    expect([await seeked(() => id(0, 0)), await seeked(() => id(99, 0))]).toEqual(['1 0 1 2 3', '1 ']);
  });

  it('to a time starts at the first message published then or later', async () => {
    expect(await seeked((test) => new Date(test.clock.now() - 2_500))).toBe('1 2 3');
  });

  it('to earliest and latest', async () => {
    expect([await seeked(() => 'earliest'), await seeked(() => 'latest')]).toEqual(['1 0 1 2 3', '1 ']);
  });

  it('drops pending acknowledgements and counts', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const client = await test.connect('shared');
    await client.nack('1');
    client.handle.seek('earliest');
    await settlePromises();
    expect(test.stats()).toMatchObject({ unacked: 0, redeliveries: 0, replay: 0, consumers: [] });
  });

  it('keeps a Failover consumer that stands by connected', async () => {
    const test = new TestBroker();
    const topic = 'persistent://public/default/q-partition-0';
    const a = await test.connect('failover', 'a', { topic });
    const b = await test.connect('failover', 'b', { topic });
    await test.clock.advanceBy(1_000);
    a.handle.seek('earliest');
    await settlePromises();
    expect([a.disconnects, b.disconnects]).toEqual([1, 0]);
  });
});

describe('ledgers', () => {
  it('are unique in the broker and hold the configured number of entries', async () => {
    const test = new TestBroker({ maxLedgerEntries: 2 });
    const ids = await test.publish('1', '2', '3');
    const other = await test.broker.publish('other', message('x'));
    expect([...ids, other].map(({ ledgerId, entryId }) => `${ledgerId}:${entryId}`)).toEqual([
      '1:0',
      '1:1',
      '2:0',
      '3:0',
    ]);
  });

  it('roll over at a number of bytes', async () => {
    const test = new TestBroker({ maxLedgerBytes: 8 });
    await test.publish('12345', '12345', '12345');
    expect((await test.publish('1')).map(({ ledgerId }) => ledgerId)).toEqual([2]);
  });

  it('are trimmed when full and passed by every cursor', async () => {
    const test = new TestBroker({ maxLedgerEntries: 2 });
    const client = await test.connect('shared');
    await test.publish('1', '2', '3', '4', '5');
    await client.ack('1', '3', '4');
    expect(test.broker.stats('t').ledgers).toBe(3);
    await client.ack('2');
    expect(test.broker.stats('t')).toMatchObject({ ledgers: 1, entries: 1 });
  });

  it('are trimmed without any subscription, but for the last one', async () => {
    const test = new TestBroker({ maxLedgerEntries: 2 });
    await test.publish('1', '2', '3', '4', '5');
    expect((await test.connect('shared')).take()).toBe('5');
  });

  it('that are gone take acknowledgements without a word', async () => {
    const test = new TestBroker({ maxLedgerEntries: 1 });
    const client = await test.connect('shared');
    await test.publish('1', '2');
    await client.ack('1', '2');
    await test.publish('3');
    await client.ack('1');
    expect([client.take(), test.stats().backlog]).toEqual(['1 2 3', 1]);
  });
});

describe('partitions', () => {
  it('S-40: are topics of their own; a key always goes to the same one', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 3);
    const ids = await Promise.all(['a', 'a', 'a'].map((key) => test.broker.publish('p', message('x', { key }))));
    // 97 mod 3
    expect(new Set(ids.map(({ topic }) => topic))).toEqual(new Set(['persistent://public/default/p-partition-1']));
  });

  it('are taken in turn without a key', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 3);
    const ids = await Promise.all([1, 2, 3, 4].map(() => test.broker.publish('p', message('x'))));
    expect(ids.map(({ partition }) => partition)).toEqual([0, 1, 2, 0]);
  });

  it('beyond the number created do not exist', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 2);
    await expect(test.broker.publish('p-partition-2', message('x'))).rejects.toMatchObject({ code: 'TOPIC_NOT_FOUND' });
  });

  it.each([0, -1, 1.5, undefined])('cannot be %s in number', (partitions) => {
    const create = () => new TestBroker().broker.createPartitionedTopic('p', partitions as number);
    expect(create).toThrow(ConfigurationError);
  });

  it('cannot be given to a topic that exists', async () => {
    const test = new TestBroker();
    await test.publish('1');
    expect(() => test.broker.createPartitionedTopic('t', 2)).toThrow(
      'exists already, without partitions; make it before anybody connects to it',
    );
  });

  it('show their sums in the figures of the topic', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 2);
    for (const topic of test.broker.partitionsOf('p')) await test.connect('shared', 'c', { topic, permits: 1 });
    await Promise.all([1, 2, 3, 4].map(() => test.broker.publish('p', message('x'))));
    await settlePromises();
    expect(test.stats('p')).toMatchObject({ backlog: 4, unacked: 2 });
  });
});

describe('what is published', () => {
  it('S-41: goes to one topic under its short and its full name', async () => {
    const test = new TestBroker();
    await test.broker.publish('t', message('1'));
    await test.broker.publish('public/default/t', message('2'));
    expect([test.broker.topics(), test.broker.stats('t').messagesIn]).toEqual([[TOPIC], 2]);
  });

  it('is refused when it is larger than the limit, naming both', async () => {
    const test = new TestBroker({ maxMessageBytes: 10 });
    const publish = test.broker.publish('t', message('12345678', { key: 'k', properties: { é: '' } }));
    await expect(publish).rejects.toMatchObject({
      code: 'MESSAGE_TOO_LARGE',
      retriable: false,
      message: `a message of 11 bytes is larger than the 10 bytes that topic "${TOPIC}" takes`,
    });
  });

  it.each([
    [{ payload: 'text', properties: {} }, 'payload'],
    [{ payload: null, properties: { a: 1 } }, 'property "a"'],
    [{ payload: null, properties: {}, key: 5 }, 'key'],
    [{ payload: null, properties: {}, orderingKey: 'x' }, 'orderingKey'],
    [{ payload: null, properties: {}, deliverAtMs: Number.NaN }, 'deliverAtMs'],
    [null, 'an object'],
  ])('is refused when it is no message: %j', async (wrong, named) => {
    const publish = new TestBroker().broker.publish('t', wrong as never);
    await expect(publish).rejects.toMatchObject({
      code: 'CONFIGURATION_INVALID',
      message: expect.stringContaining(named),
    });
  });

  it('keeps no tie to the caller: bytes and properties are copied', async () => {
    const test = new TestBroker();
    const payload = Buffer.from('before');
    const properties = { a: 'before' };
    void test.broker.publish('t', { payload, properties });
    payload.fill(0);
    properties.a = 'after';
    let seen: unknown;
    const sink = {
      deliver: (d: { entry: { messages: unknown } }) => (seen = d.entry.messages),
      activeChanged: () => 0,
    };
    const request = { topic: 't', subscription: 's', type: 'shared', initialPosition: 'earliest', consumerName: 'c' };
    test.broker.subscribe(request as never, { ...sink, disconnected: () => 0 }).flow(1);
    await settlePromises();
    const kept = { payload: new TextEncoder().encode('before'), properties: copyProperties({ a: 'before' }) };
    expect(seen).toMatchObject([kept]);
  });
});

describe('a store that takes its time', () => {
  function slowStore() {
    const appends: { resolve: () => void; reject: (error: Error) => void }[] = [];
    const acks: (() => void)[] = [];
    const store: BrokerStore = {
      append: () => new Promise((resolve, reject) => appends.push({ resolve, reject })),
      acknowledge: () => new Promise((resolve) => acks.push(resolve)),
    };
    return { store, appends, acks };
  }

  it('holds receipt and delivery back until the append completed', async () => {
    const { store, appends } = slowStore();
    const test = new TestBroker({ store });
    const client = await test.connect('shared');
    let receipts = 0;
    void test.broker.publish('t', message('1')).then(() => (receipts += 1));
    await settlePromises();
    expect([client.take(), receipts, test.stats().backlog]).toEqual(['', 0, 0]);
    appends[0]?.resolve();
    await settlePromises();
    expect([client.take(), receipts]).toEqual(['1', 1]);
  });

  it('fails one publish alone when it refuses the append, and leaves no hole in the backlog', async () => {
    const { store, appends } = slowStore();
    const test = new TestBroker({ store });
    const client = await test.connect('exclusive');
    const results = Promise.allSettled([
      test.broker.publish('t', message('1')),
      test.broker.publish('t', message('2')),
    ]);
    appends[0]?.reject(new Error('disk full'));
    appends[1]?.resolve();
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    await settlePromises();
    expect([client.take(), test.stats().backlog]).toEqual(['2', 1]);
  });

  it('holds the receipt of an acknowledgement back', async () => {
    const { store, appends, acks } = slowStore();
    const test = new TestBroker({ store });
    const client = await test.connect('shared');
    void test.broker.publish('t', message('1'));
    appends[0]?.resolve();
    await settlePromises();
    let receipt = false;
    void client.handle.acknowledge([client.id('1')])?.then(() => (receipt = true));
    await settlePromises();
    expect([receipt, test.stats().backlog]).toEqual([false, 0]);
    acks[0]?.();
    await settlePromises();
    expect(receipt).toBe(true);
  });
});

describe('the options of the broker', () => {
  it('are all checked at once', () => {
    const options = { maxLedgerEntries: 0, maxMesageBytes: 1, roundRobinChunk: 'x' };
    const make = () => new EmbeddedBroker({ clock: new FakeClock(), ...options } as never);
    expect(make).toThrow(/maxMesageBytes.*did you mean "maxMessageBytes"[^]*maxLedgerEntries[^]*roundRobinChunk/);
  });

  it('need a clock', () => {
    expect(() => new EmbeddedBroker({} as never)).toThrow('"clock" must be a Clock');
  });

  it('count undefined as absent', () => {
    const broker = new EmbeddedBroker({ clock: new FakeClock(), maxMessageBytes: undefined });
    expect(broker.options.maxMessageBytes).toBe(5 * 1024 * 1024);
  });
});

describe('calls on the broker', () => {
  it('never reach a client inside the call', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    void test.broker.publish('t', message('1'));
    expect(client.received).toEqual([]);
    await settlePromises();
    expect(client.received).toEqual(['1']);
  });

  it('keep a property named __proto__', async () => {
    const test = new TestBroker();
    const properties = copyProperties(JSON.parse('{"__proto__":"x","length":"y"}') as Record<string, string>);
    let seen = NO_PROPERTIES;
    const sink = {
      deliver: (d: { entry: { messages: readonly { properties: typeof NO_PROPERTIES }[] } }) => {
        seen = d.entry.messages[0]?.properties ?? NO_PROPERTIES;
      },
      activeChanged: () => 0,
      disconnected: () => 0,
    };
    await test.broker.publish('t', { payload: null, properties });
    const request = { topic: 't', subscription: 's', type: 'shared', initialPosition: 'earliest', consumerName: 'c' };
    test.broker.subscribe(request as never, sink).flow(1);
    await settlePromises();
    expect(Object.entries(seen)).toEqual([
      ['__proto__', 'x'],
      ['length', 'y'],
    ]);
  });
});

describe('ids of messages', () => {
  it('do not come again with the next broker: what outlives this one would take its messages for those it knows', async () => {
    const clock = new FakeClock();
    const first = await new EmbeddedBroker({ clock }).publish('t', message('1'));
    await clock.advanceBy(1_000);
    const second = await new EmbeddedBroker({ clock }).publish('t', message('1'));
    expect(second.ledgerId).toBeGreaterThan(first.ledgerId);
  });

  it('are the same in each run of a test, and small', async () => {
    const ids = [new FakeClock(), new FakeClock(0)].map((clock) =>
      new EmbeddedBroker({ clock }).publish('t', message('1')),
    );
    for (const { ledgerId, entryId } of await Promise.all(ids)) expect([ledgerId, entryId]).toEqual([1, 0]);
  });
});
