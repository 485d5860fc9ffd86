// When batches start and what is in them; what each delivery gets of the answer.
import { FakeClock } from 'pulsework/testing';
import { poison, retry, skip, success, topic } from 'pulsework';
import type { BatchOptions, Delivery, Outcome } from 'pulsework';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resolveBatchOptions } from '../../../src/core/batch-handler.js';
import { BatchCollector } from '../../../src/runtime/batch-collector.js';
import { HandlerRun } from '../../../src/runtime/handler-run.js';

type Answer = (names: readonly string[]) => unknown;

/** A collector whose batches are written down as `time: names`. */
class Bench {
  readonly clock = new FakeClock(0);
  readonly batches: string[] = [];
  readonly errors: unknown[] = [];
  readonly runs = new Map<string, HandlerRun>();
  /** Runs of the batch handler going on now, and the most at a time. */
  running = 0;
  most = 0;
  readonly collector: BatchCollector;

  constructor(options: BatchOptions & { concurrency?: number; takesMs?: number; answer?: Answer } = {}) {
    const { concurrency = 1, takesMs = 0, answer = () => success(), ...limits } = options;
    const silent = (): void => undefined;
    this.collector = new BatchCollector({
      name: 'h',
      limits: resolveBatchOptions(limits),
      concurrency,
      clock: this.clock,
      mayStart: () => true,
      around: (_, run) => run(),
      logger: {
        debug: silent,
        info: silent,
        warn: silent,
        error: (message, fields) => this.errors.push([message, fields]),
      },
      handle: async (deliveries: readonly Delivery<string>[]) => {
        const names = deliveries.map(({ payload }) => payload);
        this.batches.push(`${this.clock.now()}: ${names.join(' ')}`);
        this.most = Math.max(this.most, ++this.running);
        if (takesMs > 0) await new Promise<void>((resolve) => this.clock.setTimer(takesMs, resolve));
        this.running--;
        return answer(names) as Outcome;
      },
    });
  }

  /** What the delivery gets, as a text. */
  async join(name: string, payloadBytes = 1): Promise<string> {
    const run = new HandlerRun();
    this.runs.set(name, run);
    try {
      const outcome = await this.collector.join({ delivery: { payload: name } as Delivery, run, payloadBytes });
      return outcome.kind === 'success' ? 'success' : `${outcome.kind}: ${outcome.failure.reason}`;
    } catch (error) {
      return `error: ${(error as Error).message}`;
    }
  }

  joinAll(names: string): Promise<string[]> {
    return Promise.all(names.split(' ').map((name) => this.join(name)));
  }
}

describe('a batch starts', () => {
  it('at once when it is full', async () => {
    const bench = new Bench({ maxMessages: 3, maxWaitMs: 1_000 });
    void bench.joinAll('a b c');
    await bench.clock.advanceBy(0);

    expect(bench.batches).toEqual(['0: a b c']);
  });

  it('when its first delivery has waited, not its last', async () => {
    const bench = new Bench({ maxWaitMs: 100 });
    void bench.join('a');
    await bench.clock.advanceBy(60);
    void bench.join('b');
    await bench.clock.advanceBy(39);
    expect(bench.batches).toEqual([]);
    await bench.clock.advanceBy(1);

    expect(bench.batches).toEqual(['100: a b']);
  });

  it('with what is there where nothing is to be waited for', async () => {
    const bench = new Bench({ maxWaitMs: 0 });
    void bench.joinAll('a b');
    expect(bench.batches).toEqual([]);
    await bench.clock.advanceBy(0);

    expect(bench.batches).toEqual(['0: a b']);
  });

  it('before its bytes are exceeded', async () => {
    const bench = new Bench({ maxBytes: 10, maxWaitMs: 100 });
    for (const [name, bytes] of [
      ['a', 4],
      ['b', 4],
      ['c', 4],
    ] as const)
      void bench.join(name, bytes);
    await bench.clock.advanceBy(200);

    expect(bench.batches).toEqual(['0: a b', '100: c']);
  });

  it('with one message alone where that is larger than a batch may be', async () => {
    const bench = new Bench({ maxBytes: 10, concurrency: 9 });
    void bench.join('small', 1);
    void bench.join('large', 50);
    await bench.clock.advanceBy(0);

    expect(bench.batches).toEqual(['0: small', '0: large']);
  });

  it('at once when nothing more is to come, and so does each that joins later', async () => {
    const bench = new Bench({ maxWaitMs: 1_000 });
    void bench.joinAll('a b');
    bench.collector.flush();
    await bench.clock.advanceBy(1);
    void bench.join('c');
    await bench.clock.advanceBy(0);

    expect(bench.batches).toEqual(['0: a b', '1: c']);
  });

  it('only when a slot is free, with all that came meanwhile', async () => {
    const bench = new Bench({ maxMessages: 4, maxWaitMs: 10, takesMs: 100 });
    void bench.join('a');
    await bench.clock.advanceBy(20);
    void bench.join('b');
    await bench.clock.advanceBy(50);
    void bench.joinAll('c d e f');
    await bench.clock.advanceBy(500);

    expect(bench.batches).toEqual(['10: a', '110: b c d e', '210: f']);
  });

  it('beside others, up to the limit', async () => {
    const bench = new Bench({ maxMessages: 1, concurrency: 3, takesMs: 100 });
    void bench.joinAll('a b c d e');
    await bench.clock.advanceBy(500);

    expect(bench.batches).toEqual(['0: a', '0: b', '0: c', '100: d', '100: e']);
  });

  it('again after each that ends by a throw at once', async () => {
    const boom = new Error('boom');
    const thrower: Answer = () => {
      throw boom;
    };
    const bench = new Bench({ maxMessages: 1, answer: thrower });
    const outcomes = Promise.all(Array.from({ length: 100 }, (_, i) => bench.join(String(i))));
    await bench.clock.advanceBy(0);

    expect(new Set(await outcomes)).toEqual(new Set(['error: boom']));
  });
});

