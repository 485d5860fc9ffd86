import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  defer,
  defineHandler,
  dependencyDown,
  fatal,
  on,
  poison,
  retry,
  retryAfter,
  seconds,
  skip,
  success,
  topic,
} from '../../../src/index.js';
import { World, payloadOf } from '../../support/runtime-world.js';

const orders = topic('orders', { payload: z.object({ id: z.string() }) });
const receipts = topic('receipts', { payload: z.object({ order: z.string() }) });
type Order = Delivery<{ id: string }>;

let world: World;
beforeEach(() => void (world = new World()));
afterEach(() => world.end());

/** Starts one handler on `orders` and records each run as `id#attempt@seconds`. */
async function startHandler(handle: (order: Order) => Outcome | Promise<Outcome>, options: HandlerOptions = {}) {
  const runs: string[] = [];
  const startMs = world.clock.now();
  const runtime = await world.start({
    handlers: [
      defineHandler({
        name: 'billing',
        source: orders,
        subscription: 'billing',
        ...options,
        handle: (order) => {
          runs.push(`${order.payload.id}#${order.attempt}@${(world.clock.now() - startMs) / 1_000}`);
          return handle(order);
        },
      }),
    ],
  });
  return { runtime, runs };
}

describe('success', () => {
  it('acknowledges the delivery', async () => {
    const { runs } = await startHandler(() => success());
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    expect(runs).toEqual(['a#1@0']);
    expect(world.backlog('orders', 'billing')).toBe(0);
  });

  it('publishes what follows before it acknowledges', async () => {
    await startHandler((order) => success(receipts.message({ order: order.payload.id }, { key: 'k' })));
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    const [receipt] = await world.read('receipts');
    expect(payloadOf(receipt!)).toEqual({ order: 'a' });
    expect(receipt!.key).toBe('k');
    expect(world.backlog('orders', 'billing')).toBe(0);
  });

  it('marks what follows with an id, a cause and a correlation', async () => {
    await startHandler((order) =>
      success(receipts.message({ order: order.payload.id }), receipts.message({ order: 'x' })),
    );
    await world.publish('orders', { id: 'a' }, { properties: { 'pulsework-correlation-id': 'c-1' } });
    await world.clock.advanceBy(0);
    const [first, second] = await world.read('receipts');
    expect(first!.properties).toEqual({
      'pulsework-message-id': '1:0:-1/billing/0',
      'pulsework-correlation-id': 'c-1',
      'pulsework-causation-id': '1:0:-1',
    });
    expect(second!.properties['pulsework-message-id']).toBe('1:0:-1/billing/1');
  });
});

describe('skip', () => {
  it('acknowledges and says so apart', async () => {
    await startHandler(() => skip('not ours'));
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(0);
    expect(world.backlog('orders', 'billing')).toBe(0);
    expect(world.reports).toMatchObject([
      { outcome: 'skip', settlement: 'acknowledge', failure: { reason: 'not ours' } },
    ]);
  });
});

