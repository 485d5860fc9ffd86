// Random programs of publish, run, fail, crash and restart: whatever the order, every message is handled or
// dead-lettered, no delivery is settled twice, and keys keep their order where nothing fails.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Delivery, Outcome, Runtime, SubscriptionType } from '../../../src/index.js';
import {
  defer,
  defineHandler,
  exponentialBackoff,
  poison,
  retry,
  retryAfter,
  success,
  topic,
} from '../../../src/index.js';
import { embedded } from '../../../src/embedded.js';
import { World } from '../../support/runtime-world.js';
import { SettlementLedger } from '../../support/settlement-ledger.js';

interface Job {
  readonly n: number;
  /** Failed runs before it succeeds; above 3 it ends as a dead letter. */
  readonly fails: number;
  readonly how: 'retry' | 'retry-after' | 'throw' | 'defer' | 'poison';
  readonly runMs: number;
}

const job = fc.record({
  fails: fc.integer({ min: 0, max: 5 }),
  how: fc.constantFrom('retry', 'retry-after', 'throw', 'defer', 'poison' as const),
  runMs: fc.integer({ min: 0, max: 40 }),
  key: fc.constantFrom('a', 'b', 'c', 'd', undefined),
});
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('publish' as const),
      jobs: fc.array(job, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('batch' as const), jobs: fc.array(job, { minLength: 2, maxLength: 4 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 3_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('start' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drain' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Program {
  readonly world = new World();
  readonly ledger = new SettlementLedger();
  readonly handled = new Map<number, number>();
  /** Messages that started while an earlier one of their key had not been handled yet. */
  readonly overtakings: string[] = [];
  /** Runs of each message. */
  readonly #runs = new Map<number, number>();
  readonly published: (Job & { readonly key: string | undefined })[] = [];
  readonly #alive: { readonly runtime: Runtime; readonly crash: () => Promise<void> }[] = [];
  readonly #type: SubscriptionType;
  readonly #ordered: boolean;
  readonly #failing: boolean;
  readonly #batched: boolean;

  constructor(type: SubscriptionType, ordered: boolean, failing: boolean, batched = false) {
    this.#type = type;
    this.#ordered = ordered;
    this.#failing = failing;
    this.#batched = batched;
  }

  async run(steps: readonly Step[]): Promise<void> {
    await this.#start();
    for (const each of steps) await this.#step(each);
    if (this.#alive.length === 0) await this.#start();
    await this.world.clock.advanceBy(3_600_000);
  }

  async #step(each: Step): Promise<void> {
    switch (each.kind) {
      case 'publish':
        for (const { key, ...rest } of each.jobs) await this.world.publish('jobs', this.#register(rest, key), { key });
        return;
      case 'batch': {
        // One key per entry, as a key-based batching producer makes them.
        const key = each.jobs[0]?.key;
        const values = each.jobs.map(({ fails, how, runMs }) => this.#register({ fails, how, runMs }, key));
        await this.world.broker.publishBatch(
          'jobs',
          values.map((value) => ({ payload: Buffer.from(JSON.stringify(value)), key, properties: {} })),
        );
        return;
      }
      case 'advance':
        return this.world.clock.advanceBy(each.ms);
      case 'start':
        return this.#start();
      case 'crash':
        return this.#alive.shift()?.crash();
      case 'drain': {
        const gone = this.#alive.shift();
        if (gone !== undefined) await this.world.drain(gone.runtime, 100);
      }
    }
  }

  #register(rest: Omit<Job, 'n'>, key: string | undefined): Job {
    const made: Job = this.#failing
      ? { ...rest, n: this.published.length }
      : { ...rest, n: this.published.length, fails: 0 };
    this.published.push({ ...made, key });
    return made;
  }

  async #start(): Promise<void> {
    const single = this.#type === 'exclusive' || this.#type === 'failover';
    if (this.#alive.length >= (this.#type === 'exclusive' ? 1 : 3)) return;
    const inner = embedded({ broker: this.world.broker });
    const options = {
      name: 'worker',
      source: topic('jobs'),
      subscription: 's',
      type: this.#type,
      ordering: this.#ordered ? (single ? 'partition' : 'key') : 'none',
      concurrency: 3,
      redelivery: { maxDeliveries: 4, backoff: exponentialBackoff({ minMs: 50, maxMs: 1_000 }) },
    } as const;
    const handler = this.#batched
      ? defineHandler({
          ...options,
          batch: { maxMessages: 3, maxWaitMs: 30 },
          // A throw would be the error of the whole batch, and the jobs say which of them fail.
          handle: (all) =>
            Promise.all(all.map((each) => this.#handle(each).catch((error: unknown) => retry(error as Error)))),
        })
      : defineHandler({ ...options, handle: (delivery) => this.#handle(delivery) });
    const runtime = await this.world.start({ handlers: [handler], transport: this.ledger.wrap(inner) });
    this.#alive.push({ runtime, crash: () => inner.close() });
  }

  async #handle({ payload, attempt, key }: Delivery): Promise<Outcome> {
    const { n, fails, how, runMs } = payload as Job;
    const run = (this.#runs.get(n) ?? 0) + 1;
    this.#runs.set(n, run);
    if (key !== undefined) this.#noteOvertaking(key, n);
    await new Promise<void>((resolve) => this.world.clock.setTimer(runMs, resolve));
    if (attempt > fails) {
      this.handled.set(n, (this.handled.get(n) ?? 0) + 1);
      return success();
    }
    if (how === 'throw') throw new Error('failed on purpose');
    // Deferrals spend no attempt, so they must end by themselves: one run in three does.
    if (how === 'defer') return run % 3 === 0 ? retry() : defer(20);
    return how === 'poison' ? poison('bad') : how === 'retry' ? retry() : retryAfter(70);
  }

  #noteOvertaking(key: string, n: number): void {
    for (const earlier of this.published) {
      if (earlier.key !== key || earlier.n >= n || this.handled.has(earlier.n)) continue;
      this.overtakings.push(`${n} of key ${key} started before ${earlier.n} was handled`);
    }
  }

  async check(): Promise<void> {
    expect(this.ledger.violations).toEqual([]);
    expect(this.world.backlog('jobs', 's')).toBe(0);
    const letters = await this.world.deadLetters('jobs', 's');
    const dead = new Set(letters.map((letter) => (JSON.parse(Buffer.from(letter.payload!).toString()) as Job).n));
    const lost = this.published.filter(({ n }) => !this.handled.has(n) && !dead.has(n));
    expect(lost).toEqual([]);
    // A dead letter follows only from failures: never fewer runs than the policy gives.
    const wronged = this.published.filter(({ n, fails, how }) => dead.has(n) && fails < 4 && how !== 'poison');
    expect(wronged).toEqual([]);
  }
}

const RUNS = 60;
const SEED = 20_261_129;

describe.each(['exclusive', 'failover', 'shared', 'key-shared'] as const)('on %s', (type) => {
  it('every message is handled or dead-lettered and none settled twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const program = new Program(type, false, true);
        await program.run(steps);
        await program.check();
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });
});

describe('on key-shared with ordering', () => {
  it('every message is handled or dead-lettered and none settled twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const program = new Program('key-shared', true, true);
        await program.run(steps);
        await program.check();
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });

  it('keeps the order of each key when nothing fails, over crashes, joins and drains', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const program = new Program('key-shared', true, false);
        await program.run(steps);
        await program.check();
        expect(program.overtakings).toEqual([]);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });
});

describe('of batch handlers', () => {
  it.each([
    ['shared', false],
    ['exclusive', false],
    ['key-shared', true],
  ] as const)(
    'on %s (ordered: %s) every message is handled or dead-lettered and none settled twice',
    async (type, ordered) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
          const program = new Program(type, ordered, true, true);
          await program.run(steps);
          await program.check();
        }),
        { numRuns: RUNS / 2, seed: SEED },
      );
    },
  );

  it('keep the order of each key when nothing fails, over crashes, joins and drains', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const program = new Program('key-shared', true, false, true);
        await program.run(steps);
        await program.check();
        expect(program.overtakings).toEqual([]);
      }),
      { numRuns: RUNS / 2, seed: SEED },
    );
  });
});
