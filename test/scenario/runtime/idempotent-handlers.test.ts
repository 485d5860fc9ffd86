// The option `idempotent` of a handler: a key that was worked on already gets the outcome of that work.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import {
  defineHandler,
  idempotent,
  memoryIdempotencyStore,
  minutes,
  on,
  poison,
  retryAfter,
  seconds,
  success,
  topic,
} from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

const results = topic('results');

function setUp(handle: (delivery: Delivery) => Outcome | Promise<Outcome>, more: Partial<HandlerOptions> = {}) {
  const world = new World();
  const store = memoryIdempotencyStore();
  const handler = defineHandler({
    name: 'pay',
    source: topic('jobs'),
    subscription: 's',
    idempotent: idempotent({ key: ({ payload }) => String(payload), store, ttlMs: minutes(60), leaseMs: seconds(10) }),
    ...more,
    handle,
  });
  return { world, handler };
}

describe('an idempotent handler', () => {
  it('runs once for a message that comes twice, and publishes what follows again under the same id', async () => {
    let runs = 0;
    const { world, handler } = setUp(() => (runs++, success(results.message({ run: runs }))));
    await world.start({ handlers: [handler] });
    await world.publish('jobs', 'a');
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(minutes(1));

    const published = await world.read('results');
    expect(runs).toBe(1);
    expect(published.map(({ properties }) => properties['pulsework-message-id'])).toEqual([
      '1:0:-1/pay/0',
      '1:0:-1/pay/0',
    ]);
    expect(world.backlog('jobs', 's')).toBe(0);
    await world.end();
  });

  it('waits while another process has claimed the key, and then takes over its outcome', async () => {
    let runs = 0;
    const { world, handler } = setUp(async () => {
      runs++;
      await new Promise<void>((resolve) => world.clock.setTimer(seconds(4), resolve));
      return success();
    });
    await world.start({ handlers: [handler] });
    await world.start({ handlers: [handler] });
    await world.publish('jobs', 'a');
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(minutes(1));

    expect(runs).toBe(1);
    expect(world.reports.map(({ outcome }) => outcome).toSorted()).toEqual(['defer', 'success', 'success']);
    expect(world.backlog('jobs', 's')).toBe(0);
    await world.end();
  });

  it('that failed runs again: only what ended is remembered', async () => {
    const attempts: number[] = [];
    const { world, handler } = setUp(
      ({ attempt }) => (attempts.push(attempt), attempt === 1 ? retryAfter(10) : success()),
    );
    await world.start({ handlers: [handler] });
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(minutes(1));

    expect(attempts).toEqual([1, 2]);
    await world.end();
  });

  it('remembers a dead letter that an error rule made', async () => {
    let runs = 0;
    const { world, handler } = setUp(
      () => {
        runs++;
        throw new RangeError('too large');
      },
      { onError: [on(RangeError, poison)] },
    );
    await world.start({ handlers: [handler] });
    await world.publish('jobs', 'a');
    await world.publish('jobs', 'a');
    await world.clock.advanceBy(minutes(1));

    const letters = await world.deadLetters('jobs', 's');
    expect([runs, letters.length]).toEqual([1, 2]);
    expect(letters.map(({ properties }) => properties['pulsework-error-name'])).toEqual(['RangeError', 'RangeError']);
    await world.end();
  });

  it('takes only what idempotent() made', async () => {
    const { world, handler } = setUp(() => success(), { idempotent: {} as never });
    await expect(world.start({ handlers: [handler] })).rejects.toThrow(/"idempotent" must be made by idempotent\(\)/);
  });
});
