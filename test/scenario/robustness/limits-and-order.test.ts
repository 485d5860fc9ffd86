// Bounds, order, attempts, clocks and names at their edges.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, RuntimeOptions } from '../../../src/index.js';
import {
  Runtime,
  bytesCodec,
  consoleLogger,
  defer,
  defineHandler,
  dependencyDown,
  poison,
  retry,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { EmbeddedBroker, embedded } from '../../../src/embedded.js';
import { FaultyTransport } from '../../../src/testing/faulty-transport.js';
import { World } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));

async function start(
  handle: (d: Delivery) => Outcome | Promise<Outcome>,
  options: HandlerOptions = {},
  runtime: Partial<RuntimeOptions> = {},
) {
  return world.start({
    handlers: [defineHandler({ name: 'h', source: topic('orders'), subscription: 's', ...options, handle })],
    ...runtime,
  });
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => world.clock.setTimer(ms, resolve));

describe('an attempt', () => {
  it.each(['answer-lost', 'hangs-done', 'rejects-late', 'throws', 'hangs'] as const)(
    'is counted once when the request for redelivery %s',
    async (fault) => {
      // "One delivery more, never one fewer": a request asked twice must not eat a delivery.
      const transport = new FaultyTransport(embedded({ broker: world.broker }), { at: 1, fault, clock: world.clock });
      const attempts: number[] = [];
      await start((d) => (attempts.push(d.attempt), retry()), { redelivery: { maxDeliveries: 4 } }, { transport });
      await world.publish('orders', 1);
      await world.clock.advanceBy(seconds(600));
      expect(attempts).toEqual([1, 2, 3, 4]);
    },
  );

  it('of a message in a batch whose every index has another fate is its own', async () => {
    const runs: string[] = [];
    let downs = 0;
    await start(
      (d) => {
        runs.push(`${String(d.payload)}#${d.attempt}`);
        switch (d.payload) {
          case 'ok':
            return success();
          case 'poison':
            return poison('x');
          case 'retry':
            return d.attempt < 3 ? retry() : success();
          case 'always':
            return retry();
          case 'down':
            return downs++ < 2 ? dependencyDown('db') : success();
          default:
            return runs.filter((run) => run.startsWith('defer')).length < 3 ? defer(seconds(2)) : success();
        }
      },
      { redelivery: { maxDeliveries: 4 } },
    );
    await world.publishBatch('orders', ['ok', 'poison', 'retry', 'always', 'down', 'defer']);
    await world.clock.advanceBy(seconds(600));
    const of = (name: string) => runs.filter((run) => run.startsWith(name));
    expect({ ok: of('ok'), poison: of('poison'), retry: of('retry'), always: of('always') }).toEqual({
      ok: ['ok#1'],
      poison: ['poison#1'],
      retry: ['retry#1', 'retry#2', 'retry#3'],
      always: ['always#1', 'always#2', 'always#3', 'always#4'],
    });
    expect(new Set(of('defer'))).toEqual(new Set(['defer#1']));
    expect(await world.deadLetters('orders', 's')).toHaveLength(2);
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

describe('bounds', () => {
  it('count what waits in lanes against maxHeldBytes', async () => {
    // Section 3: lane messages behind their head have maxLaneMessages and maxHeldBytes.
    await start(() => retry(), {
      type: 'key-shared',
      ordering: 'key',
      maxHeldBytes: 50_000,
      redelivery: { backoff: () => seconds(600) },
    });
    for (let i = 0; i < 2_000; i++) await world.publish('orders', 'x'.repeat(1_000), { key: `k${i % 10}` });
    await world.clock.advanceBy(seconds(1));
    // 50 messages of 1 kB are the limit; some slack for concurrency and prefetch.
    expect(world.broker.stats('orders').subscriptions.get('s')!.unacked).toBeLessThan(150);
  });

  it('hold for a probe of a dependency with retryAfterMs 0: no tight loop', async () => {
    // "doubling each time up to a minute": zero must not stay zero, nor become NaN after a thousand probes.
    let runs = 0;
    const runtime = await start(() => {
      runs++;
      return runs < 3_000 ? dependencyDown('db', { retryAfterMs: 0 }) : success();
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(10));
    await world.drain(runtime, 0);
    expect(runs).toBeLessThan(100);
  });

  it.each([
    ['maxHeld 1', { maxHeld: 1 }],
    ['maxHeldBytes 1', { maxHeldBytes: 1 }],
    ['maxLaneMessages 1', { maxLaneMessages: 1, type: 'key-shared', ordering: 'key' }],
    ['prefetch 1', { prefetch: 1, concurrency: 7 }],
    ['prefetch 1000', { prefetch: 1_000, concurrency: 1 }],
    ['everything 1', { maxHeld: 1, maxHeldBytes: 1, maxLaneMessages: 1, prefetch: 1, concurrency: 1 }],
    ['one slot and lanes', { concurrency: 1, type: 'key-shared', ordering: 'key' }],
    ['a partition in order', { type: 'failover', ordering: 'partition', maxLaneMessages: 1 }],
  ] as [string, HandlerOptions][])('of %s slow work down but never stop it', async (_, options) => {
    let failures = 0;
    await start(
      (d) => {
        if (Number(d.payload) % 3 !== 0 || d.attempt > 2) return success();
        return failures++ % 2 === 0 ? retry() : defer(500);
      },
      { redelivery: { backoff: () => 100 }, ...options },
    );
    for (let i = 0; i < 60; i++) await world.publish('orders', i, { key: `k${i % 4}` });
    await world.publishBatch('orders', [61, 62, 63, 66, 69]);
    await world.clock.advanceBy(seconds(600));
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

describe('order per key', () => {
  it('holds for a key that one producer writes as text and another as bytes', async () => {
    // To a broker both are one key: the same bytes.
    let running = 0;
    let most = 0;
    await start(
      async () => {
        most = Math.max(most, ++running);
        await wait(100);
        running--;
        return success();
      },
      { type: 'key-shared', ordering: 'key' },
    );
    await world.publish('orders', 1, { key: 'k' });
    await world.publish('orders', 2, { key: Buffer.from('k') });
    await world.clock.advanceBy(seconds(1));
    expect(most).toBe(1);
  });

  it('holds on failover when another process becomes the active one while a message is kept here', async () => {
    // Standing by, this process must not run what the broker gave to the other one.
    const runs: string[] = [];
    const runtimeOf = (name: string, handle: () => Outcome) =>
      world.start({
        random: () => (name === 'a' ? 0.9 : 0.1),
        handlers: [
          defineHandler({
            name,
            source: topic('orders'),
            subscription: 's',
            type: 'failover',
            ordering: 'partition',
            redelivery: { backoff: () => seconds(30) },
            handle: (d) => (runs.push(`${name}:${String(d.payload)}`), handle()),
          }),
        ],
      });
    // Which of the names is chosen is the broker's: the one that is not active first starts second.
    let failing = true;
    for (const [first, second] of [
      ['zz', 'aa'],
      ['aa', 'zz'],
      ['m1', 'm2'],
      ['m3', 'm1'],
    ] as const) {
      world = new World();
      runs.length = 0;
      failing = true;
      await runtimeOf(first, () => (failing ? retry() : success()));
      await world.clock.advanceBy(seconds(5));
      for (const id of [1, 2, 3]) await world.publish('orders', id);
      await world.clock.advanceBy(seconds(1));
      failing = false;
      await runtimeOf(second, () => success());
      await world.clock.advanceBy(seconds(120));
      const byOther = runs.some((run) => run.startsWith(`${second}:`));
      if (byOther) expect(runs.filter((run) => run.endsWith(':1'))).toEqual([`${first}:1`, `${second}:1`]);
    }
  });
});

describe('names', () => {
  it('of one partition can be a source', async () => {
    world.broker.createPartitionedTopic('parts', 2);
    const runs: unknown[] = [];
    await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('parts-partition-0'),
          subscription: 's',
          redelivery: { maxDeliveries: 1 },
          handle: (d) => (runs.push(d.payload), success()),
        }),
      ],
    });
    await world.publish('parts-partition-0', 1);
    await world.clock.advanceBy(seconds(1));
    expect(runs).toEqual([1]);
    expect(await world.deadLetters('parts', 's')).toEqual([]);
  });
});

describe('a dead letter', () => {
  it.each([0, 100, 1_000, 4_000])('of a message %i bytes below the limit of the broker is published', async (below) => {
    // "A property set over the broker's limit is cut from the least important end, never refused."
    const limit = 20_000;
    const broker = new EmbeddedBroker({ clock: world.clock, maxMessageBytes: limit });
    const runtime = await world.start({
      transport: embedded({ broker }),
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders', { codec: bytesCodec }),
          subscription: 's',
          handle: () => poison('x'),
        }),
      ],
    });
    await broker.publish('orders', { payload: new Uint8Array(limit - below), properties: {} });
    await world.clock.advanceBy(seconds(1));
    expect(runtime.health()[0]?.reason).toBeUndefined();
    expect(broker.stats('orders').subscriptions.get('s')?.backlog).toBe(0);
  });

  it('is said by the console logger also when the error cannot be shown', () => {
    // A line lost is a dead letter that nobody hears of.
    const lines: string[] = [];
    const error = new Error('x');
    Object.defineProperty(error, 'message', {
      get: () => {
        throw new Error('hostile');
      },
    });
    const logger = consoleLogger({ level: 'info', write: (line) => void lines.push(line) });
    expect(() => logger.error('delivery dead-lettered', { error })).not.toThrow();
    expect(lines).toHaveLength(1);
  });
});

describe('a delivery', () => {
  it('cannot change what is delivered again through its ordering key', async () => {
    const seen: string[] = [];
    await start(
      (d) => {
        seen.push(Buffer.from(d.orderingKey ?? []).toString());
        d.orderingKey?.fill(120);
        return d.attempt < 2 ? retry() : success();
      },
      { type: 'key-shared' },
    );
    await world.publish('orders', 1, { orderingKey: Buffer.from('abc') });
    await world.clock.advanceBy(seconds(60));
    expect(seen).toEqual(['abc', 'abc']);
  });
});

describe('the event loop', () => {
  it('goes on while a handler that answers at once works through a backlog', async () => {
    // A timer, a signal, a probe of a load balancer: none may wait until the backlog is empty, or for ever.
    const { systemClock } = await import('../../../src/system/system-clock.js');
    const broker = new EmbeddedBroker({ clock: systemClock });
    const loop = topic('loop');
    let runs = 0;
    let turns = 0;
    const count = setInterval(() => turns++, 1);
    const runtime = await Runtime.start({
      transport: embedded({ broker }),
      logger: world.logger,
      handlers: [
        defineHandler({
          name: 'h',
          source: loop,
          subscription: 's',
          // Its own topic: without the limit it would never end, and neither would the process.
          handle: () => (++runs < 10_000 && turns < 5 ? success(loop.message(1)) : success()),
        }),
      ],
    });
    await broker.publish('loop', { payload: Buffer.from('1'), properties: {} });
    await new Promise((resolve) => setTimeout(resolve, 10));
    clearInterval(count);
    await runtime.close();
    expect(runs).toBeLessThan(10_000);
  });
});