describe('retry', () => {
  it('comes back after exactly the delays of the policy, then is dead-lettered at once', async () => {
    const { runs } = await startHandler(() => retry('busy'), { redelivery: { maxDeliveries: 4 } });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(60));
    expect(runs).toEqual(['a#1@0', 'a#2@1', 'a#3@3', 'a#4@7']);
    const [letter] = await world.deadLetters('orders', 'billing');
    expect(letter!.properties).toMatchObject({
      'pulsework-cause': 'redeliveries-exhausted',
      'pulsework-reason': 'busy',
      'pulsework-attempt': '4',
    });
    expect(world.backlog('orders', 'billing')).toBe(0);
  });

  it.each(['exclusive', 'failover', 'shared', 'key-shared'] as const)('counts attempts truly on %s', async (type) => {
    const { runs } = await startHandler((order) => (order.attempt < 3 ? retry() : success()), { type });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(60));
    expect(runs.map((run) => run.slice(0, 3))).toEqual(['a#1', 'a#2', 'a#3']);
    expect(world.backlog('orders', 'billing')).toBe(0);
  });

  it('does not hold up other messages meanwhile', async () => {
    const { runs } = await startHandler(
      (order) => (order.payload.id === 'a' && order.attempt === 1 ? retry() : success()),
      { concurrency: 1 },
    );
    await world.publish('orders', { id: 'a' });
    await world.publish('orders', { id: 'b' });
    await world.clock.advanceBy(seconds(2));
    expect(runs).toEqual(['a#1@0', 'b#1@0', 'a#2@1']);
  });

  it('sees the original properties on every attempt', async () => {
    const seen: unknown[] = [];
    await startHandler((order) => {
      seen.push({ ...order.properties });
      return order.attempt < 3 ? retry() : success();
    });
    await world.publish('orders', { id: 'a' }, { properties: { tenant: 'x', ['__proto__']: 'odd' } });
    await world.clock.advanceBy(seconds(10));
    expect(seen).toHaveLength(3);
    for (const properties of seen)
      expect(Object.entries(properties as object)).toEqual([
        ['tenant', 'x'],
        ['__proto__', 'odd'],
      ]);
  });

  it('is what a thrown error becomes', async () => {
    const { runs } = await startHandler((order) => {
      if (order.attempt === 1) throw new Error('boom');
      return success();
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(2));
    expect(runs).toEqual(['a#1@0', 'a#2@1']);
    expect(world.reports[0]).toMatchObject({ outcome: 'retry', failure: { reason: 'boom' } });
  });
});

describe('retryAfter', () => {
  it('waits exactly as long as it says, not a millisecond less', async () => {
    const { runs } = await startHandler((order) => (order.attempt === 1 ? retryAfter(12_345) : success()));
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(12_344);
    expect(runs).toHaveLength(1);
    await world.clock.advanceBy(1);
    expect(runs).toEqual(['a#1@0', 'a#2@12.345']);
  });
});

describe('defer', () => {
  it('runs again in place without spending an attempt', async () => {
    let left = 5;
    const { runs } = await startHandler(() => (left-- > 0 ? defer(seconds(1)) : success()), {
      redelivery: { maxDeliveries: 2 },
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(10));
    expect(runs).toEqual(['a#1@0', 'a#1@1', 'a#1@2', 'a#1@3', 'a#1@4', 'a#1@5']);
    expect(world.backlog('orders', 'billing')).toBe(0);
  });

  it('takes a point in time', async () => {
    const due = new Date(world.clock.now() + seconds(3));
    const { runs } = await startHandler(() => (world.clock.now() < due.getTime() ? defer(due) : success()));
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(10));
    expect(runs).toEqual(['a#1@0', 'a#1@3']);
  });
});

describe('poison', () => {
  it('is a dead letter now, with the reason and the original message', async () => {
    await startHandler(() => poison(new RangeError('amount is negative')));
    await world.publish('orders', { id: 'a' }, { key: 'k', eventTimeMs: 5, properties: { tenant: 'x' } });
    await world.clock.advanceBy(0);
    const [letter] = await world.deadLetters('orders', 'billing');
    expect(payloadOf(letter!)).toEqual({ id: 'a' });
    expect(letter).toMatchObject({ key: 'k', eventTimeMs: 5 });
    expect(letter!.properties).toMatchObject({
      tenant: 'x',
      REAL_TOPIC: 'persistent://public/default/orders',
      ORIGIN_MESSAGE_ID: '1:0:-1',
      'pulsework-cause': 'poison',
      'pulsework-error-name': 'RangeError',
      'pulsework-reason': 'amount is negative',
      'pulsework-handler': 'billing',
      'pulsework-attempt': '1',
    });
    expect(world.backlog('orders', 'billing')).toBe(0);
  });
});

describe('dependencyDown', () => {
  it('pauses the subscription, probes with the one message, and goes on when it succeeds', async () => {
    let down = true;
    const { runtime, runs } = await startHandler(
      () => (down ? dependencyDown('ledger', { retryAfterMs: seconds(1) }) : success()),
      { concurrency: 1 },
    );
    await world.publish('orders', { id: 'a' });
    await world.publish('orders', { id: 'b' });
    await world.clock.advanceBy(seconds(4));
    expect(runs).toEqual(['a#1@0', 'a#1@1', 'a#1@3']);
    expect(runtime.subscription('billing', 'orders').health()).toMatchObject({
      state: 'paused',
      pausedBy: ['outage'],
      dependenciesDown: ['ledger'],
    });
    down = false;
    await world.clock.advanceBy(seconds(4));
    expect(runs.slice(3)).toEqual(['a#1@7', 'b#1@7']);
    expect(world.backlog('orders', 'billing')).toBe(0);
    expect(await world.deadLetters('orders', 'billing')).toEqual([]);
  });
});

