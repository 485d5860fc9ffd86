// The public test kit: what `testRuntime` gives a test of handlers.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Delivery, Outcome } from '../../../src/index.js';
import {
  consoleLogger,
  defer,
  defineHandler,
  fixedBackoff,
  hours,
  idempotent,
  memoryIdempotencyStore,
  minutes,
  poison,
  retry,
  seconds,
  skip,
  success,
  textCodec,
  topic,
} from '../../../src/index.js';
import type { TestRuntime } from '../../../src/testing.js';
import { memoryAttemptStore, testRuntime } from '../../../src/testing.js';

const orders = topic('orders', { payload: z.object({ id: z.string() }) });
const receipts = topic('receipts');
type Order = Delivery<{ readonly id: string }>;

function billing(
  handle: (order: Order) => Outcome | Promise<Outcome>,
  more: object = {},
): ReturnType<typeof defineHandler> {
  const redelivery = { maxDeliveries: 3, backoff: fixedBackoff(seconds(10)) };
  return defineHandler({ name: 'billing', source: orders, subscription: 'billing', redelivery, ...more, handle });
}

/** What most tests ask of an outcome. */
function shortly(kit: TestRuntime): unknown[] {
  return kit
    .outcomes()
    .map(({ handler, payload, attempt, outcome, settlement }) => [handler, payload, attempt, outcome, settlement]);
}

describe('publish, settled and advanceBy', () => {
  it('run a message through its attempts, and each has its outcome', async () => {
    await using kit = await testRuntime([
      billing(({ attempt, payload }) => (attempt < 3 ? retry('no answer') : success(receipts.message(payload)))),
    ]);
    const a = { id: 'A-1' };
    await kit.publish(orders, a);
    await kit.settled();

    expect(shortly(kit)).toEqual([['billing', a, 1, 'retry', 'redeliver']]);
    await kit.advanceBy(seconds(20));
    expect(shortly(kit).slice(1)).toEqual([
      ['billing', a, 2, 'retry', 'redeliver'],
      ['billing', a, 3, 'success', 'acknowledge'],
    ]);
    expect(kit.published(receipts)).toMatchObject([
      { payload: a, properties: { 'pulsework-message-id': expect.any(String) as string } },
    ]);
  });

  it('settled waits for all that needs no time: chains of handlers, and turns of the event loop', async () => {
    const ran: string[] = [];
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const second = defineHandler({
      name: 'second',
      source: receipts,
      subscription: 's',
      handle: async () => {
        await turn();
        await turn();
        ran.push('second');
        return success();
      },
    });
    const first = billing(({ payload }) => {
      ran.push('first');
      return success(receipts.message(payload));
    });
    await using kit = await testRuntime([first, second]);
    await kit.publish(orders, { id: 'A-1' });
    await kit.settled();

    expect(ran).toEqual(['first', 'second']);
    expect(kit.outcomes()).toHaveLength(2);
  });

  it('leaves alone what waits for the clock', async () => {
    const kit: TestRuntime = await testRuntime([
      billing(async () => {
        await new Promise<void>((resolve) => void kit.clock.setTimer(minutes(1), resolve));
        return success();
      }),
    ]);
    await kit.publish(orders, { id: 'A-1' });
    await kit.settled();

    expect(kit.outcomes()).toEqual([]);
    await kit.advanceBy(minutes(1));
    expect(shortly(kit)).toEqual([['billing', { id: 'A-1' }, 1, 'success', 'acknowledge']]);
    await kit.close();
  });

  it('passes hours in which deliveries wait for their time', async () => {
    await using kit = await testRuntime([billing(() => success())]);
    await kit.publish(orders, { id: 'late' }, { deliverAfterMs: hours(5), key: 'k', properties: { tenant: 'acme' } });
    await kit.advanceBy(hours(5) - 1);

    expect(kit.outcomes()).toEqual([]);
    await kit.advanceBy(1);
    expect(kit.outcomes()).toMatchObject([{ key: 'k', properties: { tenant: 'acme' }, outcome: 'success' }]);
  });

  it('checks the payload of a topic by its schema, and takes anything for a name, in the codec of its handler', async () => {
    const seen: unknown[] = [];
    const notes = defineHandler({
      name: 'notes',
      source: topic('notes', { codec: textCodec }),
      subscription: 's',
      handle: ({ payload }) => {
        seen.push(payload);
        return success();
      },
    });
    await using kit = await testRuntime([billing(() => success()), notes]);

    await expect(kit.publish(orders, { id: 5 } as never)).rejects.toMatchObject({ code: 'PUBLISH_REFUSED' });
    await expect(kit.publish(orders, { id: 'A-1' }, null as never)).rejects.toMatchObject({
      code: 'PUBLISH_REFUSED',
      message: expect.stringContaining('"options" must be an object, got null') as string,
    });
    await kit.publish('orders', { id: 5 });
    await kit.publish('persistent://public/default/notes', 'hello');
    await kit.settled();
    expect(seen).toEqual(['hello']);
    expect(kit.deadLetters('orders')).toMatchObject([{ payload: { id: 5 }, cause: 'undecodable', attempts: 1 }]);
  });

  it('publishes to a topic without handlers too', async () => {
    await using kit = await testRuntime([billing(() => success())]);
    await kit.publish('elsewhere', [1, 2]);
    await kit.settled();

    expect([kit.outcomes(), kit.published('elsewhere').map(({ payload }) => payload)]).toEqual([[], [[1, 2]]]);
  });
});

