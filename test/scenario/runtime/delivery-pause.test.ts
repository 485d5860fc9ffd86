// K-53: while nearly everything fails nothing more is taken; after a delay some messages come to try.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, DeliveryPauseHealth, HandlerOptions, Outcome, Runtime } from '../../../src/index.js';
import {
  days,
  defer,
  defineHandler,
  dependencyDown,
  fixedBackoff,
  hours,
  minutes,
  poison,
  retry,
  retryAfter,
  seconds,
  skip,
  success,
  topic,
} from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const WINDOW = 10;
let world: World;
let runtime: Runtime;
/** Milliseconds since the start at which each run began. */
let runs: number[];
beforeEach(() => {
  world = new World();
  runs = [];
});
afterEach(() => world.end());

async function start(
  handle: (delivery: Delivery) => Outcome | Promise<Outcome>,
  options: HandlerOptions = {},
): Promise<void> {
  const startMs = world.clock.now();
  const handler = defineHandler({
    name: 'pay',
    source: 'jobs',
    subscription: 's',
    concurrency: 1,
    deliveryPause: { windowSize: WINDOW },
    redelivery: { backoff: fixedBackoff(hours(1)) },
    ...options,
    handle: (delivery) => {
      runs.push(world.clock.now() - startMs);
      return handle(delivery);
    },
  });
  runtime = await world.start({ handlers: [handler] });
}

async function publish(count: number, key?: string): Promise<void> {
  for (let number = 1; number <= count; number++) await world.publish('jobs', number, { key: key ?? `key-${number}` });
}

const pause = (): DeliveryPauseHealth | undefined => runtime.health()[0]?.deliveryPause;
const pausedBy = (): readonly string[] => runtime.health()[0]?.pausedBy ?? [];
const after = (ms: number): Promise<void> => new Promise((resolve) => void world.clock.setTimer(ms, resolve));
const runsAt = (ms: number): number => runs.filter((run) => run === ms).length;