describe('fatal', () => {
  it('drains the runtime, rejects closed, and leaves the message in the subscription', async () => {
    const { runtime } = await startHandler(() => fatal('licence expired'));
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(40));
    await expect(runtime.closed).rejects.toMatchObject({
      code: 'HANDLER_REQUESTED_STOP',
      message: expect.stringContaining('licence expired'),
    });
    expect(runtime.state).toBe('failed');
    expect(world.backlog('orders', 'billing')).toBe(1);
  });
});

describe('what is no outcome', () => {
  it.each([undefined, null, true, { kind: 'success', messages: [] }])(
    '%o counts as a failed run and is logged as an error',
    async (value) => {
      await startHandler((order) => (order.attempt === 1 ? (value as unknown as Outcome) : success()));
      await world.publish('orders', { id: 'a' });
      await world.clock.advanceBy(seconds(2));
      expect(world.backlog('orders', 'billing')).toBe(0);
      expect(world.log.find((line) => line.level === 'error')?.fields['error']).toMatchObject({
        code: 'HANDLER_RETURNED_NO_OUTCOME',
      });
    },
  );

  it.each([
    retryAfter(NaN),
    retryAfter(-1),
    retryAfter(Infinity),
    defer(Infinity),
    defer(new Date(NaN)),
    dependencyDown('x', { retryAfterMs: -5 }),
  ])('an outcome with an unusable number is a failed run, %o', async (outcome) => {
    await startHandler((order) => (order.attempt === 1 ? outcome : success()));
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(2));
    expect(world.backlog('orders', 'billing')).toBe(0);
  });
});

describe('onError', () => {
  class CardDeclined extends Error {}
  class GatewayBusy extends Error {
    readonly retryAfterMs = 5_000;
  }

  it('gives each error class its outcome, the first match wins', async () => {
    const { runs } = await startHandler(
      (order) => {
        if (order.attempt > 1) return success();
        throw order.payload.id === 'a' ? new CardDeclined('no cover') : new GatewayBusy('busy');
      },
      {
        onError: [
          on(CardDeclined, poison),
          on(GatewayBusy, (error) => retryAfter(error.retryAfterMs)),
          on(Error, () => skip('never reached')),
        ],
      },
    );
    await world.publish('orders', { id: 'a' });
    await world.publish('orders', { id: 'b' });
    await world.clock.advanceBy(seconds(10));
    expect(runs).toEqual(['a#1@0', 'b#1@0', 'b#2@5']);
    expect(await world.deadLetters('orders', 'billing')).toHaveLength(1);
  });

  it('a rule that throws is a failed run under the default outcome', async () => {
    const rule = on(Error, () => {
      throw new Error('rule broken');
    });
    const { runs } = await startHandler(
      (order) => {
        if (order.attempt === 1) throw new Error('boom');
        return success();
      },
      { onError: [rule] },
    );
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(2));
    expect(runs).toEqual(['a#1@0', 'a#2@1']);
    expect(world.log.find((line) => line.level === 'error')?.fields['error']).toMatchObject({ code: 'POLICY_FAILED' });
  });
});

describe('a backoff that fails', () => {
  it.each([
    () => NaN,
    () => -1,
    () => Infinity * 0,
    () => {
      throw new Error('no');
    },
  ])('is replaced by the default one and logged (%#)', async (backoff) => {
    const { runs } = await startHandler((order) => (order.attempt === 1 ? retry() : success()), {
      redelivery: { backoff },
    });
    await world.publish('orders', { id: 'a' });
    await world.clock.advanceBy(seconds(2));
    expect(runs).toEqual(['a#1@0', 'a#2@1']);
    expect(world.log.filter((line) => line.level === 'error')).toHaveLength(1);
  });
});
