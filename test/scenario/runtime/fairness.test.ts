// One noisy key or tenant cannot take all of a handler: its share is limited, the others go on as if it were not there.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome, Runtime } from '../../../src/index.js';
import { defer, defineHandler, dependencyDown, minutes, retryAfter, seconds, success } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

let world: World;
let runtime: Runtime;
let startMs: number;
/** Milliseconds since the start, by payload. */
let startedAt: Map<string, number>;
let endedAt: Map<string, number>;
beforeEach(newWorld);
afterEach(() => world.end());

function newWorld(): void {
  world = new World();
  startMs = world.clock.now();
  startedAt = new Map();
  endedAt = new Map();
}

const nowMs = (): number => world.clock.now() - startMs;
const after = (ms: number): Promise<void> => new Promise((resolve) => void world.clock.setTimer(ms, resolve));
const tenantOf = (delivery: Pick<Delivery, 'properties'>): string | undefined => delivery.properties['tenant'];

async function start(
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  options: HandlerOptions,
): Promise<void> {
  const handler = defineHandler({
    name: 'mail',
    source: 'letters',
    subscription: 's',
    type: 'key-shared',
    orderedNegativeAck: options.ordering === 'key' ? 'disabled' : undefined,
    ...options,
    handle: async (delivery) => {
      const name = String(delivery.payload);
      if (!startedAt.has(name)) startedAt.set(name, nowMs());
      const outcome = await handle(delivery);
      endedAt.set(name, nowMs());
      return outcome;
    },
  });
  runtime = await world.start({ handlers: [handler] });
}

/** `acme/k1` is the next message of key k1 of the tenant acme; its payload is `acme/k1#3` for the third. */
async function publish(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const [tenant = '', key = ''] = name.split('#')[0]?.split('/') ?? [];
    await world.publish('letters', name, { key: `${tenant}/${key}`, properties: { tenant } });
  }
}

const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}#${i + 1}`);
const slowly = async (): Promise<Outcome> => {
  await after(10);
  return success();
};

describe('one tenant with 10,000 messages before 9 others with 10 each, 16 slots', () => {
  const others = Array.from({ length: 10 }, (_, i) =>
    Array.from({ length: 9 }, (_unused, tenant) => `t${tenant + 1}/k#${i + 1}`),
  ).flat();

  async function othersEnd(noisy: number, options: HandlerOptions): Promise<[string, number | undefined][]> {
    newWorld();
    world.broker.createSubscription('letters', 's');
    await publish(...numbered('noisy/k', noisy), ...others);
    await start(slowly, { concurrency: 16, maxLaneMessages: 10_000, ...options });
    await world.clock.advanceBy(200);
    return others.map((name) => [name, endedAt.get(name)]);
  }

  it('the others end at the same times as without it; it goes on with its share', { timeout: 60_000 }, async () => {
    const fairness = { by: tenantOf, maxConcurrent: 1 };
    const alone = await othersEnd(0, { fairness });
    expect(alone.map(([, ms]) => ms)).toContain(100);
    expect(await othersEnd(10_000, { fairness })).toEqual(alone);
    expect([...endedAt.keys()].filter((name) => name.startsWith('noisy'))).toHaveLength(20);
    expect(runtime.health()[0]).toMatchObject({ state: 'running', throttled: 9_979, fullKey: undefined });
    await world.drain(runtime, 0);
    expect(world.clock.pendingTimers).toEqual([]);
    expect(world.backlog('letters', 's')).toBe(10_000 - 21);
  });

  it('without fairness they have not even begun', { timeout: 60_000 }, async () => {
    const ends = await othersEnd(10_000, {});
    expect(ends.every(([, ms]) => ms === undefined)).toBe(true);
  });
});

