import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  defer,
  defineHandler,
  dependencyDown,
  poison,
  retry,
  retryAfter,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const accounts = topic('accounts');
let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

/** Runs as `payload#attempt`, in the order they started. */
async function startOrdered(handle: (delivery: Delivery) => Outcome | Promise<Outcome>, options: HandlerOptions = {}) {
  const runs: string[] = [];
  const runtime = await world.start({
    handlers: [
      defineHandler({
        name: 'ledger',
        source: accounts,
        subscription: 's',
        type: 'key-shared',
        ordering: 'key',
        ...options,
        handle: (delivery) => {
          runs.push(`${String(delivery.payload)}#${delivery.attempt}`);
          return handle(delivery);
        },
      }),
    ],
  });
  return { runs, runtime };
}

async function publishKeyed(...payloads: readonly string[]): Promise<void> {
  for (const payload of payloads) await world.publish('accounts', payload, { key: payload[0] });
}

/** Where a failed message waits: in place, or at a broker that keeps the order of its key (PIP-493). */
describe.each(['disabled', 'best-effort'] as const)('ordering: key, ordered negative acks %s', (orderedNegativeAck) => {
  const start = (handle: Parameters<typeof startOrdered>[0], options: HandlerOptions = {}) =>
    startOrdered(handle, { orderedNegativeAck, ...options });

  it('goes by the ordering key where a message has one, as the broker does (K-01)', async () => {
    let failed = false;
    const { runs } = await start(({ payload }) => {
      if (payload !== 'a1' || failed) return success();
      failed = true;
      return retry();
    });
    for (const [payload, orderingKey] of ['a1 x', 'b1 y', 'a2 x'].map((pair) => pair.split(' ')))
      await world.publish('accounts', payload, { key: 'same', orderingKey: new TextEncoder().encode(orderingKey) });
    await world.clock.advanceBy(seconds(5));
    expect(runs).toEqual(['a1#1', 'b1#1', 'a1#2', 'a2#1']);
  });

  it.each([
    ['retry', () => retry()],
    ['retryAfter', () => retryAfter(seconds(1))],
    ['defer', () => defer(seconds(1))],
    [
      'a throw',
      () => {
        throw new Error('boom');
      },
    ],
  ])('a head that ends with %s holds its key, and only its key', async (_, failing) => {
    let failed = false;
    const { runs } = await start(({ payload }) => {
      if (payload !== 'a1' || failed) return success();
      failed = true;
      return failing();
    });
    await publishKeyed('a1', 'b1', 'a2', 'b2', 'a3');
    await world.clock.advanceBy(seconds(5));
    const keys = runs.map((run) => run.slice(0, 2));
    expect(keys.slice(0, 3)).toEqual(['a1', 'b1', 'b2']);
    expect(keys.slice(3)).toEqual(['a1', 'a2', 'a3']);
    expect(world.backlog('accounts', 's')).toBe(0);
  });

  it('runs one message per key at a time and different keys side by side', async () => {
    let running = 0;
    let most = 0;
    const perKey = new Map<string, number>();
    await start(
      async ({ key = '' }) => {
        most = Math.max(most, ++running);
        perKey.set(key, (perKey.get(key) ?? 0) + 1);
        expect(perKey.get(key)).toBe(1);
        await new Promise<void>((resolve) => world.clock.setTimer(10, resolve));
        perKey.set(key, 0);
        running--;
        return success();
      },
      { concurrency: 3 },
    );
    await publishKeyed('a1', 'a2', 'b1', 'b2', 'c1', 'c2', 'd1');
    await world.clock.advanceBy(seconds(1));
    expect(most).toBe(3);
    expect(world.backlog('accounts', 's')).toBe(0);
  });

  it('goes on with the key after its head became a dead letter', async () => {
    const { runs } = await start(({ payload }) => (payload === 'a1' ? poison('bad') : success()));
    await publishKeyed('a1', 'a2');
    await world.clock.advanceBy(0);
    expect(runs).toEqual(['a1#1', 'a2#1']);
  });

  it('a message without a key has no order to keep', async () => {
    const { runs } = await start(({ payload, attempt }) => (payload === 'x' && attempt === 1 ? retry() : success()));
    await world.publish('accounts', 'x');
    await world.publish('accounts', 'y');
    await world.clock.advanceBy(seconds(2));
    expect(runs).toEqual(['x#1', 'y#1', 'x#2']);
  });

  it('keeps order when the dependency of one head is down', async () => {
    let down = true;
    const { runs } = await start(() => (down ? dependencyDown('db', { retryAfterMs: seconds(1) }) : success()));
    await publishKeyed('a1', 'a2', 'b1');
    await world.clock.advanceBy(500);
    down = false;
    await world.clock.advanceBy(seconds(5));
    expect(runs.filter((run) => run.startsWith('a')).map((run) => run.slice(0, 2))).toEqual(['a1', 'a1', 'a2']);
    expect(world.backlog('accounts', 's')).toBe(0);
  });
});

