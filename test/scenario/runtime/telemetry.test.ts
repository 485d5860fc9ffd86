// What telemetry is told: every run once from start to end, every publish with the run it follows from; and that it cannot
// change what happens to a message.
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { BatchObserver, Delivery, Outcome, RunObserver, Telemetry } from '../../../src/index.js';
import {
  currentDelivery,
  defineHandler,
  fixedBackoff,
  minutes,
  poison,
  retry,
  retryAfter,
  seconds,
  skip,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { RecordingTelemetry } from '../../../src/testing.js';
import { CutTransport } from '../../support/cut-transport.js';
import { World } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));

const receipts = topic('receipts');
const noop = (): void => undefined;
const fail = (): never => {
  throw new Error('telemetry is down');
};

function handler(handle: (delivery: Delivery) => Outcome | Promise<Outcome>, options: object = {}) {
  return defineHandler({
    name: 'billing',
    source: topic('orders', { payload: z.string() }),
    subscription: 's',
    redelivery: { maxDeliveries: 2, backoff: fixedBackoff(seconds(1)) },
    ...options,
    handle,
  });
}

const told = (): string[] =>
  world.telemetry.runs.map(({ start, end, report }) =>
    [`#${start.attempt}`, end, report?.outcome, report?.settlement].filter((word) => word !== undefined).join(' '),
  );

describe('a run', () => {
  it('is told with where it came from, and how it was settled', async () => {
    await world.start({ handlers: [handler(() => success())] });
    await world.publish('orders', 'a', { key: 'k' });
    await world.clock.advanceBy(0);

    expect(told()).toEqual(['#1 settled success acknowledge']);
    expect(world.telemetry.runs[0]?.start).toMatchObject({
      handler: 'billing',
      subscription: 's',
      topic: 'persistent://public/default/orders',
      key: 'k',
      redeliveryCount: 0,
      payloadBytes: 3,
    });
  });

  it('is one attempt: a message that fails and is given up has one for each, and its dead letter follows from the last', async () => {
    await world.start({ handlers: [handler(() => retry('no'))] });
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(5));

    expect(told()).toEqual(['#1 settled retry redeliver', '#2 settled retry dead-letter']);
    expect(world.telemetry.runs.map(({ published }) => published)).toEqual([
      [],
      [{ kind: 'dead-letter', topic: 'persistent://public/default/orders-s-DLQ', end: 'stored' }],
    ]);
  });

  it('is there for a payload that cannot be read, also of a batch handler', async () => {
    await world.start({ handlers: [handler(() => success())] });
    const batch = { name: 'batch', source: topic('readings', { payload: z.string() }), subscription: 's' };
    await world.start({ handlers: [defineHandler({ ...batch, batch: { maxWaitMs: 10 }, handle: () => success() })] });
    await world.publish('orders', 5);
    await world.publish('readings', 5);
    await world.clock.advanceBy(seconds(1));

    expect(told()).toEqual(['#1 settled poison dead-letter', '#1 settled poison dead-letter']);
    expect(world.telemetry.reports.map(({ cause }) => cause)).toEqual(['undecodable', 'undecodable']);
  });

  it('is followed by the messages of its outcome and by retry letters; a publisher is outside', async () => {
    const handle = ({ attempt }: Delivery): Outcome =>
      attempt === 1 ? retryAfter(minutes(20)) : success(receipts.message(1));
    const runtime = await world.start({ handlers: [handler(handle, { retryTopic: true })] });
    await runtime.publisher(topic('orders')).publish('a');
    await world.clock.advanceBy(minutes(21));

    const published = world.telemetry.runs.map(({ published: [first] }) => `${first?.kind} ${first?.end}`);
    expect(published).toEqual(['retry-letter stored', 'message stored']);
    expect(world.telemetry.published).toEqual([
      { kind: 'message', topic: 'persistent://public/default/orders', end: 'stored' },
    ]);
  });

  it('is dropped when a drain cuts it short', async () => {
    const runtime = await world.start({
      handlers: [
        handler(({ signal }) => new Promise((_, reject) => (signal.onabort = () => reject(new Error('cut'))))),
      ],
    });
    await world.publish('orders', 'a');
    await world.clock.advanceBy(0);
    await world.drain(runtime, 0);

    expect(told()).toEqual(['#1 dropped']);
  });

  it('hears of calls that failed, and is settled when they succeed', async () => {
    const cut = new CutTransport(embedded({ broker: world.broker }));
    await world.start({ transport: cut.transport, handlers: [handler(() => success(receipts.message(1)))] });
    cut.publishFails = true;
    await world.publish('orders', 'a');
    await world.clock.advanceBy(seconds(2));
    expect(told()).toEqual(['#1 running']);
    expect(world.telemetry.runs[0]?.failedCalls).toEqual(['publishing', 'publishing']);

    cut.publishFails = false;
    await world.clock.advanceBy(seconds(10));
    expect(told()).toEqual(['#1 settled success acknowledge']);
    expect(world.telemetry.runs[0]?.published.map(({ end }) => end)).toEqual(['failed', 'failed', 'stored']);
  });
});

