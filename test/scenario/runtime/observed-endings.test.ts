// Each run that was told ends once, however its delivery leaves the process; and what health says of it meanwhile.
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { AttemptStore, Delivery, Outcome } from '../../../src/index.js';
import { defineHandler, minutes, poison, retry, seconds, success, topic } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { memoryAttemptStore } from '../../../src/testing.js';
import { CutTransport } from '../../support/cut-transport.js';
import { World } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));

const orders = topic('orders', { payload: z.string() });
const receipts = topic('receipts');
const common = { name: 'billing', source: orders, subscription: 's' };

const told = (): string[] => world.telemetry.runs.map(({ start, end }) => `#${start.attempt} ${end}`);

describe('a run whose settlement was not made', () => {
  const confirming = defineHandler({ ...common, handle: () => success(receipts.message(1)) });

  async function unsettled() {
    const cut = new CutTransport(embedded({ broker: world.broker }));
    const runtime = await world.start({ transport: cut.transport, handlers: [confirming] });
    cut.publishFails = true;
    await world.publish('orders', 'a');
    await world.clock.advanceBy(0);
    expect(told()).toEqual(['#1 running']);
    return { cut, runtime };
  }

  it('is dropped when a drain ends before it is', async () => {
    const { runtime } = await unsettled();
    await world.drain(runtime, 0);
    expect(told()).toEqual(['#1 dropped']);
    expect(world.backlog('orders', 's')).toBe(1);
  });

  it('is dropped with its connection; who settles it later is not told of it again', async () => {
    const { cut, runtime } = await unsettled();
    await cut.links[0]?.cut();
    expect(told()).toEqual(['#1 dropped']);

    cut.publishFails = false;
    await cut.links[0]?.open();
    await world.clock.advanceBy(minutes(2));
    expect(world.backlog('orders', 's')).toBe(0);
    expect(await world.read('receipts')).toHaveLength(1);
    expect(told()).toEqual(['#1 dropped']);
    await world.drain(runtime);
  });
});

describe('a delivery that has its outcome before its batch', () => {
  it('is told like any other run, whoever gave the outcome', async () => {
    const gate = {
      name: 'gate',
      aroundHandler: (delivery: Delivery, next: () => Outcome | Promise<Outcome>) =>
        delivery.payload === 'refused' ? poison('not here') : next(),
    };
    const handler = defineHandler({ ...common, batch: { maxWaitMs: 10 }, handle: () => success() });
    const runtime = await world.start({ handlers: [handler], plugins: [gate] });
    for (const payload of ['a', 'refused', 5]) await world.publish('orders', payload);
    await world.clock.advanceBy(seconds(1));
    await world.drain(runtime);

    const ends = world.telemetry.runs.map(({ end, report }) => `${end} ${report?.outcome ?? ''}`);
    expect(ends.sort()).toEqual(['settled poison', 'settled poison', 'settled success']);
    expect(world.telemetry.batches).toEqual([1]);
  });

  it('is not told twice where its telemetry wanted to know nothing of it', async () => {
    const single: string[] = [];
    const handler = defineHandler({ ...common, batch: { maxWaitMs: 10 }, handle: () => success() });
    const telemetry = {
      startRun: ({ id }: { readonly id: unknown }) => void single.push(String(id)),
      startBatch: () => undefined,
    };
    const runtime = await world.start({ handlers: [handler], telemetry });
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(1));
    await world.drain(runtime);
    expect(single).toEqual([]);
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

describe('the age of the oldest failure', () => {
  const twoProcesses = async () => {
    const failing = new Set<string>();
    const runs: string[] = [];
    const of = (name: string) =>
      defineHandler({
        ...common,
        concurrency: 1,
        redelivery: { backoff: () => seconds(10) },
        handle: () => {
          runs.push(name);
          return failing.has(name) ? retry('no') : success();
        },
      });
    const first = await world.start({ handlers: [of('first')] });
    const second = await world.start({ handlers: [of('second')] });
    return { failing, runs, of: { first, second } };
  };

  it('ends with the wait: what another process has settled since fails nowhere', async () => {
    const { failing, runs, of } = await twoProcesses();
    failing.add('first').add('second');
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(5));
    const [name = ''] = runs;
    const here = of[name as 'first' | 'second'];
    expect(here.health()[0]?.oldestFailureMs).toBe(seconds(5));

    failing.clear();
    here.subscription('s', 'orders').pause(); // it goes to the other
    await world.clock.advanceBy(seconds(20));
    expect(world.backlog('orders', 's')).toBe(0);
    expect(runs).toHaveLength(2);
    expect(here.health()[0]?.oldestFailureMs).toBeUndefined();
    for (const runtime of Object.values(of)) await world.drain(runtime);
  });

  it('counts a message that failed for good while its dead letter cannot be published', async () => {
    const cut = new CutTransport(embedded({ broker: world.broker }));
    const runtime = await world.start({
      transport: cut.transport,
      handlers: [defineHandler({ ...common, handle: () => poison('bad') })],
    });
    cut.publishFails = true;
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(30));
    expect(runtime.health()[0]?.oldestFailureMs).toBe(seconds(30));
    await world.drain(runtime, 0);
  });
});

describe('the age of the oldest run', () => {
  it('begins with the wait for its attempt to be written down', async () => {
    const inner = memoryAttemptStore();
    const slow: AttemptStore = {
      name: 'slow',
      forgotten: 0,
      open: () => inner.open(),
      find: async (key) => {
        await new Promise<void>((resolve) => world.clock.setTimer(seconds(8), resolve));
        return inner.find(key);
      },
      begin: (key, start) => inner.begin(key, start),
      end: (key, end) => inner.end(key, end),
      delete: (key) => inner.delete(key),
      close: () => inner.close(),
    };
    const runtime = await world.start({
      handlers: [defineHandler({ ...common, handle: () => success() })],
      attemptStore: slow,
    });
    await world.clock.advanceBy(seconds(100));
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(5));

    expect(runtime.health()[0]?.oldestRunMs).toBe(seconds(5));
    await world.drain(runtime);
  });

  it('begins again where a settlement goes on after its connection was lost', async () => {
    const cut = new CutTransport(embedded({ broker: world.broker }));
    const handler = defineHandler({ ...common, handle: () => success(receipts.message(1)) });
    const runtime = await world.start({ transport: cut.transport, handlers: [handler] });
    await world.clock.advanceBy(minutes(10));
    cut.publishFails = true;
    await world.publish('orders', 'a');
    await world.clock.advanceBy(0);
    cut.publishHangs = true;
    await cut.links[0]?.cut();
    await cut.links[0]?.open();
    await world.clock.advanceBy(seconds(3));

    const { oldestRunMs } = runtime.health()[0] ?? {};
    expect(oldestRunMs).toBeGreaterThanOrEqual(0);
    expect(oldestRunMs).toBeLessThanOrEqual(seconds(3));
    await world.drain(runtime, 0);
  });
});