describe('what is beyond a share', () => {
  it('is taken up to maxLaneMessages of one key; then nothing new comes, visibly, until some have run', async () => {
    await start(slowly, { concurrency: 4, maxLaneMessages: 10, fairness: { by: tenantOf, maxConcurrent: 1 } });
    await publish(...numbered('noisy/k', 20), 'calm/k#1');
    await world.clock.advanceBy(0);
    expect(runtime.health()[0]).toMatchObject({ throttled: 10, pausedBy: ['lane-full'], fullKey: 'noisy' });
    await world.clock.advanceBy(minutes(1));
    expect(world.backlog('letters', 's')).toBe(0);
    expect(runtime.health()[0]).toMatchObject({ throttled: 0, pausedBy: [], fullKey: undefined });
    const pauses = world.log.filter(({ message }) => message === 'subscription paused');
    expect(pauses.length).toBeLessThan(10);
  });

  it('counts for maxHeldBytes', async () => {
    const payloadBytes = Buffer.byteLength(JSON.stringify('noisy/k#1'));
    await start(slowly, { maxHeldBytes: 5 * payloadBytes, fairness: { by: tenantOf, maxConcurrent: 1 } });
    await publish(...numbered('noisy/k', 9));
    await world.clock.advanceBy(0);
    expect(runtime.health()[0]).toMatchObject({ throttled: 5, pausedBy: ['held-full'] });
    await world.clock.advanceBy(seconds(1));
    expect(world.backlog('letters', 's')).toBe(0);
  });

  it('comes again after a lost connection, each once and none lost', async () => {
    const runs: string[] = [];
    await start(({ payload }) => (runs.push(String(payload)), slowly()), { fairness: { maxConcurrent: 1 } });
    await publish(...numbered('a/k', 5), ...numbered('b/k', 5));
    await world.clock.advanceBy(15);
    world.broker.unload('letters');
    await world.clock.advanceBy(seconds(30));
    expect(runs.toSorted()).toEqual([...numbered('a/k', 5), ...numbered('b/k', 5)]);
    expect([world.backlog('letters', 's'), runtime.health()[0]?.throttled]).toEqual([0, 0]);
  });

  it('a delivery that had its turn and lost its connection before a slot was free gives its share back', async () => {
    const blocking = async ({ payload, attempt }: Delivery): Promise<Outcome> => {
      if (payload === 'a/k1#1' && attempt === 1) return retryAfter(100);
      await after(payload === 'x/k#1' ? 1_000 : 10);
      return success();
    };
    await start(blocking, { ordering: 'key', concurrency: 1, fairness: { by: tenantOf, maxConcurrent: 1 } });
    await publish('a/k1#1', 'x/k#1', 'a/k2#1');
    await world.clock.advanceBy(500);
    world.broker.unload('letters');
    await world.clock.advanceBy(seconds(30));
    expect([...endedAt.keys()].toSorted()).toEqual(['a/k1#1', 'a/k2#1', 'x/k#1']);
    expect(world.backlog('letters', 's')).toBe(0);
  });

  it('goes back in a drain, and no timer stays', async () => {
    await start(slowly, { fairness: { ratePerSecond: 1 } });
    await publish(...numbered('a/k', 5));
    await world.clock.advanceBy(100);
    expect(runtime.health()[0]).toMatchObject({ throttled: 4 });
    await world.drain(runtime);
    expect([world.backlog('letters', 's'), world.clock.pendingTimers]).toEqual([4, []]);
  });
});

