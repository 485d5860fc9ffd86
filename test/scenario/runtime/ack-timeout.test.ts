// A run that takes longer than the ack timeout: the broker is asked for the message again, the run goes on.
import { describe, expect, it } from 'vitest';
import type { Delivery, HandlerOptions, Outcome } from '../../../src/index.js';
import { defineHandler, fixedBackoff, retryAfter, seconds, success, topic } from '../../../src/index.js';
import { World } from '../../support/runtime-world.js';

function handler(handle: (delivery: Delivery) => Outcome | Promise<Outcome>, more: Partial<HandlerOptions> = {}) {
  return defineHandler({ name: 'h', source: topic('t'), subscription: 's', ackTimeoutMs: seconds(5), ...more, handle });
}

/** A handler whose runs last as long as the n-th entry says; what it saw, by attempt. */
function lasting(world: World, durationsMs: readonly number[], end: (run: number) => Outcome = () => success()) {
  const attempts: number[] = [];
  const handle = (delivery: Delivery): Promise<Outcome> => {
    const run = attempts.push(delivery.attempt) - 1;
    return new Promise((resolve) => world.clock.setTimer(durationsMs[run] ?? 0, () => resolve(end(run))));
  };
  return { attempts, handle };
}

describe('a run that exceeds the ack timeout', () => {
  it('gives another consumer the message; both may end it', async () => {
    const world = new World();
    const slow = lasting(world, [seconds(60)]);
    await world.start({ handlers: [handler(slow.handle, { concurrency: 1, prefetch: 1 })] });
    // The first runs, the others fill the slow consumer's queue: the broker may send it nothing more.
    for (const value of ['a', 'b', 'c']) await world.publish('t', value);
    await world.clock.advanceBy(seconds(4));
    const quick: unknown[] = [];
    await world.start({ handlers: [handler(({ payload }) => (quick.push(payload), success()))] });
    await world.clock.advanceBy(seconds(40));
    expect(quick).toContain('a');
    await world.clock.advanceBy(seconds(100));

    expect(world.backlog('t', 's')).toBe(0);
    await world.end();
  });

  it('whose copy comes back here is not run twice, and spends no attempt for it', async () => {
    const world = new World();
    const { attempts, handle } = lasting(world, [seconds(12), 0], (run) => (run === 0 ? retryAfter(10) : success()));
    await world.start({ handlers: [handler(handle)] });
    await world.publish('t', 'a');
    await world.clock.advanceBy(seconds(60));

    expect(attempts).toEqual([1, 2]);
    expect(world.log.filter(({ message }) => message.includes('exceeds the ack timeout'))).toHaveLength(1);
    expect(world.backlog('t', 's')).toBe(0);
    await world.end();
  });

  // what waits for its slot is not timed; A-06: the backoff is added to the timeout.
  it('A-03, A-06: is timed from its start, the backoff by the broker count added', async () => {
    const world = new World();
    const { handle } = lasting(world, [seconds(4), seconds(4), seconds(4)]);
    await world.start({ handlers: [handler(handle, { concurrency: 1, ackTimeoutBackoff: fixedBackoff(100) })] });
    for (const value of ['a', 'b', 'c']) await world.publish('t', value);
    await world.clock.advanceBy(seconds(30));

    expect(world.log.filter(({ level }) => level === 'warn')).toEqual([]);
    expect(world.backlog('t', 's')).toBe(0);
    await world.end();
  });

  it.each([
    [{ ackTimeoutMs: 999 }, /"ackTimeoutMs" must be/],
    [{ timeoutMs: seconds(5) }, /"ackTimeoutMs" must be above "timeoutMs", got 5000 and 5000/],
    [{ type: 'failover' }, /"ackTimeoutMs" would send messages again/],
    [{ type: 'key-shared', ordering: 'key' }, /"ackTimeoutMs" would send messages again/],
    [{ ackTimeoutMs: undefined, ackTimeoutBackoff: fixedBackoff(1) }, /"ackTimeoutBackoff" adds to "ackTimeoutMs"/],
  ] as const)('with %j is refused at start', async (options, reason) => {
    const world = new World();
    await expect(world.start({ handlers: [handler(() => success(), options)] })).rejects.toThrow(reason);
  });
});