describe('outcomes', () => {
  it('tell of what no handler saw too: unreadable payloads, and repeats of an idempotent handler', async () => {
    const once = idempotent(orders, {
      key: ({ payload }) => payload.id,
      store: memoryIdempotencyStore(),
      ttlMs: hours(1),
    });
    await using kit = await testRuntime([billing(() => skip('seen'), { idempotent: once })]);
    await kit.publish(orders, { id: 'A-1' });
    await kit.settled();
    await kit.publish(orders, { id: 'A-1' });
    await kit.broker.publish('orders', { payload: new TextEncoder().encode('{"id'), properties: {} });
    await kit.settled();

    expect(kit.outcomes().map(({ payload, outcome, cause }) => [payload, outcome, cause])).toEqual([
      [{ id: 'A-1' }, 'skip', undefined],
      [{ id: 'A-1' }, 'skip', undefined],
      ['{"id', 'poison', 'undecodable'],
    ]);
  });

  it('have the payload of each message of a batch, of a partition and of a retry letter', async () => {
    const handler = billing(
      ({ attempt }) => (attempt === 1 ? retry('later', { backoff: fixedBackoff(minutes(20)) }) : success()),
      {
        retryTopic: true,
      },
    );
    await using kit = await testRuntime({ handlers: [handler], partitions: { orders: 2 } });
    const encode = (id: string): Uint8Array => new TextEncoder().encode(JSON.stringify({ id }));
    await kit.broker.publishBatch(
      'orders',
      ['a', 'b'].map((id) => ({ payload: encode(id), properties: {} })),
    );
    await kit.advanceBy(minutes(21));

    expect(kit.outcomes().map(({ payload, attempt, strategy }) => [payload, attempt, strategy])).toEqual([
      [{ id: 'a' }, 1, 'republish'],
      [{ id: 'b' }, 1, 'republish'],
      [{ id: 'a' }, 2, undefined],
      [{ id: 'b' }, 2, undefined],
    ]);
  });
});