describe('a batch', () => {
  it('is told once, with a run for each delivery', async () => {
    const batch = { name: 'batch', source: topic('orders', { payload: z.string() }), subscription: 's' };
    const handle = (all: readonly Delivery[]): Outcome[] =>
      all.map(({ payload }) => (payload === 'b' ? poison('bad') : success()));
    await world.start({ handlers: [defineHandler({ ...batch, batch: { maxWaitMs: 10 }, handle })] });
    for (const name of ['a', 'b', 'c']) await world.publish('orders', name);
    await world.clock.advanceBy(seconds(1));

    expect(world.telemetry.batches).toEqual([3]);
    expect(told()).toEqual([
      '#1 settled success acknowledge',
      '#1 settled poison dead-letter',
      '#1 settled success acknowledge',
    ]);
  });

  it('is not told of deliveries that do not start after all', async () => {
    const batch = { name: 'batch', source: topic('orders', { payload: z.string() }), subscription: 's' };
    const runtime = await world.start({
      handlers: [defineHandler({ ...batch, batch: { maxWaitMs: 500 }, handle: () => success() })],
    });
    await world.publish('orders', 'a');
    await world.clock.advanceBy(100);
    runtime.subscription('s', 'orders').pause();
    await world.clock.advanceBy(seconds(5));
    expect(world.telemetry.runs).toEqual([]);
  });
});

describe('telemetry', () => {
  it('may put its context on every message that leaves', async () => {
    const telemetry = new RecordingTelemetry({ marksMessages: true });
    const handle = ({ payload }: Delivery): Outcome =>
      payload === 'bad' ? poison('bad') : success(receipts.message(1, { properties: { mine: '1' } }));
    const runtime = await world.start({ telemetry, handlers: [handler(handle)] });
    await runtime.publisher(topic('orders')).publish('a');
    await world.publish('orders', 'bad');
    await world.clock.advanceBy(0);

    expect((await world.read('orders'))[0]?.properties).toMatchObject({ 'recorded-run': 'outside' });
    expect((await world.read('receipts'))[0]?.properties).toMatchObject({ 'recorded-run': '1:0:-1#1', mine: '1' });
    expect((await world.deadLetters('orders', 's'))[0]?.properties).toMatchObject({ 'recorded-run': '1:1:-1#1' });
  });

  it('that throws everywhere changes nothing, and is logged', async () => {
    const observer = {
      within: fail,
      startAcknowledge: fail,
      settled: fail,
      settlementFailed: fail,
      dropped: fail,
      done: fail,
      failed: fail,
    };
    const each: Telemetry[] = [
      {
        onStart: fail,
        startRun: fail,
        startBatch: fail,
        startPublish: fail,
        onSettled: fail,
        onDrain: fail,
        onClose: fail,
      },
      {
        startRun: () => observer,
        startPublish: ({ message }) => ({ ...observer, properties: message.properties }),
        startBatch: ({ deliveries }) => ({ runs: deliveries.map(() => observer), within: fail, ended: fail }),
      },
    ];
    for (const telemetry of each) {
      world = new World();
      const runs: string[] = [];
      const note = ({ payload }: Delivery): Outcome => {
        runs.push(String(payload));
        return payload === 'bad' ? poison('bad') : success(receipts.message(1));
      };
      const batch = { name: 'batch', source: topic('readings', { payload: z.string() }), subscription: 's' };
      const handle = (all: readonly Delivery[]): Outcome[] => all.map(note);
      const batchHandler = defineHandler({ ...batch, batch: { maxWaitMs: 10 }, handle });
      const runtime = await world.start({ telemetry, handlers: [handler(note), batchHandler] });
      for (const name of ['orders', 'readings']) for (const value of ['a', 'bad']) await world.publish(name, value);
      await world.clock.advanceBy(seconds(1));
      await world.drain(runtime);

      expect(runs).toEqual(['a', 'bad', 'a', 'bad']);
      expect([world.backlog('orders', 's'), world.backlog('readings', 's')]).toEqual([0, 0]);
      expect(await world.read('receipts')).toHaveLength(2);
      expect(await world.deadLetters('orders', 's')).toHaveLength(1);
      expect(world.log.some(({ message, level }) => message === 'telemetry failed' && level === 'error')).toBe(true);
    }
  });

  it('whose wrapper throws after the run, gives something else, or calls it twice or not at all changes nothing', async () => {
    const wrappers: readonly RunObserver['within'][] = [
      (run) => {
        run();
        throw new Error('telemetry is down');
      },
      <T>(run: () => T) => {
        run();
        return 'something else' as T;
      },
      (run) => {
        run();
        return run();
      },
      () => undefined as never,
    ];
    for (const within of wrappers) {
      world = new World();
      let runs = 0;
      const handle = (): Outcome => {
        runs += 1;
        return skip('nothing to do');
      };
      const observer = { within, settled: noop, settlementFailed: noop, dropped: noop };
      await world.start({ telemetry: { startRun: () => observer }, handlers: [handler(handle)] });
      await world.publish('orders', 'a');
      await world.clock.advanceBy(seconds(10));
      expect([runs, world.backlog('orders', 's')]).toEqual([1, 0]);
      expect(world.log.find(({ message }) => message.startsWith('delivery'))?.fields['outcome']).toBe('skip');
    }
  });

  it('whose values cannot be read, or are none, changes nothing, and is logged', async () => {
    const hostile = <T extends object>(target: T, name: keyof T): T =>
      Object.defineProperty(target, name, { get: fail });
    const observer = { within: <T>(run: () => T) => run(), settled: noop, settlementFailed: noop, dropped: noop };
    const publishes = (properties: unknown): Telemetry => ({
      startPublish: () => ({ properties: properties as Record<string, string>, done: noop, failed: noop }),
    });
    const each: readonly Telemetry[] = [
      { startRun: () => hostile({ ...observer, logFields: {} }, 'logFields') },
      {
        startBatch: () => hostile<BatchObserver>({ runs: [], within: <T>(run: () => T) => run(), ended: noop }, 'runs'),
      },
      ...(['startRun', 'startPublish', 'startBatch', 'onSettled', 'onStart', 'onDrain'] as const).map((name) =>
        hostile<Telemetry>({ startRun: () => observer, onClose: noop }, name),
      ),
      { startRun: () => observer, onSettled: 5 } as unknown as Telemetry,
      { startRun: () => hostile<RunObserver>({ ...observer }, 'startAcknowledge') },
      publishes(undefined),
      publishes({ count: 5 }),
      { startPublish: () => hostile({ properties: {}, done: noop, failed: noop }, 'properties') },
    ];
    const batch = { name: 'batch', source: topic('readings', { payload: z.string() }), subscription: 's' };
    for (const telemetry of each) {
      world = new World();
      const batchHandler = defineHandler({ ...batch, batch: { maxWaitMs: 10 }, handle: () => success() });
      await world.start({ telemetry, handlers: [handler(() => success(receipts.message(1))), batchHandler] });
      for (const name of ['orders', 'readings']) await world.publish(name, 'a');
      await world.clock.advanceBy(seconds(10));
      expect([world.backlog('orders', 's'), world.backlog('readings', 's')]).toEqual([0, 0]);
      expect(await world.read('receipts')).toHaveLength(1);
      expect(world.log.some(({ message }) => message === 'telemetry failed')).toBe(true);
    }
  });

  it('wraps a run without hiding what it throws', async () => {
    const within: Telemetry = {
      startRun: () => ({
        within: (run) => run(),
        settled: () => undefined,
        settlementFailed: () => undefined,
        dropped: () => undefined,
      }),
    };
    const failing = (): Outcome => {
      throw new Error('mine');
    };
    await world.start({ telemetry: within, handlers: [handler(failing, { redelivery: { maxDeliveries: 1 } })] });
    await world.publish('orders', 'a');
    await world.clock.advanceBy(0);
    expect((await world.deadLetters('orders', 's'))[0]?.properties['pulsework-error-message']).toBe('mine');
  });

  it('is told of start, drain and close once, and sees the health of subscriptions', async () => {
    const calls: string[] = [];
    let held: number | undefined;
    const telemetry: Telemetry = {
      onStart: (runtime) => {
        calls.push(`start on ${runtime.transport}`);
        world.clock.setTimer(10, () => (held = runtime.health()[0]?.held));
      },
      onDrain: () => void calls.push('drain'),
      onClose: () => void calls.push('close'),
    };
    const runtime = await world.start({ telemetry, handlers: [handler(() => retry())] });
    await world.publish('orders', 'a');
    await world.clock.advanceBy(20);
    await world.drain(runtime);
    expect(calls).toEqual(['start on embedded', 'drain', 'close']);
    expect(held).toBe(1);
  });
});

