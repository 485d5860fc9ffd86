// Batch handlers in a whole runtime: one call for many deliveries, and each of them settled by itself.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Delivery, Outcome } from '../../../src/index.js';
import { defineHandler, dependencyDown, on, poison, retry, seconds, skip, success, topic } from '../../../src/index.js';
import { Handler, Subscribe } from '../../../decorators/index.js';
import type { Orders } from '../../support/batch-world.js';
import { BatchWorld, orders } from '../../support/batch-world.js';
import { payloadOf } from '../../support/runtime-world.js';

const receipts = topic('receipts');
let world: BatchWorld;
beforeEach(() => void (world = new BatchWorld()));
afterEach(() => world.end());

const fail = (error: Error): never => {
  throw error;
};

describe('a batch handler', () => {
  it('gets full batches, and after maxWaitMs what there is', async () => {
    await world.startBatches(() => success(), { batch: { maxWaitMs: 200 } });
    await world.publishAll('a b c d');
    await world.clock.advanceBy(199);
    expect(world.batches).toEqual(['a#1 b#1 c#1']);
    await world.clock.advanceBy(1);

    expect(world.batches).toEqual(['a#1 b#1 c#1', 'd#1']);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('waits 100 ms where nothing else is said', async () => {
    await world.startBatches(() => success());
    await world.publishAll('a');
    await world.clock.advanceBy(99);
    expect(world.batches).toEqual([]);
    await world.clock.advanceBy(1);

    expect(world.batches).toEqual(['a#1']);
  });

  it('takes as many bytes at a time as it may', async () => {
    await world.startBatches(() => success(), { batch: { maxMessages: 100, maxBytes: 10 } });
    await world.publishAll('aa bb cc dd ee');
    await world.clock.advanceBy(seconds(1));

    expect(world.batches).toEqual(['aa#1 bb#1', 'cc#1 dd#1', 'ee#1']);
  });

  it('runs as often at a time as `concurrency` says and has no more in flight than that fills', async () => {
    let running = 0;
    let most = 0;
    const runtime = await world.startBatches(
      async () => {
        most = Math.max(most, ++running);
        await world.wait(seconds(1));
        running--;
        return success();
      },
      { concurrency: 2 },
    );
    await world.publishAll('a b c d e f g h i j');
    await world.clock.advanceBy(500);
    expect(world.batches).toEqual(['a#1 b#1 c#1', 'd#1 e#1 f#1']);
    expect(runtime.health()[0]).toMatchObject({ running: 6 });
    expect(world.broker.stats('orders').subscriptions.get('s')?.consumers[0]?.delivered).toBeLessThanOrEqual(12);
    await world.clock.advanceBy(seconds(5));

    expect(most).toBe(2);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('never sees what cannot be read: that is a dead letter, its neighbours run', async () => {
    await world.startBatches(() => success());
    await world.publishAll('a');
    await world.publish('orders', 17);
    await world.publishAll('b');
    await world.clock.advanceBy(seconds(1));

    expect(world.batches).toEqual(['a#1 b#1']);
    expect(await world.deadLetterPayloads()).toEqual([17]);
  });

  it('has the time of its run reported, not that of collecting', async () => {
    await world.startBatches(() => world.wait(5).then(() => success()));
    await world.publishAll('a');
    await world.clock.advanceBy(seconds(1));

    expect(world.reports.map(({ durationMs }) => durationMs)).toEqual([5]);
  });

  it('stands inside the plugins of each delivery', async () => {
    const around: string[] = [];
    const plugin = {
      name: 'watcher',
      aroundHandler: async (delivery: Delivery, next: () => Outcome | Promise<Outcome>) => {
        const outcome = await next();
        around.push(`${String(delivery.payload)} ${outcome.kind}`);
        return delivery.payload === 'c' ? skip('seen') : outcome;
      },
    };
    await world.startBatches(() => [success(), retry(), poison('bad')], { runtime: { plugins: [plugin] } });
    await world.publishAll('a b c');
    await world.clock.advanceBy(0);

    expect(around).toEqual(['a success', 'b retry', 'c poison']);
    expect(world.settled).toEqual(expect.arrayContaining(['success#1', 'retry#1', 'skip#1']));
  });
});

describe('each delivery of a batch', () => {
  it('is settled by its own outcome and counts its own attempts', async () => {
    await world.startBatches((all) =>
      all.map(({ payload }) => (payload === 'b' ? retry() : payload === 'c' ? poison('bad') : success())),
    );
    await world.publishAll('a b c');
    await world.clock.advanceBy(500);
    await world.publishAll('d');
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1 b#1 c#1', 'd#1', 'b#2']);
    expect(await world.deadLetterPayloads()).toEqual(['c', 'b']);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('is settled by the one outcome for all', async () => {
    await world.startBatches(() => poison('bad'));
    await world.publishAll('a b c');
    await world.clock.advanceBy(0);

    expect(await world.deadLetterPayloads()).toEqual(['a', 'b', 'c']);
  });

  it('goes through `onError` by itself when the handler throws', async () => {
    await world.startBatches(() => fail(new RangeError('boom')), { onError: [on(RangeError, poison)] });
    await world.publishAll('a b c');
    await world.clock.advanceBy(0);

    expect(world.settled).toEqual(['poison#1', 'poison#1', 'poison#1']);
    expect(await world.deadLetterPayloads()).toEqual(['a', 'b', 'c']);
  });

  it('is retried, loudly and whatever `onError` says, when it got no answer', async () => {
    await world.startBatches(({ length }) => (length === 3 ? [success()] : success()), {
      onError: [on(Error, poison)],
    });
    await world.publishAll('a b c');
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1 b#1 c#1', 'b#2 c#2']);
    expect(await world.deadLetterPayloads()).toEqual([]);
    const errors = world.log.filter(({ level }) => level === 'error');
    expect(errors.map(({ message }) => message)).toEqual([
      'a batch handler returned a wrong number of outcomes',
      'delivery will run again',
      'delivery will run again',
    ]);
    expect(errors[1]?.fields['error']).toMatchObject({ code: 'HANDLER_RETURNED_NO_OUTCOME' });
  });

  it('sends its own messages, under its own ids', async () => {
    await world.startBatches((all) => all.map(({ payload }) => success(receipts.message(payload))));
    await world.publishAll('a b c');
    await world.clock.advanceBy(0);
    const sent = await world.read('receipts');

    expect(sent.map(payloadOf)).toEqual(['a', 'b', 'c']);
    expect(new Set(sent.map(({ properties }) => properties['pulsework-message-id'])).size).toBe(3);
  });

  it('sends nothing that was meant for all: it would be sent once for each', async () => {
    await world.startBatches(() => success(receipts.message('all')));
    await world.publishAll('a b c');
    await world.clock.advanceBy(seconds(5));

    expect(await world.read('receipts')).toEqual([]);
    expect((await world.deadLetterPayloads()).sort()).toEqual(['a', 'b', 'c']);
  });

  it('of a producer batch comes again alone, its acknowledged neighbours do not', async () => {
    await world.startBatches((all) =>
      all.map(({ payload, attempt }) => (payload === 'b' && attempt === 1 ? retry() : success())),
    );
    await world.publishBatch('orders', ['a', 'b', 'c']);
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a#1 b#1 c#1', 'b#2']);
    expect(world.backlog('orders', 's')).toBe(0);
  });

  it('waits for a dependency that is down: one is the probe, and all run again', async () => {
    let down = true;
    const runtime = await world.startBatches(() => (down ? dependencyDown('bank') : success()));
    await world.publishAll('a b c');
    await world.clock.advanceBy(seconds(30));
    expect(runtime.health()[0]).toMatchObject({ dependenciesDown: ['bank'] });
    down = false;
    await world.clock.advanceBy(seconds(120));

    expect(world.batches[0]).toBe('a#1 b#1 c#1');
    expect(world.backlog('orders', 's')).toBe(0);
    expect(world.settled.filter((line) => line === 'success#1')).toHaveLength(3);
  });
});

describe('ordering: key', () => {
  const ordered = { type: 'key-shared', ordering: 'key' } as const;

  it('a batch has one message of a key, the next comes after that is settled', async () => {
    await world.startBatches(() => success(), { ...ordered, batch: { maxMessages: 10 } });
    await world.publishAll('a1 a2 b1 a3 c1 b2', true);
    await world.clock.advanceBy(seconds(1));

    expect(world.batches).toEqual(['a1#1 b1#1 c1#1', 'a2#1 b2#1', 'a3#1']);
  });

  it('a message that failed in a batch holds its key and no other', async () => {
    await world.startBatches(
      (all) => all.map(({ payload, attempt }) => (payload === 'a1' && attempt === 1 ? retry() : success())),
      { ...ordered, batch: { maxMessages: 10 } },
    );
    await world.publishAll('a1 b1 a2 b2', true);
    await world.clock.advanceBy(seconds(5));

    expect(world.batches).toEqual(['a1#1 b1#1', 'b2#1', 'a1#2', 'a2#1']);
  });
});

it('a decorated method gets the batch on its instance', async () => {
  const seen: string[] = [];
  @Handler({ subscription: 's' })
  class Billing {
    readonly shop = 'corner';

    @Subscribe(orders, { batch: { maxMessages: 2 } })
    charge(all: Orders): Outcome[] {
      seen.push(`${this.shop}: ${all.map(({ payload }) => payload).join(' ')}`);
      return all.map(() => success());
    }
  }
  await world.start({ handlers: [Billing] });
  await world.publishAll('a b');
  await world.clock.advanceBy(0);

  expect(seen).toEqual(['corner: a b']);
  expect(world.backlog('orders', 's')).toBe(0);
});

describe('at start', () => {
  it('`batch` on a class is refused: a class has methods of both kinds', async () => {
    @Handler({ subscription: 's', batch: {} } as never)
    class Billing {
      @Subscribe(orders)
      charge(): Outcome {
        return success();
      }
    }

    await expect(world.start({ handlers: [Billing] })).rejects.toMatchObject({
      problems: ['handler "Billing.charge": "batch" is an option of a method; move it from @Handler to its @Subscribe'],
    });
  });

  it('every problem of `batch` is named', async () => {
    const batch = { maxMessages: 0, maxWaitMs: -1, maxBytes: 1.5, maxMesages: 5 };
    const list = { name: 'list', source: orders, subscription: 'x', batch: [] as never, handle: () => success() };
    const starting = world.start({
      handlers: [defineHandler({ ...list, name: 'h', subscription: 's', batch }), defineHandler(list)],
    });
    await expect(starting).rejects.toMatchObject({
      problems: [
        'handler "h": unknown option "batch.maxMesages", did you mean "maxMessages"?',
        'handler "h": "batch.maxMessages" must be a positive integer, got 0',
        'handler "h": "batch.maxWaitMs" must be a duration of 0 ms or more (in milliseconds), got -1',
        'handler "h": "batch.maxBytes" must be a positive integer, got 1.5',
        'handler "list": "batch" must be an object such as {}, which takes the defaults, got an array of 0',
      ],
    });
  });
});
