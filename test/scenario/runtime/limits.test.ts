import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import { defineHandler, fixedBackoff, retry, seconds, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const orders = topic('orders');
let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

const never = new Promise<Outcome>(() => undefined);

async function startHandler(handle: (delivery: Delivery) => Outcome | Promise<Outcome>, options: HandlerOptions) {
  const runs: string[] = [];
  const startMs = world.clock.now();
  const runtime = await world.start({
    handlers: [
      defineHandler({
        name: 'h',
        source: orders,
        subscription: 's',
        ...options,
        handle: (delivery) => {
          runs.push(`${String(delivery.payload)}#${delivery.attempt}@${(world.clock.now() - startMs) / 1_000}`);
          return handle(delivery);
        },
      }),
    ],
  });
  return { runs, runtime };
}

describe('concurrency', () => {
  it.each([1, 4, 16])('never more than %i runs at a time, and as many where there is work', async (concurrency) => {
    let running = 0;
    let most = 0;
    await startHandler(
      async () => {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => world.clock.setTimer(10, resolve));
        running--;
        return success();
      },
      { concurrency },
    );
    for (let i = 0; i < 40; i++) await world.publish('orders', i);
    await world.clock.advanceBy(seconds(1));
    expect(most).toBe(concurrency);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('is 1 on exclusive unless asked for, so messages run in order', async () => {
    let running = 0;
    await startHandler(
      async () => {
        expect(++running).toBe(1);
        await new Promise<void>((resolve) => world.clock.setTimer(1, resolve));
        running--;
        return success();
      },
      { type: 'exclusive' },
    );
    for (let i = 0; i < 5; i++) await world.publish('orders', i);
    await world.clock.advanceBy(seconds(1));
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

describe('timeoutMs', () => {
  it('aborts the signal at the limit and retries only when the run has ended', async () => {
    const abortedAt: number[] = [];
    const startMs = world.clock.now();
    const { runs } = await startHandler(
      async ({ signal, attempt }) => {
        if (attempt > 1) return success();
        signal.addEventListener('abort', () => abortedAt.push(world.clock.now() - startMs));
        await new Promise<void>((resolve) => world.clock.setTimer(1_500, resolve));
        return success();
      },
      { timeoutMs: 1_000, abandonAfterMs: 10_000, redelivery: { backoff: fixedBackoff(100) } },
    );
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(5));
    expect(abortedAt).toEqual([1_000]);
    expect(runs).toEqual(['a#1@0', 'a#2@1.6']);
  });

  it('gives up a run that does not end, frees its slot, and retries', async () => {
    const { runs } = await startHandler(
      ({ attempt, payload }) => (attempt === 1 && payload === 'a' ? never : success()),
      {
        timeoutMs: 1_000,
        abandonAfterMs: 500,
        concurrency: 1,
        redelivery: { backoff: fixedBackoff(100) },
      },
    );
    await world.publish('orders', 'a');
    await world.publish('orders', 'b');
    await world.clock.advanceBy(1_499);
    expect(runs).toEqual(['a#1@0']);
    await world.clock.advanceBy(seconds(5));
    expect(runs.slice(1)).toEqual(['b#1@1.5', 'a#2@1.6']);
    expect(world.log.filter((line) => line.level === 'error' && line.message.includes('given up'))).toHaveLength(1);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('pauses a subscription with more given-up runs than concurrency, and goes on when they end', async () => {
    const endings: (() => void)[] = [];
    const { runtime } = await startHandler(
      ({ attempt }) => (attempt < 3 ? new Promise((resolve) => endings.push(() => resolve(success()))) : success()),
      {
        timeoutMs: 100,
        abandonAfterMs: 0,
        concurrency: 1,
        redelivery: { backoff: fixedBackoff(100) },
      },
    );
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(2));
    expect(runtime.health()[0]).toMatchObject({ state: 'degraded', pausedBy: ['abandoned-runs'] });
    for (const end of endings) end();
    await world.clock.advanceBy(seconds(1));
    expect(runtime.health()[0]).toMatchObject({ state: 'running' });
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('a late success does not count', async () => {
    const { runs } = await startHandler(
      async () => {
        await new Promise<void>((resolve) => world.clock.setTimer(200, resolve));
        return success();
      },
      { timeoutMs: 100, redelivery: { maxDeliveries: 2, backoff: fixedBackoff(10) } },
    );
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(2));
    expect(runs).toHaveLength(2);
    const [letter] = await world.deadLetters('orders', 's');
    expect(letter!.properties['pulsework-reason']).toBe('handler "h" did not end within 100 ms');
  });

  it('costs nothing that is left when every run ends in time', async () => {
    await startHandler(async () => success(), { timeoutMs: 1_000 });
    for (let i = 0; i < 50; i++) await world.publish('orders', i);
    await world.clock.advanceBy(0);
    expect(world.backlog('orders', 's')).toBe(0);
    await world.clock.advanceBy(seconds(60));
    expect(world.log.filter((line) => line.level === 'error')).toEqual([]);
  });
});

describe('maxHeld', () => {
  it('stops taking messages at the limit, visibly, and goes on below it', async () => {
    const { runtime, runs } = await startHandler(({ attempt }) => (attempt === 1 ? retry() : success()), {
      maxHeld: 10,
      concurrency: 1,
      redelivery: { backoff: fixedBackoff(seconds(60)) },
    });
    for (let i = 0; i < 30; i++) await world.publish('orders', i);
    await world.clock.advanceBy(seconds(1));
    expect(runs).toHaveLength(10);
    expect(runtime.health()[0]).toMatchObject({ state: 'paused', pausedBy: ['held-full'], held: 10 });
    await world.clock.advanceBy(seconds(600));
    expect(world.backlog('orders', 's')).toBe(0);
    expect(runs).toHaveLength(60);
  });

  it('one timer serves all that is held', async () => {
    await startHandler(({ attempt }) => (attempt === 1 ? retry() : success()), {
      maxHeld: 500,
      redelivery: { backoff: (_, random) => seconds(60) + random() * 1_000 },
    });
    await world.clock.advanceBy(0);
    const before = world.clock.pendingTimers.length;
    for (let i = 0; i < 200; i++) await world.publish('orders', i);
    await world.clock.advanceBy(seconds(40));
    expect(world.clock.pendingTimers.length - before).toBeLessThanOrEqual(1);
  });
});

describe('pause and resume', () => {
  it('start nothing while paused and go on afterwards', async () => {
    const { runtime, runs } = await startHandler(() => success(), {});
    const handle = runtime.subscription('s', 'orders');
    handle.pause();
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(1));
    expect(runs).toEqual([]);
    expect(handle.health()).toMatchObject({ state: 'paused', pausedBy: ['operator'] });
    handle.resume();
    await world.clock.advanceBy(0);
    expect(runs).toEqual(['a#1@1']);
  });
});