describe('currentDelivery()', () => {
  it('is the delivery of the handler that runs, after awaits too, and of none elsewhere', async () => {
    const seen: (string | undefined)[] = [];
    const look = (): void => void seen.push(currentDelivery()?.payload as string | undefined);
    const handle = async (): Promise<Outcome> => {
      look();
      await new Promise<void>((resolve) => world.clock.setTimer(10, resolve));
      look();
      return success();
    };
    const batch = { name: 'batch', source: topic('readings', { payload: z.string() }), subscription: 's' };
    const batchHandle = (): Outcome => {
      look();
      return success();
    };
    const many = defineHandler({ ...batch, batch: { maxMessages: 1 }, handle: batchHandle });
    await world.start({ handlers: [handler(handle), many], currentDelivery: true });
    await world.publish('orders', 'a');
    await world.publish('orders', 'b');
    await world.clock.advanceBy(10);
    expect(seen).toEqual(['a', 'b', 'a', 'b']);
    seen.length = 0;
    await world.publish('readings', 'c');
    await world.clock.advanceBy(seconds(1));
    look();
    expect(seen).toEqual([undefined, undefined]);
  });

  it('is nothing unless it was asked for', async () => {
    let seen: unknown = 'nothing yet';
    const handle = (): Outcome => {
      seen = currentDelivery();
      return success();
    };
    await world.start({ handlers: [handler(handle)] });
    await world.publish('orders', 'a');
    await world.clock.advanceBy(0);
    expect(seen).toBeUndefined();
  });
});
