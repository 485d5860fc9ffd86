// What waits, is cut short, is asked back or comes late: each of these once lost a message, ran it twice or left something behind.
import { beforeEach, describe, expect, it } from 'vitest';
import type {
  Delivery,
  ErrorRule,
  HandlerOptions,
  Outcome,
  Plugin,
  RuntimeOptions,
  Transport,
} from '../../../src/index.js';
import {
  TransportError,
  defer,
  defineHandler,
  dependencyDown,
  explain,
  hours,
  idempotent,
  memoryIdempotencyStore,
  minutes,
  on,
  poison,
  retry,
  seconds,
  skip,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { unhandledDuring } from '../../support/unhandled.js';
import { transportWith } from '../../support/transport-with.js';

let world: World;
beforeEach(() => void (world = new World()));

type Handle = (delivery: Delivery) => Outcome | Promise<Outcome>;
type Options = HandlerOptions & { readonly subscription?: string };
const define = (name: string, handle: Handle, options: Options = {}) =>
  defineHandler({ name, source: topic(name), subscription: 's', ...options, handle });
const start = (handle: Handle, options: HandlerOptions = {}, runtime: Partial<RuntimeOptions> = {}) =>
  world.start({ handlers: [define('orders', handle, options)], ...runtime });
const never = (): Promise<never> => new Promise(() => undefined);
const wait = (ms: number): Promise<void> => new Promise((resolve) => world.clock.setTimer(ms, resolve));

/** What well-written code does with a signal: it ends with the reason. */
function untilAborted({ signal }: Delivery): Promise<never> {
  return new Promise((_, reject) => {
    const end = (): void => reject(signal.reason as Error);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end);
  });
}

/** The embedded transport with some methods replaced. */
function embeddedWith(change: (inner: Transport) => Partial<Transport>): Transport {
  const inner = embedded({ broker: world.broker });
  return transportWith(inner, change(inner));
}

const RULES: readonly [string, ErrorRule][] = [
  ['poison', on(Error, poison)],
  ['skip', on(Error, ({ message }) => skip(message))],
  ['success', on(Error, () => success())],
];

describe('a run that is cut short is no error of a rule', () => {
  const remembered = () => ({
    idempotent: idempotent({ key: ({ originId }) => originId, store: memoryIdempotencyStore(), ttlMs: hours(24) }),
  });

  it.each(RULES.flatMap(([name, rule]) => [false, true].map((keyed) => ({ name, rule, keyed }))))(
    'in a drain: the next process runs the message, whatever `onError` says ($name, idempotent $keyed)',
    async ({ rule, keyed }) => {
      const runs: string[] = [];
      const options = { onError: [rule], ...(keyed ? remembered() : {}) };
      const first = await start((d) => (runs.push('cut short'), untilAborted(d)), options);
      await world.publish('orders', 1);
      await world.clock.advanceBy(10);
      await world.drain(first, 0);
      await start(() => (runs.push('done'), success()), options);
      await world.clock.advanceBy(minutes(1));
      expect(runs).toEqual(['cut short', 'done']);
      expect(await world.deadLetters('orders', 's')).toEqual([]);
    },
  );

  it.each(RULES)('at its time limit: it is a failed run, not a recorded %s', async (_, rule) => {
    const runs: number[] = [];
    const handle = (d: Delivery): Outcome | Promise<Outcome> => {
      runs.push(d.attempt);
      return d.attempt === 1 ? untilAborted(d) : success();
    };
    await start(handle, { timeoutMs: 100, redelivery: { backoff: () => 10 }, onError: [rule], ...remembered() });
    await world.publish('orders', 1);
    await world.clock.advanceBy(minutes(1));
    expect(runs).toEqual([1, 2]);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
  });

  it.each(RULES)('before its batch began, by an operator who pauses: it runs afterwards (%s)', async (_, rule) => {
    const runs: unknown[] = [];
    const handler = defineHandler({
      name: 'h',
      source: topic('orders'),
      subscription: 's',
      batch: { maxMessages: 2, maxWaitMs: 1_000 },
      onError: [rule],
      ...remembered(),
      handle: (all) => (runs.push(...all.map(({ payload }) => payload)), success()),
    });
    const runtime = await world.start({ handlers: [handler] });
    await world.publish('orders', 1);
    await world.clock.advanceBy(10);
    runtime.subscription('s', 'orders').pause();
    await world.clock.advanceBy(seconds(2));
    runtime.subscription('s', 'orders').resume();
    await world.clock.advanceBy(minutes(1));
    expect(runs).toEqual([1]);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
  });

  it('before its batch began, behind a plugin that makes a success of every error: it runs afterwards', async () => {
    const runs: unknown[] = [];
    const plugin: Plugin = {
      name: 'forgiving',
      aroundHandler: async (_, next) => {
        try {
          return await next();
        } catch {
          return success();
        }
      },
    };
    const handler = defineHandler({
      name: 'h',
      source: topic('orders'),
      subscription: 's',
      batch: { maxMessages: 2, maxWaitMs: 1_000 },
      ...remembered(),
      handle: (all) => (runs.push(...all.map(({ payload }) => payload)), success()),
    });
    const runtime = await world.start({ handlers: [handler], plugins: [plugin] });
    await world.publish('orders', 1);
    await world.clock.advanceBy(10);
    runtime.subscription('s', 'orders').pause();
    await world.clock.advanceBy(seconds(2));
    runtime.subscription('s', 'orders').resume();
    await world.clock.advanceBy(minutes(1));
    expect(runs).toEqual([1]);
  });
});