describe('shares', () => {
  it('are of the order key without "by", and a message without one has no limit', async () => {
    await start(slowly, { fairness: { maxConcurrent: 2 } });
    await publish(...numbered('a/k', 4), ...numbered('b/k', 2));
    for (const name of ['free1', 'free2', 'free3']) await world.publish('letters', name);
    await world.clock.advanceBy(5);
    expect([...startedAt.keys()]).toEqual(['a/k#1', 'a/k#2', 'b/k#1', 'b/k#2', 'free1', 'free2', 'free3']);
  });

  it('with ratePerSecond: one second of them at once, then one after the other by time', async () => {
    await start(() => success(), { fairness: { ratePerSecond: 4 } });
    await publish(...numbered('a/k', 8), 'b/k#1');
    await world.clock.advanceBy(seconds(5));
    expect(numbered('a/k', 8).map((name) => startedAt.get(name))).toEqual([0, 0, 0, 0, 250, 500, 750, 1_000]);
    expect(startedAt.get('b/k#1')).toBe(0);
  });

  it('one that failed and waits takes none: the others of its tenant go on', async () => {
    const failing = ({ payload, attempt }: Delivery): Outcome | Promise<Outcome> =>
      payload === 'a/k1#1' && attempt === 1 ? retryAfter(minutes(1)) : slowly();
    await start(failing, { ordering: 'key', fairness: { by: tenantOf, maxConcurrent: 1 } });
    await publish('a/k1#1', 'a/k2#1', 'a/k1#2');
    await world.clock.advanceBy(seconds(1));
    expect([endedAt.get('a/k2#1'), startedAt.has('a/k1#2')]).toEqual([10, false]);
    await world.clock.advanceBy(minutes(1));
    expect([endedAt.get('a/k1#1'), endedAt.get('a/k1#2')]).toEqual([60_010, 60_020]);
  });

  it('beside ordering: each key in its order, and each tenant no more than its share', async () => {
    const running = new Map<string, number>();
    const order = new Map<string, string[]>();
    let most = 0;
    const counted = async (delivery: Delivery): Promise<Outcome> => {
      const tenant = tenantOf(delivery) ?? '';
      const now = (running.get(tenant) ?? 0) + 1;
      most = Math.max(most, now);
      running.set(tenant, now);
      const key = delivery.key ?? '';
      order.set(key, [...(order.get(key) ?? []), String(delivery.payload)]);
      await after(10);
      running.set(tenant, (running.get(tenant) ?? 0) - 1);
      return delivery.attempt === 1 && String(delivery.payload).endsWith('#2') ? retryAfter(15) : success();
    };
    await start(counted, { ordering: 'key', concurrency: 8, fairness: { by: tenantOf, maxConcurrent: 2 } });
    const keys = ['a/k1', 'a/k2', 'a/k3', 'b/k1', 'b/k2', 'b/k3'];
    for (let i = 1; i <= 5; i++) await publish(...keys.map((key) => `${key}#${i}`));
    await world.clock.advanceBy(seconds(10));
    expect(most).toBe(2);
    for (const key of keys) expect(order.get(key)).toEqual([1, 2, 2, 3, 4, 5].map((number) => `${key}#${number}`));
    expect(world.backlog('letters', 's')).toBe(0);
  });

  it('do not keep the probe of an outage waiting', async () => {
    let backMs = seconds(10);
    const asking = (): Outcome | Promise<Outcome> => (nowMs() < backMs ? dependencyDown('post') : slowly());
    await start(asking, { concurrency: 4, fairness: { by: tenantOf, maxConcurrent: 1, ratePerSecond: 0.01 } });
    await publish(...numbered('a/k', 2));
    await world.clock.advanceBy(seconds(20));
    expect(runtime.health()[0]?.dependenciesDown).toEqual([]);
    expect([endedAt.has('a/k#1'), endedAt.has('a/k#2')]).toEqual([true, false]);
    backMs = 0;
    await world.clock.advanceBy(seconds(200));
    expect(world.backlog('letters', 's')).toBe(0);
  });

  it('of a batch handler: its deliveries in batches', async () => {
    const batches: string[][] = [];
    const handler = defineHandler({
      name: 'mail',
      source: 'letters',
      subscription: 's',
      batch: { maxMessages: 4, maxWaitMs: 50 },
      concurrency: 1,
      fairness: { by: tenantOf, maxConcurrent: 2 },
      handle: (deliveries) => {
        batches.push(deliveries.map(({ payload }) => String(payload)));
        return success();
      },
    });
    runtime = await world.start({ handlers: [handler] });
    await publish(...numbered('a/k', 4), ...numbered('b/k', 2));
    await world.clock.advanceBy(seconds(1));
    expect(batches).toEqual([
      ['a/k#1', 'a/k#2', 'b/k#1', 'b/k#2'],
      ['a/k#3', 'a/k#4'],
    ]);
  });
});

it('a handler slows one key itself, by defer under ordering: the key keeps its order, the others go on', async () => {
  const runs: string[] = [];
  let lastMs = -Infinity;
  const paced = ({ key, payload }: Delivery): Outcome => {
    if (key === 'slow/k' && nowMs() - lastMs < 1_000) return defer(1_000 - (nowMs() - lastMs));
    if (key === 'slow/k') lastMs = nowMs();
    runs.push(`${String(payload)} at ${nowMs()}`);
    return success();
  };
  await start(paced, { ordering: 'key', concurrency: 2 });
  await publish('slow/k#1', 'slow/k#2', 'fast/k#1', 'slow/k#3', 'fast/k#2');
  await world.clock.advanceBy(seconds(5));
  expect(runs).toEqual(['slow/k#1 at 0', 'fast/k#1 at 0', 'fast/k#2 at 0', 'slow/k#2 at 1000', 'slow/k#3 at 2000']);
});

it('all that is wrong with it is told at start, and a limit that limits nothing too', async () => {
  const starting = start(() => success(), { ordering: 'key', fairness: { maxConcurrent: 2, ratePerSecond: 0 } });
  await expect(starting).rejects.toMatchObject({
    problems: [
      'handler "mail": "fairness.ratePerSecond" must be a finite number above 0, got 0',
      'handler "mail": "fairness.maxConcurrent" counts runs of one key, of which "ordering: key" runs one at a time anyway; give "fairness.by", such as the tenant, or leave it out',
    ],
  });
});
