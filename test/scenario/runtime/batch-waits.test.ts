// What happens while deliveries wait for their batch: those that may no longer start do not, and nothing is spent.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, Outcome } from '../../../src/index.js';
import { dependencyDown, seconds, success } from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { memoryAttemptStore } from '../../../src/testing.js';
import { BatchWorld } from '../../support/batch-world.js';
import type { CutSubscription } from '../../support/cut-transport.js';
import { CutTransport } from '../../support/cut-transport.js';

let world: BatchWorld;
beforeEach(() => void (world = new BatchWorld()));
afterEach(() => world.end());

describe('a delivery that waits for its batch', () => {
  it('does not start while an operator has paused the subscription, and runs when it goes on', async () => {
    const runtime = await world.startBatches(() => success(), { batch: { maxWaitMs: 500 } });
    await world.publishAll('a b');
    await world.clock.advanceBy(100);
    runtime.subscription('s', 'orders').pause();
    await world.clock.advanceBy(seconds(10));
    expect(world.batches).toEqual([]);

    runtime.subscription('s', 'orders').resume();
    await world.clock.advanceBy(500);
    expect(world.batches).toEqual(['a#1 b#1']);
    expect(world.settled).toEqual(['success#1', 'success#1']);
  });

  it('goes back, unstarted, when a paused subscription drains', async () => {
    const runtime = await world.startBatches(() => success(), { batch: { maxWaitMs: 500 } });
    await world.publishAll('a');
    await world.clock.advanceBy(100);
    runtime.subscription('s', 'orders').pause();
    const report = await world.drain(runtime);

    expect(report).toEqual({ complete: true, stillRunning: [] });
    expect(world.batches).toEqual([]);
    expect(world.backlog('orders', 's')).toBe(1);
  });

  it('does not start while a dependency is down, unless it is the probe', async () => {
    let down = true;
    await world.startBatches(() => (down ? dependencyDown('db', { retryAfterMs: seconds(1) }) : success()), {
      batch: { maxMessages: 1, maxWaitMs: 10 },
      concurrency: 1,
    });
    await world.publishAll('a b c');
    await world.clock.advanceBy(seconds(60));
    expect(new Set(world.batches)).toEqual(new Set(['a#1']));

    down = false;
    await world.clock.advanceBy(seconds(120));
    expect(world.batches.slice(-3).toSorted()).toEqual(['a#1', 'b#1', 'c#1']);
    expect(world.settled.slice(-3)).toEqual(['success#1', 'success#1', 'success#1']);
  });

  it('leaves a plugin to clean up, which cannot make an outcome of it', async () => {
    const seen: string[] = [];
    const aroundHandler = async (_: Delivery, next: () => Outcome | Promise<Outcome>): Promise<Outcome> => {
      try {
        return await next();
      } catch (error) {
        seen.push((error as { code?: string }).code ?? 'none');
        return success();
      }
    };
    const runtime = await world.startBatches(() => success(), {
      batch: { maxWaitMs: 500 },
      runtime: { plugins: [{ name: 'swallows', aroundHandler }] },
    });
    await world.publishAll('a');
    await world.clock.advanceBy(100);
    runtime.subscription('s', 'orders').pause();
    await world.clock.advanceBy(seconds(1));
    expect(seen).toEqual(['DELIVERY_PUT_OFF']);
    expect(world.settled).toEqual([]);

    runtime.subscription('s', 'orders').resume();
    await world.clock.advanceBy(seconds(1));
    expect(world.batches).toEqual(['a#1']);
  });
});

describe('a connection that is lost while deliveries wait for their batch', () => {
  let cut: CutTransport;
  beforeEach(() => void (cut = new CutTransport(embedded({ broker: world.broker }))));
  const link = (): CutSubscription => cut.links[0] as CutSubscription;

  it.each(['none', 'key'] as const)(
    'keeps them from starting until their copies come (ordering %s)',
    async (ordering) => {
      const type = ordering === 'key' ? 'key-shared' : 'shared';
      const options = { type, ordering, batch: { maxWaitMs: 500 } } as const;
      await world.startBatches(() => success(), { ...options, runtime: { transport: cut.transport } });
      await world.publishAll('a1 b1', true);
      await world.clock.advanceBy(100);
      await link().cut();
      await world.clock.advanceBy(seconds(5));
      expect(world.batches).toEqual([]);

      await link().open();
      await world.clock.advanceBy(seconds(5));
      expect(world.batches).toEqual(['a1#1 b1#1']);
      expect(world.backlog('orders', 's')).toBe(0);
    },
  );

  it('lets them start where their copies came first', async () => {
    await world.startBatches(() => success(), { batch: { maxWaitMs: 500 }, runtime: { transport: cut.transport } });
    await world.publishAll('a b');
    await world.clock.advanceBy(100);
    await link().cut();
    await link().open();
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1 b#1']);
    expect(world.settled).toEqual(['success#1', 'success#1']);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('writes no attempt down for them', async () => {
    const attemptStore = memoryAttemptStore();
    await world.startBatches(() => success(), {
      batch: { maxWaitMs: 500 },
      runtime: { transport: cut.transport, attemptStore },
    });
    await world.publishAll('a');
    await world.clock.advanceBy(100);
    await link().cut();
    await world.clock.advanceBy(seconds(5));
    await link().open();
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1']);
    expect(world.settled).toEqual(['success#1']);
  });

  it('does not pause the subscription for ever when one of them was the probe of a dependency', async () => {
    let down = true;
    await world.startBatches(() => (down ? dependencyDown('db', { retryAfterMs: seconds(1) }) : success()), {
      batch: { maxMessages: 2, maxWaitMs: 500 },
      concurrency: 1,
      runtime: { transport: cut.transport },
    });
    await world.publishAll('a');
    await world.clock.advanceBy(1_700); // the probe waits for its batch again
    await link().cut();
    await world.clock.advanceBy(seconds(5));
    down = false;
    await link().open();
    await world.publishAll('b');
    await world.clock.advanceBy(seconds(120));

    expect(world.backlog('orders', 's')).toBe(0);
  });
});