describe('a broad failure (K-53)', () => {
  it('opens after a full window: nothing more is taken, of all partitions', async () => {
    world.broker.createPartitionedTopic('persistent://public/default/jobs', 3);
    await start(() => retry());
    await publish(60);
    await world.clock.advanceBy(999);
    expect(runs).toHaveLength(WINDOW);
    expect(pause()).toEqual({ state: 'open', opened: 1, delayMs: 1_000 });
    expect([runtime.health()[0]?.state, pausedBy()]).toEqual(['paused', ['broad-failure']]);
  });

  it('after the delay a window of messages comes, and the delay doubles up to 60 s while all of them fail', async () => {
    await start(() => retry());
    await publish(10 * WINDOW);
    await world.clock.advanceBy(minutes(5));
    const at = [...new Set(runs)].map((ms) => ms / 1_000);
    expect(at).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    for (const ms of new Set(runs)) expect(runsAt(ms)).toBe(WINDOW);
    expect(pause()).toEqual({ state: 'open', opened: 10, delayMs: 60_000 });
  });

  it('closes when what came to try is below the ratio, and the delay begins anew', async () => {
    let up = false;
    await start(() => (up ? success() : retry()));
    await publish(3 * WINDOW);
    await world.clock.advanceBy(1_500);
    expect(pause()).toMatchObject({ state: 'open', delayMs: 2_000 });
    up = true;
    await world.clock.advanceBy(seconds(2));
    expect(pause()).toEqual({ state: 'closed', opened: 2, delayMs: 0 });
    expect(pausedBy()).toEqual([]);
    expect(runs).toHaveLength(3 * WINDOW);
    up = false;
    await publish(WINDOW);
    await world.clock.advanceBy(0);
    expect(pause()).toEqual({ state: 'open', opened: 3, delayMs: 1_000 });
  });

  it('with a ratio below 1 a window with some successes is broad too', async () => {
    await start(({ payload }) => (Number(payload) % 2 === 0 ? success() : retry()), {
      deliveryPause: { windowSize: WINDOW, failureRatio: 0.5 },
    });
    await publish(40);
    await world.clock.advanceBy(0);
    expect([runs.length, pause()?.state]).toEqual([WINDOW, 'open']);
  });

  it('half-open no more than a window comes before its results are in, however many slots are free', async () => {
    let up = false;
    await start(
      async () => {
        if (!up) return retry();
        await after(seconds(10));
        return success();
      },
      { concurrency: 64 },
    );
    await publish(100);
    await world.clock.advanceBy(999);
    up = true;
    const before = runs.length;
    await world.clock.advanceBy(seconds(10));
    expect([runs.length - before, pause()?.state, pausedBy()]).toEqual([WINDOW, 'half-open', []]);
    await world.clock.advanceBy(seconds(10));
    expect(pause()?.state).toBe('closed');
    expect(runs.length - before).toBeGreaterThan(WINDOW);
  });

  it('what is here already is handled while it is open', async () => {
    await start(
      async ({ payload }) => {
        if (Number(payload) <= 4) await after(500);
        return Number(payload) <= 4 ? success() : retry();
      },
      { concurrency: 8 },
    );
    await publish(40);
    await world.clock.advanceBy(100);
    expect(pause()?.state).toBe('open');
    expect(world.reports.filter(({ outcome }) => outcome === 'success')).toHaveLength(0);
    await world.clock.advanceBy(500);
    expect(pause()?.state).toBe('open');
    expect(world.reports.filter(({ outcome }) => outcome === 'success')).toHaveLength(4);
  });

  it('the delays of failed messages run on: kept in place they run while it is open', async () => {
    const seen: string[] = [];
    await start(
      ({ payload, attempt }) => {
        seen.push(`${String(payload)}#${attempt}`);
        return attempt === 2 && payload === 1 ? success() : retryAfter(payload === 1 ? 500 : hours(1));
      },
      { type: 'key-shared', ordering: 'key', orderedNegativeAck: 'disabled' },
    );
    await publish(20);
    await world.clock.advanceBy(600);
    expect([seen.length, seen.at(-1), pause()?.state]).toEqual([WINDOW + 1, '1#2', 'open']);
  });

  it('what runs again counts like what is new, and half-open it is part of the window', async () => {
    await start(() => retryAfter(100), { redelivery: { maxDeliveries: 30 } });
    await publish(1);
    await world.clock.advanceBy(899);
    expect([runs.length, pause()?.state]).toEqual([9, 'closed']);
    await world.clock.advanceBy(1);
    expect([runs.length, pause()]).toEqual([WINDOW, { state: 'open', opened: 1, delayMs: 1_000 }]);
    await world.clock.advanceBy(seconds(1));
    await world.clock.advanceBy(899);
    expect(pause()?.state).toBe('half-open');
    await world.clock.advanceBy(1);
    expect(pause()).toEqual({ state: 'open', opened: 2, delayMs: 2_000 });
  });

  it('dead letters are failures, of payloads that cannot be read too; what was skipped went well', async () => {
    await start(() => skip('not mine'));
    await publish(3 * WINDOW);
    await world.clock.advanceBy(0);
    expect([runs.length, pause()?.opened]).toEqual([3 * WINDOW, 0]);
    for (let i = 0; i < 2 * WINDOW; i++)
      await world.broker.publish('jobs', { payload: Buffer.from('{'), properties: {} });
    await world.clock.advanceBy(0);
    expect(pause()?.state).toBe('open');
    expect(await world.deadLetters('jobs', 's')).toHaveLength(WINDOW);
  });

  it('a follow-up that is refused is a failure, though the handler said success', async () => {
    await start(() => success(topic('elsewhere').message(1)), { publishes: [topic('receipts')] });
    await publish(2 * WINDOW);
    await world.clock.advanceBy(0);
    expect([runs.length, pause()?.state]).toEqual([WINDOW, 'open']);
    expect(world.reports[0]).toMatchObject({
      outcome: 'retry',
      failure: { reason: expect.stringContaining('elsewhere') },
    });
  });

  it.each([
    ['defer', () => defer(hours(1))],
    ['dependencyDown', () => dependencyDown('bank', { retryAfterMs: 1 })],
  ])('%s says nothing: nothing failed', async (_, outcome) => {
    await start(outcome, { deliveryPause: { windowSize: 1 } });
    await publish(5);
    await world.clock.advanceBy(100);
    expect(runs.length).toBeGreaterThan(1);
    expect(pause()).toEqual({ state: 'closed', opened: 0, delayMs: 0 });
  });

  it('is a reason beside the pause of an operator, and neither ends the other', async () => {
    await start(() => retry());
    await publish(40);
    await world.clock.advanceBy(0);
    const subscription = runtime.subscription('s', 'jobs');
    subscription.pause();
    expect(pausedBy()).toEqual(['broad-failure', 'operator']);
    await world.clock.advanceBy(seconds(5));
    expect([runs.length, pausedBy(), pause()?.state]).toEqual([WINDOW, ['operator'], 'half-open']);
    subscription.resume();
    await world.clock.advanceBy(0);
    expect([runs.length, pause()?.state]).toEqual([2 * WINDOW, 'open']);
    subscription.pause();
    subscription.resume();
    await world.clock.advanceBy(0);
    expect([runs.length, pausedBy()]).toEqual([2 * WINDOW, ['broad-failure']]);
  });

  it('survives a reconnect: the new connection brings nothing either before the delay is over', async () => {
    await start(() => retry());
    await publish(40);
    await world.clock.advanceBy(500);
    world.broker.unload('jobs');
    await world.clock.advanceBy(499);
    expect([runs.length, pause()?.state]).toEqual([WINDOW, 'open']);
    await world.clock.advanceBy(1);
    expect(runs.length).toBe(2 * WINDOW);
  });

  it('is off without the option', async () => {
    await start(() => retry(), { deliveryPause: undefined });
    await publish(150);
    await world.clock.advanceBy(0);
    expect([runs.length, pause(), pausedBy()]).toEqual([150, undefined, []]);
  });
});

