import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Delivery } from '../../../src/index.js';
import { success } from '../../../src/core/outcome.js';
import { rateLimit } from '../../../src/plugins.js';
import { Control, health, problemsOf, run } from './plugin-kit.js';

let control: Control;
beforeEach(() => void (control = new Control()));

/** Starts so many runs now and notes when each comes through, in ms from now. */
function starts(
  plugin: ReturnType<typeof rateLimit>,
  count: number,
  at: number[] = [],
  fields: Partial<Delivery> = {},
): number[] {
  const begunMs = control.clock.now();
  for (let i = 0; i < count; i += 1)
    void run(plugin, () => (at.push(control.clock.now() - begunMs), success()), fields).catch(() => undefined);
  return at;
}

describe('runs', () => {
  it('start at once as far as the burst reaches, then at the rate', async () => {
    const at = starts(await control.start(rateLimit({ perSecond: 10, burst: 2 })), 5);
    await control.clock.advanceBy(1_000);
    expect(at).toEqual([0, 0, 100, 200, 300]);
  });

  it('below one per second wait for whole tokens', async () => {
    const at = starts(await control.start(rateLimit({ perSecond: 0.5 })), 3);
    await control.clock.advanceBy(10_000);
    expect(at).toEqual([0, 2_000, 4_000]);
  });

  it('find a full burst after a quiet time, and no more than that', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 2 }));
    starts(plugin, 2);
    await control.clock.advanceBy(60_000);
    const at = starts(plugin, 4);
    await control.clock.advanceBy(1_000);
    expect(at).toEqual([0, 0, 100, 200]);
  });

  it('that come later do not go before those that wait', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1 }));
    const order: string[] = [];
    const through = (name: string) => void run(plugin, () => (order.push(name), success()));
    for (const name of ['a', 'b']) through(name);
    await control.clock.advanceBy(99);
    through('c');
    await control.clock.advanceBy(1_000);
    expect(order).toEqual(['a', 'b', 'c']);
  });

  it('get what the handler gives or throws', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1 }));
    const outcome = success();
    const error = new Error('x');
    expect(await run(plugin, () => outcome)).toBe(outcome);
    const waiting = run(plugin, () => Promise.reject(error)).catch((thrown: unknown) => thrown);
    await control.clock.advanceBy(100);
    expect(await waiting).toBe(error);
  });

  it('never start faster than burst and rate allow, whatever comes when (fast-check)', async () => {
    const arrivals = fc.array(
      fc.record({ afterMs: fc.integer({ min: 0, max: 400 }), runs: fc.integer({ min: 1, max: 6 }) }),
      {
        maxLength: 12,
      },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 2_000 }),
        fc.integer({ min: 1, max: 5 }),
        arrivals,
        async (perSecond, burst, all) => {
          control = new Control();
          const plugin = await control.start(rateLimit({ perSecond, burst }));
          const at: number[] = [];
          const total = all.reduce((sum, { runs }) => sum + runs, 0);
          for (const { afterMs, runs } of all) {
            await control.clock.advanceBy(afterMs);
            for (let i = 0; i < runs; i += 1) void run(plugin, () => (at.push(control.clock.now()), success()));
          }
          await control.clock.advanceBy((total / perSecond) * 1_000 + total);
          expect(at).toHaveLength(total);
          for (let from = 0; from < at.length; from += 1)
            for (let to = from; to < at.length; to += 1)
              expect(to - from + 1).toBeLessThanOrEqual(burst + ((at[to]! - at[from]!) * perSecond) / 1_000 + 1e-6);
          expect(control.clock.pendingTimers).toEqual([]);
        },
      ),
      { seed: 6, numRuns: 60 },
    );
  });
});

