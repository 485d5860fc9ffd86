import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import { defer, defineHandler, on, poison, retry, seconds, skip, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const orders = topic('orders');
type Order = Delivery;

let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

const wait = (ms: number): Promise<void> => new Promise((resolve) => world.clock.setTimer(ms, resolve));

async function startHandler(handle: (order: Order) => Outcome | Promise<Outcome>, options: HandlerOptions = {}) {
  return world.start({
    handlers: [defineHandler({ name: 'h', source: orders, subscription: 's', ...options, handle })],
  });
}

describe('drain', () => {
  it('lets running handlers finish with a live signal and settles them', async () => {
    const aborted: boolean[] = [];
    const runtime = await startHandler(async (order) => {
      await wait(seconds(20));
      aborted.push(order.signal.aborted);
      return success();
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const report = await world.drain(runtime);
    expect(report).toEqual({ complete: true, stillRunning: [] });
    expect(aborted).toEqual([false]);
    expect(world.backlog('orders', 's')).toBe(0);
    await expect(runtime.closed).resolves.toBeUndefined();
  });

  it('takes no more messages once it began', async () => {
    let runs = 0;
    const runtime = await startHandler(
      async () => {
        runs++;
        await wait(seconds(5));
        return success();
      },
      { concurrency: 1 },
    );
    await world.publish('orders', 1);
    await world.publish('orders', 2);
    await world.publish('orders', 3);
    await world.clock.advanceBy(0);
    await world.drain(runtime);
    expect(runs).toBe(1);
    expect(world.backlog('orders', 's')).toBe(2);
  });

  it('aborts what is late, gives it back uncounted and makes no dead letter of it', async () => {
    const runtime = await startHandler(
      (order) =>
        new Promise((_, reject) => {
          order.signal.addEventListener('abort', () => reject(order.signal.reason as Error));
        }),
      { redelivery: { maxDeliveries: 1 } },
    );
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const report = await world.drain(runtime, seconds(3));
    expect(report.complete).toBe(false);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
    const attempts: number[] = [];
    await startHandler((order) => (attempts.push(order.attempt, order.redeliveryCount), success()));
    await world.clock.advanceBy(0);
    expect(attempts).toEqual([1, 0]);
  });

  it('still settles the success of a handler that ended on its signal', async () => {
    const runtime = await startHandler(
      (order) => new Promise((resolve) => order.signal.addEventListener('abort', () => resolve(success()))),
    );
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await world.drain(runtime, 0);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('never acknowledges what no handler has had, whatever `onError` says', async () => {
    const validate = (value: unknown): Promise<{ readonly value: unknown }> => wait(seconds(1)).then(() => ({ value }));
    const slow = topic('orders', { payload: { '~standard': { version: 1, vendor: 'test', validate } } });
    let runs = 0;
    const handler = defineHandler({
      name: 'h',
      source: slow,
      subscription: 's',
      onError: [on(Error, () => skip('every error'))],
      handle: () => (runs++, success()),
    });
    const runtime = await world.start({ handlers: [handler] });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await world.drain(runtime, 0);
    expect(runs).toBe(0);
    expect(world.backlog('orders', 's')).toBe(1);
  });

  it('names handlers that ignore their signal and closes all the same', async () => {
    world.endsEarly = true;
    const runtime = await startHandler(() => new Promise(() => undefined));
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    expect(await world.drain(runtime, 0)).toEqual({ complete: false, stillRunning: ['h'] });
    expect(runtime.state).toBe('closed');
    expect(world.backlog('orders', 's')).toBe(1);
  });

  it.each([
    ['held', () => retry(), {}],
    ['kept in place', () => defer(seconds(600)), {}],
    ['kept in place on exclusive', () => retry(), { type: 'exclusive' as const }],
  ])('gives back what is %s, uncounted and without waiting for its time (N-16)', async (_, handle, options) => {
    const runtime = await startHandler(handle, { redelivery: { backoff: () => seconds(600) }, ...options });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    expect(await world.drain(runtime)).toEqual({ complete: true, stillRunning: [] });
    expect(world.broker.stats('orders').subscriptions.get('s')).toMatchObject({
      backlog: 1,
      unacked: 0,
      redeliveries: 0,
    });
  });

  it('never unsubscribes', async () => {
    const runtime = await startHandler(() => success());
    await world.drain(runtime);
    expect(world.broker.stats('orders').subscriptions.has('s')).toBe(true);
  });

  it('is one drain, however often it is called, and leaves no timer', async () => {
    const runtime = await startHandler(() => retry(), { timeoutMs: 1_000 });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const first = runtime.drain();
    expect(runtime.drain()).toBe(first);
    expect(runtime.close()).toBe(first);
    await world.clock.advanceBy(seconds(1));
    await first;
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('finishes a dead letter that is being published', async () => {
    const runtime = await startHandler(async () => {
      await wait(seconds(1));
      return poison('bad');
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await world.drain(runtime);
    expect(await world.deadLetters('orders', 's')).toHaveLength(1);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('with an infinite deadline waits as long as it takes', async () => {
    const runtime = await startHandler(async () => {
      await wait(seconds(3_600));
      return success();
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const draining = runtime.drain({ deadlineMs: Infinity });
    await world.clock.advanceBy(seconds(3_600));
    expect(await draining).toEqual({ complete: true, stillRunning: [] });
  });

  it('tells plugins in order, closing in reverse', async () => {
    const calls: string[] = [];
    const plugin = (name: string, after?: string[]) => ({
      name,
      after,
      onStart: () => void calls.push(`${name} start`),
      onDrain: () => void calls.push(`${name} drain`),
      onClose: () => void calls.push(`${name} close`),
    });
    const runtime = await world.start({
      handlers: [defineHandler({ name: 'h', source: orders, subscription: 's', handle: () => success() })],
      plugins: [plugin('b', ['a']), plugin('a')],
    });
    await world.drain(runtime);
    expect(calls).toEqual(['a start', 'b start', 'a drain', 'b drain', 'b close', 'a close']);
  });
});

describe('close() while a drain is under way', () => {
  const untilAborted = ({ signal }: Order): Promise<Outcome> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

  it.each([seconds(30), Infinity])(
    'interrupts at once what the drain would have waited for (%s ms)',
    async (deadlineMs) => {
      const runtime = await startHandler(untilAborted);
      await world.publish('orders', 1);
      await world.clock.advanceBy(0);
      const draining = runtime.drain({ deadlineMs });
      await world.clock.advanceBy(seconds(2));
      expect(runtime.close()).toBe(draining);
      await world.clock.advanceBy(0);

      expect(await draining).toEqual({ complete: false, stillRunning: [] });
      expect(world.backlog('orders', 's')).toBe(1);
      expect(world.clock.pendingTimers).toEqual([]);
    },
  );

  it('twice leaves handlers their second after the signal', async () => {
    const runtime = await startHandler(
      ({ signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => void wait(900).then(() => resolve(success())))),
    );
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const closing = runtime.close();
    await world.clock.advanceBy(100);
    void runtime.close();
    await world.clock.advanceBy(seconds(1));
    expect(await closing).toEqual({ complete: false, stillRunning: [] });
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('by a plugin that hears of the drain is the same drain', async () => {
    const seen: unknown[] = [];
    let drain = (): Promise<unknown> => Promise.reject(new Error('not started'));
    const runtime = await world.start({
      handlers: [defineHandler({ name: 'h', source: orders, subscription: 's', handle: () => success() })],
      plugins: [
        {
          name: 'p',
          onStart: (control) => void (drain = () => control.drain()),
          onDrain: () => void drain().then((report) => seen.push(report)),
        },
      ],
    });
    const report = await world.drain(runtime);
    expect(seen).toEqual([report]);
  });
});
