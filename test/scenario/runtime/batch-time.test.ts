// Batch handlers against the clock: time limits are those of runs, not of the wait for a batch, and a drain waits for none.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, Outcome } from '../../../src/index.js';
import { on, seconds, skip, success } from '../../../src/index.js';
import { BatchWorld } from '../../support/batch-world.js';

let world: BatchWorld;
beforeEach(() => void (world = new BatchWorld()));
afterEach(() => world.end());

const exceeded = (): number => world.log.filter(({ message }) => message.includes('exceeds the ack timeout')).length;

describe('time limits', () => {
  it('count from the start of the batch, not from the wait for it', async () => {
    await world.startBatches(() => world.wait(80).then(() => success()), {
      batch: { maxWaitMs: 500 },
      timeoutMs: 100,
    });
    await world.publishAll('a');
    await world.clock.advanceBy(400);
    await world.publishAll('b');
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1 b#1']);
    expect(world.settled).toEqual(['success#1', 'success#1']);
  });

  it('that began before, in a plugin, stop while a delivery waits for its batch', async () => {
    const around = async (_: Delivery, next: () => Outcome | Promise<Outcome>): Promise<Outcome> => {
      await world.wait(10);
      return next();
    };
    await world.startBatches(() => world.wait(80).then(() => success()), {
      batch: { maxWaitMs: 500 },
      timeoutMs: 100,
      runtime: { plugins: [{ name: 'slow', aroundHandler: around }] },
    });
    await world.publishAll('a');
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1']);
    expect(world.settled).toEqual(['success#1']);
  });

  it('do not count while a batch waits for a slot', async () => {
    await world.startBatches(() => world.wait(80).then(() => success()), { timeoutMs: 100, concurrency: 1 });
    await world.publishAll('a b c d e f g h i');
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toHaveLength(3);
    expect(world.settled).toEqual(Array.from({ length: 9 }, () => 'success#1'));
  });

  it('abort the signal of each delivery, and each has failed', async () => {
    const aborted: string[] = [];
    await world.startBatches(
      (all) =>
        new Promise((resolve) => {
          for (const { payload, signal } of all) signal.addEventListener('abort', () => void aborted.push(payload));
          world.clock.setTimer(150, () => resolve(success()));
        }),
      { timeoutMs: 100, redelivery: { maxDeliveries: 1 } },
    );
    await world.publishAll('a b c');
    await world.clock.advanceBy(seconds(1));

    expect(aborted).toEqual(['a', 'b', 'c']);
    expect(await world.deadLetterPayloads()).toEqual(['a', 'b', 'c']);
  });

  it('give up a batch that does not end: its slot is free, and it is counted as one run', async () => {
    const endings: (() => void)[] = [];
    const runtime = await world.startBatches(
      ([first]) =>
        first?.attempt === 1 && first.payload === 'a'
          ? new Promise((resolve) => endings.push(() => resolve(success())))
          : success(),
      { timeoutMs: 100, abandonAfterMs: 0, concurrency: 1 },
    );
    await world.publishAll('a b c d e f');
    await world.clock.advanceBy(90);
    expect(world.batches).toEqual(['a#1 b#1 c#1']);
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1 b#1 c#1', 'd#1 e#1 f#1', 'a#2 b#2 c#2']);
    expect(world.log.filter(({ message }) => message.includes('given up'))).toHaveLength(1);
    expect(runtime.health()[0]).toMatchObject({ state: 'running' });
    for (const end of endings) end();
    await world.clock.advanceBy(0);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('of the ack timeout do not count while a delivery waits for its batch', async () => {
    await world.startBatches(() => success(), {
      batch: { maxWaitMs: seconds(5) },
      ackTimeoutMs: seconds(1),
    });
    await world.publishAll('a');
    await world.clock.advanceBy(seconds(20));

    expect(world.batches).toEqual(['a#1']);
    expect(exceeded()).toBe(0);
  });
});

it('the ack timeout of each delivery counts from the start of the batch', async () => {
  await world.startBatches(() => world.wait(seconds(3)).then(() => success()), { ackTimeoutMs: seconds(1) });
  await world.publishAll('a b');
  await world.clock.advanceBy(seconds(1));
  expect(exceeded()).toBe(0);
  await world.clock.advanceBy(seconds(9));

  expect(exceeded()).toBeGreaterThan(0);
  expect(world.batches).toEqual(['a#1 b#1']);
  expect(world.backlog('orders', 's')).toBe(0);
});

describe('a drain', () => {
  it('starts what has been collected, and takes no more', async () => {
    const runtime = await world.startBatches(() => success(), { batch: { maxWaitMs: seconds(3_600) } });
    await world.publishAll('a b');
    await world.clock.advanceBy(seconds(1));
    expect(world.batches).toEqual([]);

    expect(await world.drain(runtime)).toEqual({ complete: true, stillRunning: [] });
    expect(world.batches).toEqual(['a#1 b#1']);
    expect(world.backlog('orders', 's')).toBe(0);
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('past its deadline interrupts each delivery of a batch, and all go back uncounted', async () => {
    const runtime = await world.startBatches(
      (all) => new Promise((_, reject) => all[0]?.signal.addEventListener('abort', () => reject(new Error('cut')))),
      { redelivery: { maxDeliveries: 1 } },
    );
    await world.publishAll('a b c');
    await world.clock.advanceBy(0);
    expect(world.batches).toEqual(['a#1 b#1 c#1']);
    await world.drain(runtime, 0);

    expect(await world.deadLetterPayloads()).toEqual([]);
    const { backlog, unacked, redeliveries } = world.broker.stats('orders').subscriptions.get('s')!;
    expect({ backlog, unacked, redeliveries }).toEqual({ backlog: 3, unacked: 0, redeliveries: 0 });
  });

  it('past its deadline never acknowledges what no handler has had', async () => {
    const runtime = await world.startBatches(
      (all) => new Promise((resolve) => all[0]?.signal.addEventListener('abort', () => resolve(success()))),
      { concurrency: 1, onError: [on(Error, () => skip('not mine'))], batch: { maxMessages: 2, maxWaitMs: 10 } },
    );
    await world.publishAll('a');
    await world.clock.advanceBy(seconds(1));
    await world.publishAll('b');
    await world.clock.advanceBy(seconds(1));
    await world.drain(runtime, 0);

    expect(world.batches).toEqual(['a#1']);
    expect(world.backlog('orders', 's')).toBe(1);
    expect(world.broker.stats('orders').subscriptions.get('s')).toMatchObject({ unacked: 0, redeliveries: 0 });
  });
});
