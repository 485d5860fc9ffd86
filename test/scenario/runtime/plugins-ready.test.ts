// The ready plugins on a runtime: what a user sees of them, all of them together too.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, Plugin, Runtime } from '../../../src/index.js';
import { defineHandler, poison, seconds, success, topic } from '../../../src/index.js';
import type { AuditRecord, ProcessSignals } from '../../../src/plugins.js';
import { auditLog, healthEndpoint, rateLimit, drainOnSignals, slowHandlerWarning } from '../../../src/plugins.js';
import { World } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));

const after = (ms: number): Promise<Outcome> =>
  new Promise((resolve) => world.clock.setTimer(ms, () => resolve(success())));

function start(
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  plugins: readonly Plugin[],
  options: HandlerOptions = {},
): Promise<Runtime> {
  const handler = defineHandler({ name: 'h', source: topic('orders'), subscription: 's', ...options, handle });
  return world.start({ handlers: [handler], plugins });
}

async function publish(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await world.publish('orders', i);
  await world.clock.advanceBy(0);
}

describe('drainOnSignals', () => {
  const listeners: (() => void)[] = [];
  const processSignals: ProcessSignals = {
    names: ['SIGTERM', 'SIGINT'],
    on: (_, run) => (listeners.push(run), () => void listeners.splice(listeners.indexOf(run), 1)),
  };

  it('drains at the first signal: what runs ends, and the runtime closes', async () => {
    const runtime = await start(() => after(seconds(5)), [drainOnSignals({ processSignals })]);
    await publish(1);
    listeners[0]?.();
    expect(runtime.state).toBe('draining');
    await world.clock.advanceBy(seconds(6));
    expect([runtime.state, world.backlog('orders', 's'), listeners]).toEqual(['closed', 0, []]);
  });

  it('closes at the second: what runs goes back to the broker', async () => {
    world.endsEarly = true;
    const runtime = await start(() => after(seconds(20)), [drainOnSignals({ processSignals })]);
    await publish(1);
    listeners[0]?.();
    await world.clock.advanceBy(seconds(1));
    listeners[0]?.();
    await world.clock.advanceBy(seconds(2));
    expect([runtime.state, world.backlog('orders', 's')]).toEqual(['closed', 1]);
  });
});

describe('a plugin that hangs', () => {
  it('in its onDrain keeps no probe from being told', async () => {
    const health = healthEndpoint({ port: 0 });
    const runtime = await start(
      () => after(seconds(5)),
      [{ name: 'a', onDrain: () => after(seconds(9)) as never }, health],
    );
    await publish(1);
    const { port = 0 } = health.address ?? {};
    const draining = runtime.drain();
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    expect([answer.status, await answer.json()]).toMatchObject([503, { reasons: ['the runtime drains'] }]);
    await world.clock.advanceUntil(() => runtime.state === 'closed');
    expect(await draining).toMatchObject({ complete: true });
  });

  it('in its onClose costs no record, no port and no listener', async () => {
    const written: AuditRecord[] = [];
    const audit = auditLog({ write: (record) => after(10).then(() => void written.push(record)) });
    const health = healthEndpoint({ port: 0 });
    const listeners = new Set<() => void>();
    const processSignals: ProcessSignals = {
      names: ['SIGTERM', 'SIGINT'],
      on: (_, run) => (listeners.add(run), () => void listeners.delete(run)),
    };
    const hanging: Plugin = { name: 'hanging', onClose: () => new Promise(() => undefined) };
    const runtime = await start(() => success(), [drainOnSignals({ processSignals }), health, audit, hanging]);
    await publish(20);
    const draining = runtime.drain();
    await world.clock.advanceUntil(() => runtime.state === 'closed');
    await draining;
    expect([written.length, audit.counts.lost, health.address, listeners.size]).toEqual([20, 0, undefined, 0]);
  });
});

