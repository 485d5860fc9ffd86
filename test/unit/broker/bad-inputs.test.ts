// What callers may get wrong at the broker: each call refuses it with a stable code, all of it at once, and nothing happens.
import { describe, expect, it } from 'vitest';
import { EmbeddedBroker } from '../../../src/broker/embedded-broker.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';
import { embedded } from '../../../src/transports/embedded/embedded-transport.js';
import { TOPIC, TestBroker, message } from './broker-kit.js';

const sink = { deliver: () => undefined, activeChanged: () => undefined, disconnected: () => undefined };
const request = { topic: 't', subscription: 's', type: 'shared', initialPosition: 'earliest', consumerName: 'c' };

/** The broker without its types: what a caller in JavaScript has. */
type Untyped = Record<string, (...given: readonly unknown[]) => unknown>;
const untyped = (typed: object): Untyped => typed as unknown as Untyped;

async function codeOf(run: () => unknown): Promise<unknown> {
  try {
    await run();
    return 'taken';
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
}

describe('what is no option, request or list', () => {
  const forced = [null, 5, { forse: true }, { force: 'no' }];
  const durations = [undefined, null, Number.NaN, -1, '1'];
  const calls: readonly (readonly [call: string, given: readonly unknown[]])[] = [
    ...forced.map((options) => ['deleteTopic', ['t', options]] as const),
    ...forced.map((options) => ['deleteSubscription', ['t', 's', options]] as const),
    ...[undefined, '', ' ', 5].map((name) => ['createSubscription', ['t', name]] as const),
    ...durations.map((ms) => ['expireMessages', ['t', 's', ms]] as const),
    ...[undefined, null, 5, ''].map((watcher) => ['watchTopics', [watcher]] as const),
    ...[undefined, null, 5, { ...request, stickyRange: [] }].map((wrong) => ['subscribe', [wrong, sink]] as const),
    ...[undefined, null, 5, { deliver: () => undefined }].map((wrong) => ['subscribe', [request, wrong]] as const),
    ...[undefined, null, 5, { topic: 't', acessMode: 'shared' }].map((wrong) => ['producer', [wrong]] as const),
    ['producer', [{ topic: 't' }, 5]],
    ...[null, {}, { producerName: 'p', sequenceId: -1 }, { producerName: 'p', sequenceId: Number.NaN }].flatMap(
      (origin) => [
        ['publish', ['t', message('x'), origin]] as const,
        ['publishBatch', ['t', [message('x')], origin]] as const,
      ],
    ),
  ];

  it.each(calls)('is refused by %s %j, and changes nothing', async (call, given) => {
    const test = new TestBroker();
    test.broker.createSubscription('t', 's');
    await test.publish('1');
    const before = JSON.stringify([test.broker.topics(), test.stats(), test.broker.stats('t').producers]);

    expect(await codeOf(() => untyped(test.broker)[call]?.(...given))).toBe('CONFIGURATION_INVALID');
    expect(JSON.stringify([test.broker.topics(), test.stats(), test.broker.stats('t').producers])).toBe(before);
  });

  it.each([undefined, null, 5, {}, 'batch'])('is refused as a batch: %j', async (batch) => {
    const { broker } = new TestBroker();
    const producer = untyped(broker.producer({ topic: 't' }));

    expect(await codeOf(() => untyped(broker)['publishBatch']?.('t', batch))).toBe('PUBLISH_REFUSED');
    expect(await codeOf(() => producer['publishBatch']?.(batch, 1))).toBe('PUBLISH_REFUSED');
  });

  it.each([undefined, null, -1, 1.5, Number.NaN, '1', 2 ** 60])(
    'is refused as a sequence id: %j',
    async (sequenceId) => {
      const { broker } = new TestBroker({ deduplication: true });
      const producer = untyped(broker.producer({ topic: 't', producerName: 'p' }));

      expect(await codeOf(() => producer['publish']?.(message('x'), sequenceId))).toBe('CONFIGURATION_INVALID');
      expect(await codeOf(() => producer['publishBatch']?.([message('x')], sequenceId))).toBe('CONFIGURATION_INVALID');
      expect(broker.stats('t').messagesIn).toBe(0);
    },
  );
});

it('all that is wrong with a broker, or a consumer, is said at once', () => {
  const make = (options: object) => (): unknown => new EmbeddedBroker(options as never);

  expect(make({ clock: 5, store: {}, roundRobinChunk: 0 })).toThrow(/"clock" must be a Clock[^]*"store"[^]*roundRobin/);
  expect(make({ clock: { setTimer: () => undefined } })).toThrow('"clock" must be a Clock, got an object');
  expect(make({ clock: new FakeClock(), maxLedgerEntries: 2 ** 24 + 1 })).toThrow('at most 16777216');
  expect(make({ clock: new FakeClock(), store: null })).toThrow('"store" must have the methods append, acknowledge');
  expect(() => untyped(new TestBroker().broker)['subscribe']?.({ ...request, type: 'x', consumer: 1 }, 5)).toThrow(
    /"sink"[^]*unknown option "consumer"[^]*"type"/,
  );
});

describe('ids that are none', () => {
  const wrong = [undefined, null, 5, {}, [5], [null], 'ids'];

  it.each(wrong)('are refused by a consumer at the broker: %j', async (ids) => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    const handle = untyped(client.handle);

    for (const call of ['acknowledge', 'redeliver', 'seek'])
      expect(await codeOf(() => handle[call]?.(ids))).toBe('MESSAGE_ID_INVALID');
    expect(await codeOf(() => handle['seek']?.(new Date(Number.NaN)))).toBe('MESSAGE_ID_INVALID');
    expect([client.disconnects, test.stats().consumers.length]).toEqual([0, 1]);
  });

  it.each(wrong)('are refused by a subscription: %j', async (ids) => {
    const { broker } = new TestBroker();
    const transport = embedded({ broker });
    const spec = { topics: ['t'], subscription: 's', type: 'failover', initialPosition: 'earliest' } as const;
    const subscription = untyped(await transport.subscribe({ ...spec, prefetch: 1, consumerName: 'c' }));

    for (const call of ['acknowledge', 'acknowledgeCumulative', 'redeliver', 'seek'])
      expect(await codeOf(() => subscription[call]?.(ids))).toBe('MESSAGE_ID_INVALID');
    await transport.close();
  });

  it('beside good ones leave those as they are', async () => {
    const test = new TestBroker();
    const client = await test.connect('shared');
    await test.publish('1');

    for (const call of ['acknowledge', 'redeliver'])
      expect(await codeOf(() => untyped(client.handle)[call]?.([client.id('1'), null]))).toBe('MESSAGE_ID_INVALID');
    expect([client.take(), test.stats(TOPIC)]).toMatchObject(['1', { unacked: 1, backlog: 1, redeliveries: 0 }]);
  });
});