describe('deadLetters', () => {
  it('say why, after how many attempts, and what the original was', async () => {
    await using kit = await testRuntime([
      billing(({ payload }) => (payload.id === 'bad' ? poison('card stolen') : retry(new Error('no answer')))),
      defineHandler({ name: 'audit', source: orders, subscription: 'audit', handle: () => poison('never') }),
    ]);
    await kit.publish(orders, { id: 'slow' }, { key: 'k', properties: { tenant: 'acme' } });
    await kit.publish(orders, { id: 'bad' });
    await kit.advanceBy(minutes(1));
    const letters = kit.deadLetters(orders);

    expect(letters.filter(({ handler }) => handler === 'billing')).toMatchObject([
      { payload: { id: 'bad' }, reason: 'card stolen', cause: 'poison', attempts: 1, properties: {}, key: undefined },
      { payload: { id: 'slow' }, reason: 'no answer', cause: 'redeliveries-exhausted', attempts: 3, key: 'k' },
    ]);
    expect(letters.at(-1)?.properties).toEqual({ tenant: 'acme' });
    expect(letters.at(-1)?.letterProperties).toMatchObject({ tenant: 'acme', 'pulsework-error-name': 'Error' });
    expect(letters.filter(({ handler }) => handler === 'audit')).toHaveLength(2);
  });

  it('keep apart what topics share a dead letter topic', async () => {
    const refunds = topic('refunds');
    const both = defineHandler({
      name: 'both',
      source: [orders, refunds],
      subscription: 's',
      deadLetterTopic: 'graveyard',
      handle: () => poison('no'),
    });
    await using kit = await testRuntime([both]);
    await kit.publish(orders, { id: 'o' });
    await kit.publish(refunds, { id: 'r' });
    await kit.settled();

    expect(kit.deadLetters(orders).map(({ payload }) => payload)).toEqual([{ id: 'o' }]);
    expect(kit.deadLetters('refunds').map(({ payload }) => payload)).toEqual([{ id: 'r' }]);
    expect(kit.published('graveyard')).toHaveLength(2);
  });

  it('of a topic without handlers are an error that names those with', async () => {
    await using kit = await testRuntime([billing(() => success())]);

    expect(kit.deadLetters('orders')).toEqual([]);
    expect(() => kit.deadLetters('order')).toThrow(
      'deadLetters: topic "persistent://public/default/order": no handler listens to it; handlers listen to persistent://public/default/orders',
    );
    expect(() => kit.published('order')).toThrow(/nothing was published to it and no handler knows it/);
  });
});

it('published gives an empty list for a topic that a handler says it publishes to', async () => {
  await using kit = await testRuntime([billing(() => success(), { publishes: [receipts] })]);

  expect(kit.published('receipts')).toEqual([]);
});