describe('an ack timeout', () => {
  it('spends no attempt in the process that is given the message either', async () => {
    // One failed run of two must not be a dead letter.
    const attempts: number[] = [];
    const options: HandlerOptions = {
      ackTimeoutMs: seconds(1),
      concurrency: 1,
      redelivery: { maxDeliveries: 2, backoff: () => 100 },
    };
    const hung = await start(never, options);
    await world.publish('orders', 1);
    await world.clock.advanceBy(10);
    await start(({ attempt }) => (attempts.push(attempt), attempts.length === 1 ? retry() : success()), options);
    await world.clock.advanceBy(seconds(5));
    await world.drain(hung, 0);
    expect(attempts).toEqual([1, 2]);
    expect(await world.deadLetters('orders', 's')).toEqual([]);
  });

  it('makes nothing run again that has ended well, where no other process was given it', async () => {
    // The copies lie in the queue of this consumer, behind others that take their time.
    const runs: unknown[] = [];
    const handle = async ({ payload }: Delivery): Promise<Outcome> => {
      runs.push(payload);
      await wait(seconds(5));
      return success();
    };
    await start(handle, { ackTimeoutMs: seconds(1), concurrency: 1, prefetch: 10 });
    for (let i = 0; i < 8; i++) await world.publish('orders', i);
    await world.clock.advanceBy(minutes(10));
    expect(runs).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('whose backoff gives a promise that rejects costs a line, not the process', async () => {
    const backoff = (() => Promise.reject(new Error('x'))) as never;
    const options = { ackTimeoutMs: seconds(1), ackTimeoutBackoff: backoff };
    const unhandled = await unhandledDuring(async () => {
      await start(() => wait(seconds(3)).then(() => success()), options);
      await world.publish('orders', 1);
      await world.clock.advanceBy(seconds(10));
    });
    expect(unhandled).toEqual([]);
    expect(world.backlog('orders', 's')).toBe(0);
  });
});

class BankDown extends Error {}
const bank = { outage: [{ dependency: 'bank', errors: [BankDown], retryAfterMs: seconds(1) }] };

describe('an outage', () => {
  it('pauses a subscription that finds down what another one already probes', async () => {
    let runs = 0;
    const first = define('first', () => dependencyDown('bank'));
    const second = define('second', () => (runs++, dependencyDown('bank')), { concurrency: 1 });
    const runtime = await world.start({ handlers: [first, second] });
    await world.publish('first', 0);
    await world.clock.advanceBy(10);
    for (let i = 0; i < 50; i++) await world.publish('second', i);
    await world.clock.advanceBy(100);
    expect(runtime.health().map(({ pausedBy }) => pausedBy)).toEqual([['outage'], ['outage']]);
    expect(runs).toBe(1);
  });

  it('whose prober the operator has paused does not keep the other subscriptions waiting for ever', async () => {
    let down = true;
    const ask = (): Outcome => {
      if (down) throw new BankDown('x');
      return success();
    };
    const runtime = await world.start({ handlers: [define('first', ask, bank), define('second', ask, bank)] });
    await world.publish('first', 0);
    await world.clock.advanceBy(10);
    runtime.subscription('s', 'first').pause();
    down = false;
    await world.publish('second', 0);
    await world.clock.advanceBy(hours(2));
    expect(world.backlog('second', 's')).toBe(0);
  });
});

describe('a deferral of nothing', () => {
  it('does not spin: time passes between two runs', async () => {
    let runs = 0;
    await start(() => (runs++ < 2_000 ? defer(new Date(world.clock.now() - 1_000)) : success()));
    await world.publish('orders', 1);
    await world.clock.advanceBy(10);
    expect(runs).toBeLessThan(20);
  });
});

describe('after the runtime has closed', () => {
  it('nothing of an idempotent handler that never ends is left to wait', async () => {
    world.endsEarly = true;
    const store = memoryIdempotencyStore();
    const runtime = await start(never, {
      idempotent: idempotent({ key: ({ originId }) => originId, store, ttlMs: hours(1), leaseMs: hours(3) }),
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    await world.drain(runtime, 0);
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('nothing is left to wait of a settlement that failed while the subscription was closing', async () => {
    const transport = embeddedWith((inner) => ({
      subscribe: async (spec) => {
        const subscription = await inner.subscribe(spec);
        const close = subscription.close.bind(subscription);
        subscription.close = () => wait(seconds(10)).then(close);
        return subscription;
      },
      publisher: async () => {
        await wait(seconds(3));
        throw new TransportError('CONNECTION_LOST', 'x', { retriable: true });
      },
    }));
    const runtime = await start(() => poison('x'), {}, { transport });
    await world.publish('orders', 1);
    await world.clock.advanceBy(0);
    const timersLeft = runtime.close().then(() => world.clock.pendingTimers.length);
    await world.clock.advanceBy(minutes(2));
    expect(await timersLeft).toBe(0);
  });
});

describe('a retry letter that somebody else wrote', () => {
  it.each(['persistent://a/b', '://', ''])('with the origin topic %j is a dead letter in the end', async (name) => {
    const runtime = await start(() => poison('x'), { retryTopic: true });
    await world.publish('orders-s-RETRY', 1, { properties: { REAL_TOPIC: name, RECONSUMETIMES: '1' } });
    await world.clock.advanceBy(minutes(30));
    expect(runtime.health()[0]?.reason).toBeUndefined();
    expect(world.backlog('orders-s-RETRY', 's')).toBe(0);
    expect(await world.deadLetters('orders-s-RETRY', 's')).toHaveLength(1);
  });
});

describe('a retry letter topic that two handlers name', () => {
  const named = (name: string, subscription: string): Options => ({
    subscription,
    retryTopic: 'again',
    deadLetterTopic: `${name}-given-up`,
  });

  it.each([
    ['the same subscription: each would take letters of the other', 's', 's'],
    ['two subscriptions: each letter would run in both', 's1', 's2'],
  ])('with %s, is refused at start', async (_, first, second) => {
    const handlers = [
      define('a', () => success(), named('a', first)),
      define('b', () => success(), named('b', second)),
    ];
    await expect(world.start({ handlers })).rejects.toThrow(/retry letter topic .*again/);
  });

  it('because one takes from it what the other publishes again, is refused at start', async () => {
    const handlers = [define('a', () => success(), { retryTopic: true }), define('a-s-RETRY', () => success())];
    await expect(world.start({ handlers })).rejects.toThrow(/a-s-RETRY/);
  });
});

describe('a plugin around handling', () => {
  it('that does not wait for next() does not end the process when the handler fails', async () => {
    const plugin: Plugin = {
      name: 'careless',
      aroundHandler: (_, next) => {
        void next();
        return success();
      },
    };
    const unhandled = await unhandledDuring(async () => {
      await start(() => Promise.reject(new Error('x')), {}, { plugins: [plugin] });
      await world.publish('orders', 1);
      await world.clock.advanceBy(10);
    });
    expect(unhandled).toEqual([]);
  });
});

describe('health', () => {
  it.each([[() => 'acknowledge' as const], [{ fallbackTopic: 'other' }]])(
    'is not degraded by a dead letter that was refused and dealt with as the handler says',
    async (onDeadLetterRefused) => {
      const refused = new TransportError('TOPIC_TERMINATED', 'x', { retriable: false });
      const transport = embeddedWith((inner) => ({
        publisher: (name, options) =>
          name.endsWith('-DLQ') ? Promise.reject(refused) : inner.publisher(name, options),
      }));
      const runtime = await start(() => poison('x'), { onDeadLetterRefused }, { transport });
      await world.publish('orders', 1);
      await world.clock.advanceBy(seconds(1));
      expect(world.backlog('orders', 's')).toBe(0);
      expect(runtime.health()[0]).toMatchObject({ state: 'running', reason: undefined });
    },
  );
});

describe('explain', () => {
  const linesOf = (options: HandlerOptions): string => explain([define('o', () => success(), options)]).text;

  it('does not promise that a broker keeps messages on Exclusive and Failover', () => {
    for (const type of ['exclusive', 'failover'] as const)
      expect(linesOf({ type, delayedDelivery: 'broker' })).not.toContain('kept by the broker until then');
  });

  it('says that only the id waits where this process delays on Shared', () => {
    expect(linesOf({ delayedDelivery: 'client' })).toMatch(/deliverAt +held by id until then/);
  });

  it('says that the subscription pauses at its limit where this process delays, retry letter topic or not', () => {
    expect(linesOf({ delayedDelivery: 'client', retryTopic: true })).toMatch(/limit .*the subscription pauses/);
  });
});
