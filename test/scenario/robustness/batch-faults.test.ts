// Batch handlers among plugins that misbehave, killers and drains: each delivery of a batch is settled as if it were alone.
import { describe, expect, it } from 'vitest';
import type { Plugin, Runtime } from '../../../src/index.js';
import { fixedBackoff, minutes, poison, retry, seconds, success } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { AttemptMemory, memoryAttemptStore } from '../../../src/testing.js';
import { BatchWorld } from '../../support/batch-world.js';
import { CutTransport } from '../../support/cut-transport.js';
import { payloadOf } from '../../support/runtime-world.js';
import { unhandledDuring } from '../../support/unhandled.js';

const never = (): Promise<never> => new Promise(() => undefined);

/** Four messages through batches of 3 with one plugin around each delivery, then a drain. */
async function through(aroundHandler: NonNullable<Plugin['aroundHandler']>) {
  const world = new BatchWorld();
  let drainedMs: number | undefined;
  const unhandled = await unhandledDuring(async () => {
    const runtime = await world.startBatches(() => Promise.reject(new Error('boom')), {
      concurrency: 2,
      timeoutMs: seconds(2),
      redelivery: { maxDeliveries: 2, backoff: fixedBackoff(100) },
      runtime: { plugins: [{ name: 'p', aroundHandler }] },
    });
    await world.publishAll('a b c d');
    await world.clock.advanceBy(minutes(1));
    drainedMs = await drained(world, runtime);
  });
  const deadLetters = (await world.deadLetterPayloads()).sort();
  return { world, deadLetters, drainedMs, unhandled, backlog: world.backlog('orders', 's') };
}

async function drained(world: BatchWorld, runtime: Runtime): Promise<number | undefined> {
  const startMs = world.clock.now();
  let endedMs: number | undefined;
  void runtime.drain({ deadlineMs: 100 }).then(() => (endedMs = world.clock.now()));
  await world.clock.advanceBy(minutes(2));
  return endedMs === undefined ? undefined : endedMs - startMs;
}

describe('a plugin around each delivery of a batch', () => {
  it.each<[string, number, NonNullable<Plugin['aroundHandler']>]>([
    ['never calls next()', 0, () => retry()],
    [
      'throws before next()',
      0,
      () => {
        throw new Error('x');
      },
    ],
    [
      'throws after next()',
      4,
      async (_, next) => {
        await next();
        throw new Error('x');
      },
    ],
    ['gives something that is no outcome', 4, async (_, next) => (await next(), 'x' as never)],
    [
      'takes its time before next()',
      4,
      (_, next) =>
        Promise.resolve()
          .then(() => Promise.resolve())
          .then(next),
    ],
  ])('that %s costs each its attempts, and nothing else', async (_, batches, aroundHandler) => {
    const { world, ...left } = await through(aroundHandler);
    expect(left).toEqual({ deadLetters: ['a', 'b', 'c', 'd'], drainedMs: 0, unhandled: [], backlog: 0 });
    expect(world.batches).toHaveLength(batches);
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('that never returns ends as given-up runs, and a drain ends', async () => {
    const { world, ...left } = await through(never);
    expect(left).toEqual({ deadLetters: [], drainedMs: 0, unhandled: [], backlog: 4 });
    expect(world.clock.pendingTimers).toEqual([]);
  });
});

describe('a batch with a message that kills its process', () => {
  it('is broken up at the next start: each runs alone, only the killer is given up, after maxDeliveries + 1 deaths', async () => {
    const world = new BatchWorld();
    const memory = new AttemptMemory();
    const sizes: number[] = [];
    let restarts = 0;
    for (const name of ['p0', 'p1', 'p2', 'killer', 'p3', 'p4']) await world.publish('orders', name);
    while (restarts < 8 && (restarts === 0 || world.backlog('orders', 's') > 0)) {
      restarts += 1;
      const transport = embedded({ broker: world.broker });
      const die = async (): Promise<never> => {
        memory.processDied();
        await transport.close();
        return never();
      };
      await world.startBatches(
        async (all) => {
          if (restarts === 2) sizes.push(all.length);
          await world.wait(20);
          return all.some(({ payload }) => payload === 'killer') ? die() : success();
        },
        {
          redelivery: { maxDeliveries: 3 },
          runtime: { transport, attemptStore: memoryAttemptStore({ memory }) },
        },
      );
      await world.clock.advanceBy(seconds(30));
    }

    // Whoever was in its batch is suspected too, and cleared by a run alone.
    expect(new Set(sizes)).toEqual(new Set([1]));
    const letters = await world.deadLetters('orders', 's');
    expect(letters.map((letter) => [payloadOf(letter), letter.properties['pulsework-cause']])).toEqual([
      ['killer', 'process-died'],
    ]);
    expect(restarts).toBe(5);
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

describe('a batch under ordering with a message that blocks its key', () => {
  it('keeps that key blocked over an unload and a lost connection, and the other keys go on', async () => {
    const world = new BatchWorld();
    const cut = new CutTransport(embedded({ broker: world.broker }));
    const runtime = await world.startBatches(
      (all) => all.map(({ payload }) => (payload === 'k1' ? poison('x') : success())),
      { type: 'key-shared', ordering: 'key', onDeadLetter: 'block-key', runtime: { transport: cut.transport } },
    );
    await world.publishAll('k1 k2 o1 o2', true);
    await world.clock.advanceBy(seconds(1));
    world.broker.unload('orders');
    await world.clock.advanceBy(seconds(5));
    await cut.links[0]?.cut();
    await world.clock.advanceBy(seconds(1));
    await cut.links[0]?.open();
    await world.publishAll('o3', true);
    await world.clock.advanceBy(minutes(1));

    expect(world.batches).toEqual(['k1#1 o1#1', 'o2#1', 'o3#1']);
    expect(runtime.health()[0]).toMatchObject({ state: 'degraded', kept: 1 });
    expect(world.backlog('orders', 's')).toBe(2);
    await world.drain(runtime);
    expect(world.clock.pendingTimers).toEqual([]);
  });
});

describe('a batch under load', () => {
  it('with retries, a full hold and a retry letter topic makes a bounded number of calls', async () => {
    const world = new BatchWorld();
    const messages = 1_000;
    let runs = 0;
    await world.startBatches(
      (all) => {
        runs += all.length;
        return all.map(({ payload, attempt }) => (payload.endsWith('0') || attempt === 3 ? success() : retry()));
      },
      {
        batch: { maxMessages: 50, maxWaitMs: 20 },
        retryTopic: true,
        maxHeld: 100,
        redelivery: { maxDeliveries: 4, backoff: (redeliveries) => seconds(redeliveries + 1) },
      },
    );
    for (let i = 0; i < messages; i++) await world.publish('orders', String(i));
    await world.clock.advanceBy(minutes(5));

    expect(runs).toBe(messages * 0.1 + messages * 0.9 * 3);
    expect([world.backlog('orders', 's'), world.backlog('orders-s-RETRY', 's')]).toEqual([0, 0]);
    // One report per run: nothing went round without running.
    expect(world.reports).toHaveLength(runs);
  });
});