describe('testRuntime', () => {
  it('takes the options of Runtime.start', async () => {
    class Shop {
      static readonly made: string[] = [];
    }
    const lines: string[] = [];
    const settled: string[] = [];
    const log = (line: string): void => void lines.push(line);
    await using kit = await testRuntime({
      handlers: [billing(() => defer(seconds(1)))],
      namespace: 'acme/prod',
      topics: (name) => `${name}-v2`,
      plugins: [{ name: 'mine', onSettled: ({ outcome }) => void settled.push(outcome) }],
      logger: { debug: log, info: log, warn: log, error: log },
      resolve: () => new Shop(),
    });
    await kit.publish(orders, { id: 'A-1' });
    await kit.settled();

    expect(lines).toContain('runtime started');
    expect(settled).toEqual(['defer']);
    expect(kit.outcomes()).toMatchObject([{ topic: 'persistent://acme/prod/orders-v2', payload: { id: 'A-1' } }]);
    expect(kit.deadLetters(orders)).toEqual([]);
  });

  it('refuses what is wrong as Runtime.start does, and what is its own', async () => {
    const handlers = [billing(() => success())];
    const transport = {} as never;

    await expect(testRuntime({ handlers, transport } as never)).rejects.toThrow(
      'testRuntime: "transport" is the kit\'s own; leave it out',
    );
    await expect(testRuntime({ handlers, plugin: [] } as never)).rejects.toThrow(
      /unknown option "plugin", did you mean "plugins"/,
    );
    await expect(testRuntime({ handlers, partition: {} } as never)).rejects.toThrow(
      'testRuntime: unknown option "partition", did you mean "partitions"?',
    );
    await expect(testRuntime(handlers[0] as never)).rejects.toThrow(
      'testRuntime: it takes a list of handlers, got one handler; put it in brackets',
    );
    await expect(testRuntime({ handlers, plugins: 5 } as never)).rejects.toThrow(/"plugins" must be a list/);
    await expect(testRuntime({ handlers, partitions: { orders: 0 } })).rejects.toThrow(
      /"partitions.orders" must be a positive integer, got 0/,
    );
    await expect(
      testRuntime({ handlers, transport, plugin: [], partitions: { orders: 0, oders: 2 } } as never),
    ).rejects.toMatchObject({
      problems: [
        expect.stringContaining('unknown option "plugin"') as string,
        expect.stringContaining('"transport" is the kit') as string,
        'testRuntime: "partitions.orders" must be a positive integer, got 0',
        expect.stringMatching(
          /"partitions.oders": no handler takes from persistent:.*oders, .* listen to .*orders$/,
        ) as string,
      ],
    });
    const names = { orders: 2, 'public/default/orders': 2, 'orders-partition-1': 1, 'a/b': 1 };
    await expect(testRuntime({ handlers, partitions: names })).rejects.toMatchObject({
      problems: [
        expect.stringMatching(/"partitions.public.default.orders": topic .* is there twice/) as string,
        expect.stringMatching(/"partitions.orders-partition-1": no handler takes from/) as string,
        expect.stringMatching(/"partitions.a.b": topic name "a.b" is not valid/) as string,
      ],
    });
    await expect(testRuntime({ handlers, drainDeadlineMs: -1, partitions: 5 } as never)).rejects.toMatchObject({
      problems: [
        expect.stringContaining('"drainDeadlineMs"') as string,
        expect.stringContaining('"partitions" must be an object') as string,
      ],
    });
    await expect(testRuntime(undefined as never)).rejects.toThrow(
      /takes a list of handlers, or options with one, got undefined/,
    );
  });

  it('does the same in each run', async () => {
    const run = async (): Promise<string> => {
      let n = 0;
      const handler = billing(({ attempt }) => (n++ % 3 < attempt ? retry('no') : success(receipts.message({ n }))), {
        concurrency: 4,
      });
      await using kit = await testRuntime([handler]);
      kit.broker.inject({ duplicate: 0.2, delay: 0.2, disconnect: 0.1, seed: 3 });
      for (let i = 0; i < 30; i++) await kit.publish(orders, { id: String(i) });
      await kit.advanceBy(minutes(2));
      return JSON.stringify([
        shortly(kit),
        kit.published(receipts),
        kit.outcomes().map(({ id }) => id),
        kit.deadLetters(orders).length,
      ]);
    };
    const first = await run();

    expect(first.length).toBeGreaterThan(1_000);
    expect(await run()).toBe(first);
  });

  it('partitions what handlers say that they publish to', async () => {
    const handlers = [billing(() => success(receipts.message({ n: 1 })), { publishes: [receipts] })];
    await using kit = await testRuntime({ handlers, partitions: { receipts: 3 } });
    await kit.publish(orders, { id: 'A-1' });
    await kit.settled();

    expect([kit.broker.partitionCount('receipts'), kit.published(receipts).length]).toEqual([3, 1]);
  });

  it('closes although a store never does, however long a call may take', async () => {
    const attemptStore = memoryAttemptStore();
    attemptStore.close = () => new Promise(() => undefined);
    const kit = await testRuntime({ handlers: [billing(() => success())], attemptStore, callTimeoutMs: hours(24) });
    await kit.close();

    expect(kit.runtime.state).toBe('closed');
  });

  it('closes although handlers never end, twice too, and in the middle of a drain', async () => {
    const kit = await testRuntime([billing(() => new Promise<never>(() => undefined))]);
    await kit.publish(orders, { id: 'A-1' });
    await kit.settled();
    await kit.close();
    await kit.close();

    expect(kit.runtime.state).toBe('closed');
    expect(kit.outcomes()).toEqual([]);
    const quiet = await testRuntime({
      handlers: [billing(() => success())],
      logger: consoleLogger({ level: 'silent' }),
    });
    const draining = quiet.runtime.drain();
    await quiet.close();
    await expect(draining).resolves.toMatchObject({ stillRunning: [] });
  });
});
