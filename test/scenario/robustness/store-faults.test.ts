// Stores that throw, reject, hang or answer nonsense for a while: nothing is lost, no handler runs unrecorded, calls do not
// become a flood, and a drain ends.
import { describe, expect, it } from 'vitest';
import type { AttemptStore, Delivery, HandlerOptions, Outcome, RuntimeOptions } from '../../../src/index.js';
import {
  defineHandler,
  hours,
  idempotent,
  memoryIdempotencyStore,
  minutes,
  retry,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { memoryAttemptStore } from '../../../src/testing.js';
import { World } from '../../support/runtime-world.js';
import { unhandledDuring } from '../../support/unhandled.js';

const WAYS = ['throws', 'rejects', 'hangs', 'answers nonsense'] as const;

/** `store` whose `method` is faulty until `mend`. */
class Faulty<S extends object> {
  calls = 0;
  #broken = true;
  readonly store: S;

  constructor(store: S, method: string, way: (typeof WAYS)[number]) {
    this.store = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          this.calls += 1;
          return name === method && this.#broken ? faultOf(way) : (Reflect.apply(value, target, args) as unknown);
        };
      },
    });
  }

  mend(): void {
    this.#broken = false;
  }
}

function faultOf(way: (typeof WAYS)[number]): unknown {
  if (way === 'throws') throw new Error('broken');
  if (way === 'rejects') return Promise.reject(new Error('broken'));
  return way === 'hangs' ? new Promise(() => undefined) : 'nonsense';
}

async function play(
  faulty: { mend(): void },
  { options, runtime }: { options?: HandlerOptions; runtime?: Partial<RuntimeOptions> },
) {
  const world = new World();
  const wait = (ms: number): Promise<void> => new Promise((resolve) => world.clock.setTimer(ms, resolve));
  const runs: number[] = [];
  let whileBroken = 0;
  let drainedMs: number | undefined;
  const handle = async ({ attempt }: Delivery): Promise<Outcome> => {
    runs.push(attempt);
    await wait(1_200);
    return attempt === 1 ? retry() : success();
  };
  const unhandled = await unhandledDuring(async () => {
    const handler = defineHandler({
      name: 'h',
      source: topic('orders'),
      subscription: 's',
      concurrency: 2,
      redelivery: { maxDeliveries: 2_000, backoff: () => 100 },
      ...options,
      handle,
    });
    const started = await world.start({ handlers: [handler], ...runtime });
    for (const value of [1, 2, 3]) await world.publish('orders', value);
    await world.clock.advanceBy(seconds(100));
    whileBroken = runs.length;
    faulty.mend();
    await world.clock.advanceBy(seconds(200));
    const startMs = world.clock.now();
    void started.drain({ deadlineMs: 100 }).then(() => (drainedMs = world.clock.now() - startMs));
    await world.clock.advanceBy(minutes(3));
  });
  return { world, runs, whileBroken, drainedMs, unhandled };
}

describe.each(WAYS)('an AttemptStore that %s', (way) => {
  it.each(['find', 'begin', 'end', 'delete'] as const)('at `%s` loses nothing', async (method) => {
    const faulty = new Faulty<AttemptStore>(memoryAttemptStore(), method, way);
    const result = await play(faulty, { runtime: { attemptStore: faulty.store } });
    const { world, runs } = result;

    expect(result.unhandled).toEqual([]);
    expect(world.backlog('orders', 's')).toBe(0);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
    expect([...runs].sort()).toEqual([1, 1, 1, 2, 2, 2]);
    const readsOrStarts = method === 'find' || method === 'begin';
    if (readsOrStarts && way !== 'answers nonsense') expect(result.whileBroken).toBe(0);
    expect(faulty.calls).toBeLessThan(200);
    expect(result.drainedMs).toBeLessThanOrEqual(100);
    expect(world.clock.pendingTimers).toEqual([]);
  });
});

describe.each(WAYS)('an IdempotencyStore that %s', (way) => {
  it.each(['claim', 'renew', 'record', 'release'] as const)('at `%s` loses nothing', async (method) => {
    const faulty = new Faulty(memoryIdempotencyStore(), method, way);
    const once = idempotent({
      key: ({ payload }) => String(payload),
      store: faulty.store,
      ttlMs: hours(1),
      leaseMs: 900,
    });
    const result = await play(faulty, { options: { idempotent: once } });
    const { world } = result;

    expect(result.unhandled).toEqual([]);
    expect(world.backlog('orders', 's')).toBe(0);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
    if (method === 'claim') expect(result.whileBroken).toBe(0);
    expect(faulty.store.size).toBe(3);
    expect(faulty.calls).toBeLessThan(4_000);
    expect(result.drainedMs).toBeLessThanOrEqual(100);
    expect(world.clock.pendingTimers).toEqual([]);
  });
});