describe('each delivery gets', () => {
  const outcomesOf = async (answer: Answer): Promise<[string[], Bench]> => {
    const bench = new Bench({ maxMessages: 3, answer });
    return [await bench.joinAll('a b c'), bench];
  };

  it('the one outcome for all', async () => {
    const [outcomes] = await outcomesOf(() => retry('later'));
    expect(outcomes).toEqual(['retry: later', 'retry: later', 'retry: later']);
  });

  it('its own', async () => {
    const [outcomes, bench] = await outcomesOf(() => [success(), poison('bad'), skip('seen')]);
    expect(outcomes).toEqual(['success', 'poison: bad', 'skip: seen']);
    expect(bench.errors).toEqual([]);
  });

  it('what the handler threw', async () => {
    const [outcomes] = await outcomesOf(() => {
      throw new Error('boom');
    });
    expect(outcomes).toEqual(['error: boom', 'error: boom', 'error: boom']);
  });

  it('a failure where the list is too short for it; the others keep theirs', async () => {
    const [outcomes, bench] = await outcomesOf(() => [success()]);
    const missing =
      'retry: handler "h": it returned 1 outcomes for 3 deliveries and none for this one; return one for all or one each';
    expect(outcomes).toEqual(['success', missing, missing]);
    expect(bench.errors).toEqual([
      ['a batch handler returned a wrong number of outcomes', { handler: 'h', deliveries: 3, outcomes: 1 }],
    ]);
  });

  it('a failure where the list is too long: whose are which is unknown', async () => {
    const [outcomes, bench] = await outcomesOf(() => [success(), skip('b'), success(), retry()]);
    const unknown =
      'retry: handler "h": it returned 4 outcomes for 3 deliveries, and which are whose is unknown; return one for all or one each';
    expect(outcomes).toEqual([unknown, unknown, unknown]);
    expect(bench.errors).toHaveLength(1);
  });

  it('a failure where its element is no outcome; a promise among them is contained', async () => {
    const [outcomes] = await outcomesOf(() => [success(), undefined, Promise.reject(new Error('unheard'))]);
    expect(outcomes).toEqual([
      'success',
      'retry: handler "h": each element that a batch handler returns must be an outcome such as success(), got undefined',
      'retry: handler "h": each element that a batch handler returns must be an outcome such as success(), got an instance of Promise (await the list: Promise.all(...))',
    ]);
  });

  it.each([
    ['nothing', undefined, 'got undefined'],
    ['a look-alike', { kind: 'success', messages: [] }, 'got an object'],
  ])('a failure where the handler returned %s', async (_, result, said) => {
    const [outcomes] = await outcomesOf(() => result);
    expect(new Set(outcomes).size).toBe(1);
    expect(outcomes[0]).toContain('must return an outcome for all deliveries or a list with one for each, ' + said);
  });

  it('a failure where messages would be published once for each', async () => {
    const [outcomes] = await outcomesOf(() => success(topic('receipts').message(1)));
    expect(outcomes[2]).toMatch(/^retry: .*put the message on one of them$/);
  });

  it('an error where reading the list throws', async () => {
    const hostile = new Proxy([], {
      get: (target, name) => {
        if (name === 'length') throw new Error('no length');
        return Reflect.get(target, name) as unknown;
      },
    });
    const [outcomes] = await outcomesOf(() => hostile);
    expect(outcomes).toEqual(['error: no length', 'error: no length', 'error: no length']);
  });
});