describe('rateLimit', () => {
  it('spaces the runs of a backlog, and each waits in its slot', async () => {
    const at: number[] = [];
    const begunMs = world.clock.now();
    const limit = rateLimit({ perSecond: 2, burst: 1 });
    const runtime = await start(() => (at.push(world.clock.now() - begunMs), success()), [limit], { concurrency: 3 });
    await publish(5);
    expect(runtime.health()[0]?.running).toBe(3);
    await world.clock.advanceBy(seconds(10));
    expect(at).toEqual([0, 500, 1_000, 1_500, 2_000]);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('gives back what still waits when a drain is past its deadline, without an attempt', async () => {
    const runtime = await start(() => success(), [rateLimit({ perSecond: 0.01 })], {
      redelivery: { maxDeliveries: 1 },
    });
    await publish(3);
    expect(await world.drain(runtime, seconds(1))).toEqual({ complete: false, stillRunning: [] });
    expect(world.backlog('orders', 's')).toBe(2);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('counts the wait as part of the run, by timeoutMs', async () => {
    await start(() => success(), [rateLimit({ perSecond: 0.1 })], { timeoutMs: seconds(2) });
    await publish(2);
    await world.clock.advanceBy(seconds(3));
    expect(world.reports.map(({ outcome, failure }) => [outcome, failure?.error])).toMatchObject([
      ['success', undefined],
      [
        'retry',
        {
          code: 'HANDLER_TIMED_OUT',
          message:
            'handler "h" was not called: the run waited 2000 ms for the rate limit "rate-limit", until its time limit',
        },
      ],
    ]);
  });
});

it('slowHandlerWarning names the handler that hangs while it hangs', async () => {
  await start(() => after(seconds(60)), [slowHandlerWarning({ afterMs: seconds(10) })]);
  await publish(1);
  await world.clock.advanceBy(seconds(10));
  expect(world.log.filter(({ level }) => level === 'warn')).toMatchObject([
    { message: 'handler is slow: the run goes on', fields: { handler: 'h', attempt: 1, elapsedMs: seconds(10) } },
  ]);
});

it('auditLog has a record of each settlement, also of those that a slow writer gets at the end', async () => {
  const records: AuditRecord[] = [];
  const write = (record: AuditRecord): Promise<void> =>
    new Promise((resolve) =>
      world.clock.setTimer(100, () => {
        records.push(record);
        resolve();
      }),
    );
  const runtime = await start(({ payload }) => (payload === 1 ? poison('broken') : success()), [auditLog({ write })]);
  await publish(3);
  await world.drain(runtime);
  const told = records.map(({ outcome, settlement, cause, reason }) => [outcome, settlement, cause, reason]);
  expect(told.toSorted()).toEqual([
    ['poison', 'dead-letter', 'poison', 'broken'],
    ['success', 'acknowledge', undefined, undefined],
    ['success', 'acknowledge', undefined, undefined],
  ]);
});

it('healthEndpoint follows the runtime from ready to draining to gone', async () => {
  const endpoint = healthEndpoint({ port: 0 });
  const runtime = await start(() => after(seconds(5)), [endpoint]);
  await publish(1);
  const url = `http://127.0.0.1:${endpoint.address?.port ?? 0}/readyz`;
  const statusAndReasons = async (): Promise<unknown> => {
    const response = await fetch(url);
    return [response.status, ((await response.json()) as { readonly reasons: unknown }).reasons];
  };
  expect(await statusAndReasons()).toEqual([200, []]);
  const draining = runtime.drain();
  expect(await statusAndReasons()).toEqual([503, ['the runtime drains']]);
  await world.clock.advanceBy(seconds(6));
  await draining;
  await expect(fetch(url)).rejects.toThrow();
});

it('all of them work together, in any order, and again for the next runtime', async () => {
  const records: AuditRecord[] = [];
  const endpoint = healthEndpoint({ port: 0 });
  const plugins = [
    drainOnSignals(),
    endpoint,
    auditLog({ write: (record) => void records.push(record) }),
    rateLimit({ perSecond: 100 }),
    slowHandlerWarning({ afterMs: seconds(1) }),
  ];
  const listening = process.listenerCount('SIGTERM');
  for (const listed of [plugins, plugins.toReversed()]) {
    const runtime = await start(() => after(10), listed);
    await publish(50);
    await world.clock.advanceBy(seconds(5));
    expect((await fetch(`http://127.0.0.1:${endpoint.address?.port ?? 0}/readyz`)).status).toBe(200);
    const draining = runtime.drain();
    await world.clock.advanceBy(seconds(1));
    await draining;
  }
  expect(records).toHaveLength(100);
  expect(process.listenerCount('SIGTERM')).toBe(listening);
});