describe('a limit', () => {
  it('is shared by all handlers of the runtime', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1 }));
    const at = starts(plugin, 1);
    starts(plugin, 1, at, { handler: 'other' });
    await control.clock.advanceBy(1_000);
    expect(at).toEqual([0, 100]);
  });

  it('by handler is one for each', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1, by: 'handler' }));
    const at = starts(plugin, 1);
    starts(plugin, 1, at, { handler: 'other' });
    expect(at).toEqual([0, 0]);
  });

  it('of some handlers leaves the others alone', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1, handlers: ['billing'] }));
    expect(starts(plugin, 5, [], { handler: 'other' })).toEqual([0, 0, 0, 0, 0]);
  });

  it('of a handler that is not there fails the start, and names those that are', async () => {
    control.subscriptions = [health({ handler: 'billing' }), health({ handler: 'mail' })];
    await expect(control.start(rateLimit({ perSecond: 1, handlers: ['biling'] }))).rejects.toMatchObject({
      problems: ['rateLimit: no handler is named "biling"; there are billing, mail'],
    });
  });

  it('has a burst of a tenth of a second unless it is given', async () => {
    expect(starts(await control.start(rateLimit({ perSecond: 200 })), 30)).toHaveLength(20);
  });
});

describe('a run that waits', () => {
  it('ends with the reason of its signal, without the handler, and costs no token', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1 }));
    starts(plugin, 1);
    const abort = new AbortController();
    let runs = 0;
    const waiting = run(plugin, () => (runs++, success()), { signal: abort.signal }).catch((error: unknown) => error);
    const at = starts(plugin, 1);
    const reason = new Error('deadline');
    abort.abort(reason);
    expect(await waiting).toBe(reason);
    await control.clock.advanceBy(1_000);
    expect([runs, at]).toEqual([0, [100]]);
  });

  it('whose signal has aborted before does not wait', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1 }));
    starts(plugin, 1);
    await expect(run(plugin, undefined, { signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow('late');
    expect(control.clock.pendingTimers).toEqual([]);
  });

  it('leaves no listener on its signal', async () => {
    let listeners = 0;
    const counting = { addEventListener: () => listeners++, removeEventListener: () => listeners-- };
    const counted = { aborted: false, ...counting } as unknown as AbortSignal;
    const plugin = await control.start(rateLimit({ perSecond: 10, burst: 1 }));
    starts(plugin, 3, [], { signal: counted });
    expect(listeners).toBe(2);
    await control.clock.advanceBy(1_000);
    expect(listeners).toBe(0);
  });

  it('ends when the runtime has closed, and leaves no timer', async () => {
    const plugin = await control.start(rateLimit({ perSecond: 1 }));
    starts(plugin, 1);
    const waiting = run(plugin).catch((error: unknown) => error);
    await plugin.onClose?.();
    expect(await waiting).toMatchObject({ code: 'ALREADY_CLOSED' });
    expect(control.clock.pendingTimers).toEqual([]);
  });
});

describe('options', () => {
  it('are checked all at once', () => {
    const options = { perSecond: 0, burst: 0.5, by: 'topic', handlers: [], name: '', perMinute: 3 };
    expect(problemsOf(() => rateLimit(options as never))).toEqual([
      'rateLimit: unknown option "perMinute", known options are perSecond, burst, by, handlers, name',
      'rateLimit: "perSecond" must be a finite number above 0, got 0',
      'rateLimit: "burst" must be a finite number of 1 or more, got 0.5',
      'rateLimit: "by" must be one of runtime, handler, got "topic"',
      'rateLimit: "name" must be a text that is not empty, got ""',
      'rateLimit: "handlers" must be a list of at least one handler name, got an array of 0',
    ]);
  });

  it('that are missing are named', () => {
    expect(problemsOf(() => rateLimit({} as never))).toEqual([
      'rateLimit: "perSecond" is missing; it must be a number above 0',
    ]);
  });

  it.each([NaN, Infinity, -1, '5'])('refuse a rate of %s', (perSecond) => {
    expect(problemsOf(() => rateLimit({ perSecond: perSecond as never }))).toHaveLength(1);
  });
});
