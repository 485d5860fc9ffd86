// What clients leave behind when they go, and what one that misbehaves does to the others.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { hours } from '../../../src/core/options.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TestBroker, message } from './broker-kit.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

describe('names', () => {
  const MANY = 20_000;
  const nameOf = (index: number): string => `${'x'.repeat(500)}-${index}`;

  it('that were only asked about leave nothing', () => {
    const { broker } = new TestBroker();
    const before = heapBytes();
    for (let index = 0; index < MANY; index++) broker.hasTopic(nameOf(index));
    expect(heapBytes() - before).toBeLessThan(5_000_000);
    // Until here it is in use, and so is whatever it keeps.
    expect(broker.topics()).toEqual([]);
  });

  it('of topics that were published to and deleted leave nothing', async () => {
    const { broker } = new TestBroker();
    const before = heapBytes();
    for (let index = 0; index < MANY / 10; index++) {
      const name = nameOf(index).repeat(10);
      await broker.publish(name, message('x'));
      broker.deleteTopic(name);
    }
    expect(heapBytes() - before).toBeLessThan(5_000_000);
    // Until here it is in use, and so is whatever it keeps.
    expect(broker.topics()).toEqual([]);
  });
});

describe('faults', () => {
  const late = { ms: hours(5) };

  it.each([
    ['a connection that is silent', { drop: { silentMs: hours(5) } }],
    ['a delivery that is late', { delay: late }],
    ['a copy to come', { duplicate: { afterMs: hours(5) } }],
    ['a receipt that is late', { slowAcknowledge: late }],
  ])('leave no timer when the consumer goes: %s', async (_what, faults) => {
    const test = new TestBroker();
    test.broker.inject(faults);
    const client = await test.connect('shared');
    await test.publish('1');
    const receipt = 'slowAcknowledge' in faults ? client.handle.acknowledge([client.id('1')]) : undefined;
    const failed = receipt?.then(
      () => 'acknowledged',
      (error: unknown) => (error as { code: string }).code,
    );
    expect(test.clock.pendingTimers).toEqual([hours(5)]);
    await client.close();

    expect([test.clock.pendingTimers, await failed]).toEqual([[], receipt && 'CONNECTION_LOST']);
  });

  it.each(['unload', 'restart'] as const)('leave none after an %s', async (call) => {
    const test = new TestBroker();
    test.broker.inject({ duplicate: { afterMs: hours(5) } });
    const client = await test.connect('shared');
    await test.publish('1');
    test.broker[call]('t');
    await settlePromises();

    expect([client.disconnects, test.clock.pendingTimers]).toEqual([1, []]);
  });

  it.each([true, false])('failPublish fails a batch too, stored: %s', async (stored) => {
    const { broker } = new TestBroker();
    broker.inject({ failPublish: { stored } });
    const producer = broker.producer({ topic: 't' });

    await expect(producer.publishBatch([message('1'), message('2')], 0)).rejects.toMatchObject({
      code: 'CONNECTION_LOST',
      retriable: true,
    });
    expect(broker.stats('t').messagesIn).toBe(stored ? 2 : 0);
  });
});

describe('S-44', () => {
  it('a name is not forgotten while its producer is there, though another one waited under it and left', async () => {
    const { broker, clock } = new TestBroker({ deduplication: true });
    const producer = broker.producer({ topic: 't', producerName: 'p' });
    await producer.publish(message('1'), 5);
    broker.producer({ topic: 't', producerName: 'p', accessMode: 'wait-for-exclusive' }).close();
    await clock.advanceBy(hours(7));
    broker.producer({ topic: 't', producerName: 'other', accessMode: 'wait-for-exclusive' }).close();

    expect(await producer.publish(message('1'), 5)).toMatchObject({ ledgerId: -1 });
  });
});

it('a client that throws surfaces as an uncaught error, and takes nothing from the others', async () => {
  const test = new TestBroker();
  const others = process.listeners('uncaughtException');
  const uncaught: string[] = [];
  const note = (error: Error): void => void uncaught.push(error.message);
  for (const other of others) process.off('uncaughtException', other);
  process.on('uncaughtException', note);
  try {
    const fails = (what: string) => (): never => {
      throw new Error(what);
    };
    const sink = { deliver: fails('deliver'), activeChanged: () => undefined, disconnected: fails('disconnected') };
    const request = { topic: 't', type: 'shared', initialPosition: 'earliest', consumerName: 'bad' } as const;
    test.broker.subscribe({ ...request, subscription: 'first' }, sink).flow(10);
    const stop = test.broker.watchTopics(fails('watcher'));
    const client = await test.connect('shared');
    await test.publish('1');
    test.broker.createPartitionedTopic('p', 1);
    await settlePromises();
    test.broker.unload('t');
    await settlePromises();
    stop();

    expect([client.take(), client.disconnects, uncaught]).toEqual(['1', 1, ['deliver', 'watcher', 'disconnected']]);
  } finally {
    process.off('uncaughtException', note);
    for (const other of others) process.on('uncaughtException', other);
  }
});
