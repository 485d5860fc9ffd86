// Ends that come together: two fatal outcomes, a handler in its own drain, a second exclusive runtime.
import { beforeEach, describe, expect, it } from 'vitest';
import { defineHandler, fatal, seconds, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

let world: World;
beforeEach(() => void (world = new World()));

describe('fatal', () => {
  it('from two handlers at once is one drain, rejects with the first and loses neither message', async () => {
    const handlers = ['a', 'b'].map((name) =>
      defineHandler({ name, source: topic('orders'), subscription: name, handle: () => fatal(`${name} is broken`) }),
    );
    const runtime = await world.start({ handlers });
    await world.publish('orders', 1);
    const closed = expect(runtime.closed).rejects.toMatchObject({ code: 'HANDLER_REQUESTED_STOP' });
    await world.clock.advanceBy(seconds(40));
    await closed;
    expect(runtime.state).toBe('failed');
    expect([world.backlog('orders', 'a'), world.backlog('orders', 'b')]).toEqual([1, 1]);
    expect(world.clock.pendingTimers).toEqual([]);
  });
});

describe('a handler', () => {
  it('that waits for the drain it asked for does not hold it up for ever', async () => {
    const ended: string[] = [];
    const runtime = await world.start({
      handlers: [
        defineHandler({
          name: 'h',
          source: topic('orders'),
          subscription: 's',
          handle: async () => {
            await runtime.drain({ deadlineMs: 1_000 });
            ended.push('handler');
            return success();
          },
        }),
      ],
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(60));
    expect(runtime.state).toBe('closed');
    expect(ended).toEqual(['handler']);
    expect(world.backlog('orders', 's')).toBe(1);
  });
});

describe('a second runtime', () => {
  it('with the same exclusive subscription is refused by name and leaves the first alone', async () => {
    const handlers = [
      defineHandler({
        name: 'h',
        source: topic('orders'),
        subscription: 's',
        type: 'exclusive',
        handle: () => success(),
      }),
    ];
    await world.start({ handlers });
    await expect(world.start({ handlers })).rejects.toMatchObject({
      code: 'START_FAILED',
      cause: { code: 'CONSUMER_BUSY' },
    });
    await world.publish('orders', 1);
    await world.clock.advanceBy(seconds(1));
    expect(world.backlog('orders', 's')).toBe(0);
  });
});