describe('a message that waits in place', () => {
  const startInPlace = (handle: Parameters<typeof startOrdered>[0], options: HandlerOptions = {}) =>
    startOrdered(handle, { orderedNegativeAck: 'disabled', ...options });

  it('asks the broker for nothing back: its count would let later messages of the key pass', async () => {
    const { runs } = await startInPlace(({ attempt }) => (attempt < 3 ? retry() : success()));
    await publishKeyed('a1', 'a2');
    await world.clock.advanceBy(seconds(10));
    expect(runs).toEqual(['a1#1', 'a1#2', 'a1#3', 'a2#1', 'a2#2', 'a2#3']);
    expect(world.broker.stats('accounts').subscriptions.get('s')?.consumers[0]?.delivered).toBe(2);
  });

  it('stops taking messages when a lane is full, and goes on when its head is done', async () => {
    const { runs, runtime } = await startInPlace(
      ({ attempt }) => (attempt === 1 ? retryAfter(seconds(60)) : success()),
      {
        maxLaneMessages: 2,
        concurrency: 2,
      },
    );
    await publishKeyed('a1', 'a2', 'a3', 'a4', 'a5', 'b1');
    await world.clock.advanceBy(seconds(1));
    expect(runtime.health()[0]).toMatchObject({ state: 'paused', pausedBy: ['lane-full'] });
    await world.clock.advanceBy(seconds(600));
    expect(runs.filter((run) => run.startsWith('a')).map((run) => run.slice(0, 2))).toEqual([
      'a1',
      'a1',
      'a2',
      'a2',
      'a3',
      'a3',
      'a4',
      'a4',
      'a5',
      'a5',
    ]);
    expect(world.backlog('accounts', 's')).toBe(0);
  });
});

describe('a producer batch that mixes keys', () => {
  const mixed = () => world.log.filter(({ message }) => message.includes('mixes keys'));
  const batch = (...payloads: readonly string[]) =>
    payloads.map((payload) => ({ payload: Buffer.from(`"${payload}"`), properties: {}, key: payload[0] }));

  it('is reported once for each producer, by name', async () => {
    await startOrdered(() => success());
    await world.broker.publishBatch('accounts', batch('a1', 'b1'), { producerName: 'java-1', sequenceId: 0 });
    await world.broker.publishBatch('accounts', batch('a2', 'b2'), { producerName: 'java-1', sequenceId: 2 });
    await world.clock.advanceBy(seconds(1));
    expect(mixed().map(({ level, fields }) => [level, fields])).toEqual([
      ['error', { handler: 'ledger', producer: 'java-1', topic: 'persistent://public/default/accounts' }],
    ]);
  });

  it('is none where all of it has one key, or no order is asked for', async () => {
    await startOrdered(() => success());
    await world.broker.publishBatch('accounts', batch('a1', 'a2'));
    await world.broker.publishBatch('accounts', batch('b1', 'b2'));
    await world.clock.advanceBy(seconds(1));
    expect(mixed()).toEqual([]);
  });
});

describe('ordering: partition', () => {
  it('keeps the order of a topic while its head fails', async () => {
    const { runs } = await startOrdered(
      ({ payload, attempt }) => (payload === 'a1' && attempt < 3 ? retry() : success()),
      {
        type: 'failover',
        ordering: 'partition',
        concurrency: 8,
      },
    );
    await publishKeyed('a1', 'b1', 'c1');
    await world.clock.advanceBy(seconds(10));
    expect(runs).toEqual(['a1#1', 'a1#2', 'a1#3', 'b1#1', 'c1#1']);
  });

  it('different partitions go on', async () => {
    world.broker.createPartitionedTopic('accounts', 2);
    const { runs } = await startOrdered(
      ({ payload, attempt }) => (payload === 'a1' && attempt < 2 ? retry() : success()),
      {
        type: 'exclusive',
        ordering: 'partition',
        concurrency: 8,
      },
    );
    await world.broker.publish('accounts-partition-0', { payload: Buffer.from('"a1"'), properties: {} });
    await world.broker.publish('accounts-partition-0', { payload: Buffer.from('"a2"'), properties: {} });
    await world.broker.publish('accounts-partition-1', { payload: Buffer.from('"b1"'), properties: {} });
    await world.clock.advanceBy(seconds(5));
    expect(runs.indexOf('b1#1')).toBeLessThan(runs.indexOf('a1#2'));
    expect(runs.filter((run) => run.startsWith('a'))).toEqual(['a1#1', 'a1#2', 'a2#1']);
  });
});