describe('what has not started', () => {
  it('never does when it is interrupted, and keeps no timer', async () => {
    const bench = new Bench({ takesMs: 100, maxMessages: 1 });
    const outcomes = bench.joinAll('a b');
    bench.collector.interrupt(new Error('the end'));
    await bench.clock.advanceBy(1_000);

    expect(bench.batches).toEqual(['0: a']);
    expect(await outcomes).toEqual(['success', 'error: the end']);
    expect(bench.clock.pendingTimers).toEqual([]);
  });

  it('does not, where its run was interrupted before it joined', async () => {
    const bench = new Bench({ maxMessages: 1 });
    const run = new HandlerRun();
    run.interrupt(new Error('too late'));
    const joining = bench.collector.join({ delivery: { payload: 'a' } as Delivery, run, payloadBytes: 1 });

    await expect(joining).rejects.toThrow('too late');
    expect(bench.batches).toEqual([]);
  });

  it('is left out where its run has ended meanwhile', async () => {
    const bench = new Bench({ maxWaitMs: 100 });
    void bench.joinAll('a b');
    bench.runs.get('a')?.end();
    await bench.clock.advanceBy(100);

    expect(bench.batches).toEqual(['100: b']);
  });
});

it('a batch that is given up frees its slot, once, and is counted once', async () => {
  const bench = new Bench({ maxMessages: 2, takesMs: 1_000 });
  void bench.joinAll('a b c d e f');
  const run = (name: string): HandlerRun => bench.runs.get(name)!;
  expect([run('a').giveUp(), run('b').giveUp()]).toEqual([true, false]);
  await bench.clock.advanceBy(10);
  expect(bench.batches).toEqual(['0: a b', '0: c d']);
  await bench.clock.advanceBy(1_010);

  expect(bench.batches).toEqual(['0: a b', '0: c d', '1000: e f']);
});

it('whatever joins when: each is in one batch, in order, and no limit is passed', async () => {
  const joins = fc.array(fc.record({ afterMs: fc.nat(30), bytes: fc.nat(12) }), { minLength: 1, maxLength: 40 });
  const limits = fc.record({
    maxMessages: fc.integer({ min: 1, max: 5 }),
    maxBytes: fc.integer({ min: 1, max: 20 }),
    maxWaitMs: fc.nat(40),
    concurrency: fc.integer({ min: 1, max: 3 }),
    takesMs: fc.nat(60),
  });
  await fc.assert(
    fc.asyncProperty(joins, limits, async (members, options) => {
      const bench = new Bench(options);
      const outcomes: Promise<string>[] = [];
      for (const [i, { afterMs, bytes }] of members.entries()) {
        await bench.clock.advanceBy(afterMs);
        outcomes.push(bench.join(String(i), bytes));
      }
      await bench.clock.advanceBy(10_000);
      const batches = bench.batches.map((batch) => batch.split(': ')[1]!.split(' ').map(Number));
      const bytesOf = (batch: readonly number[]): number => batch.reduce((sum, i) => sum + members[i]!.bytes, 0);

      expect(batches.flat()).toEqual(members.map((_, i) => i));
      expect(batches.filter((batch) => batch.length > options.maxMessages)).toEqual([]);
      expect(batches.filter((batch) => batch.length > 1 && bytesOf(batch) > options.maxBytes)).toEqual([]);
      expect(bench.most).toBeLessThanOrEqual(options.concurrency);
      expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['success']));
    }),
    { seed: 7, numRuns: 50 },
  );
});