describe('half-open, nothing waits for ever (K-53)', () => {
  /** Fails until it is half-open, then does as told. */
  async function halfOpen(then: (delivery: Delivery) => Outcome | Promise<Outcome>, options: HandlerOptions = {}) {
    let up = false;
    await start((delivery) => (up ? then(delivery) : retry()), options);
    await publish(WINDOW);
    await world.clock.advanceBy(999);
    expect(pause()?.state).toBe('open');
    up = true;
    runs.length = 0;
    await world.clock.advanceBy(1);
    expect(pause()?.state).toBe('half-open');
  }

  it('with fewer messages than the window each is still taken, days later too', async () => {
    await halfOpen(() => success());
    await publish(WINDOW - 1);
    await world.clock.advanceBy(minutes(50));
    expect([runs.length, pause()?.state, pausedBy()]).toEqual([WINDOW - 1, 'half-open', []]);
    await publish(1);
    await world.clock.advanceBy(0);
    expect([runs.length, pause()?.state]).toEqual([WINDOW, 'closed']);
  });

  it('messages that are put off for a day make room for others', async () => {
    await halfOpen(({ payload }) => (Number(payload) <= WINDOW ? defer(days(1)) : success()));
    await publish(3 * WINDOW);
    await world.clock.advanceBy(0);
    expect([runs.length, pause()?.state]).toEqual([3 * WINDOW, 'closed']);
  });

  it('messages behind a key that waits for a person make room for others', async () => {
    await halfOpen(({ key }) => (key === 'stuck' ? poison('bad') : success()), {
      type: 'key-shared',
      ordering: 'key',
      onDeadLetter: 'block-key',
      orderedNegativeAck: 'disabled',
    });
    await publish(2 * WINDOW, 'stuck');
    await publish(WINDOW, 'free');
    await world.clock.advanceBy(0);
    expect(runtime.subscription('s', 'jobs').blockedKeys()).toMatchObject([{ waiting: 2 * WINDOW - 1 }]);
    expect([runs.length, pause()?.state]).toEqual([1 + WINDOW, 'closed']);
  });

  it('a run without an end: the other results decide once the longest pause is over', async () => {
    world.endsEarly = true;
    let hanging = 1;
    await halfOpen(() => (hanging-- > 0 ? new Promise<Outcome>(() => undefined) : success()), { concurrency: 4 });
    await publish(2 * WINDOW);
    await world.clock.advanceBy(seconds(60) - 1);
    expect([runs.length, pause()?.state]).toEqual([WINDOW, 'half-open']);
    await world.clock.advanceBy(1);
    expect([runs.length, pause()?.state]).toEqual([2 * WINDOW, 'closed']);
  });

  it('a lost connection takes what came to try with it, and its copies come to try', async () => {
    await halfOpen(
      async () => {
        await after(seconds(5));
        return success();
      },
      { concurrency: 4 },
    );
    await publish(3 * WINDOW);
    await world.clock.advanceBy(seconds(1));
    world.broker.unload('jobs');
    await world.clock.advanceBy(minutes(2));
    expect(pause()?.state).toBe('closed');
    expect(world.reports.filter(({ outcome }) => outcome === 'success')).toHaveLength(3 * WINDOW);
  });
});

it('all problems of the option are told at start, with the others of the handler', async () => {
  const starting = start(() => success(), { concurrency: 0, deliveryPause: { windowSize: 1.5, multiplier: 0 } });
  await expect(starting).rejects.toMatchObject({
    problems: [
      'handler "pay": "concurrency" must be a positive integer, got 0',
      'handler "pay": "deliveryPause.windowSize" must be a positive integer, got 1.5',
      'handler "pay": "deliveryPause.multiplier" must be a number of 1 or more, got 0',
    ],
  });
});
