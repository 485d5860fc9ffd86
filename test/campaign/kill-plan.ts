// What one run of `kill` does, as a value: all of it follows from the seed.
import fc from 'fast-check';
import { ENDING_KINDS } from '../support/crash/service-jobs.js';
import type { Job, ServiceSettings } from '../support/crash/service-jobs.js';

/** So long after the process began its run number `run`; of run 0, after the process began. */
export interface Kill {
  readonly run: number;
  readonly delayMs: number;
}

export interface KillPlan {
  readonly jobs: readonly Job[];
  readonly batched: boolean;
  readonly options: ServiceSettings['options'];
  readonly recordsAttempts: boolean;
  readonly isIdempotent: boolean;
  /** One after the other, each of a process of its own. */
  readonly kills: readonly Kill[];
}

/** One in a lane waits for the one before: fewer of them, or a run takes minutes. */
const SHAPES: readonly { readonly jobs: number; readonly options: ServiceSettings['options'] }[] = [
  { jobs: 200, options: { type: 'shared' } },
  { jobs: 200, options: { type: 'shared', retryTopic: true, maxHeld: 4 } },
  { jobs: 200, options: { type: 'shared', ackTimeoutMs: 1_000 } },
  { jobs: 200, options: { type: 'key-shared' } },
  { jobs: 200, options: { type: 'key-shared', retryTopic: true, maxHeld: 2 } },
  { jobs: 100, options: { type: 'key-shared', ordering: 'key' } },
  { jobs: 200, options: { type: 'exclusive' } },
  { jobs: 40, options: { type: 'failover', ordering: 'partition' } },
];

/** Some die while they start, most in the middle of their work: of the runs that go on then some have just ended. */
const inTheStart = fc.record({ run: fc.constant(0), delayMs: fc.integer({ min: 0, max: 3_000 }) });
const atWork = (runs: number): fc.Arbitrary<Kill> =>
  fc.record({ run: fc.integer({ min: 1, max: runs }), delayMs: fc.integer({ min: 0, max: 30 }) });

function plan(kills: number): fc.Arbitrary<KillPlan> {
  return fc.constantFrom(...SHAPES).chain(({ jobs, options }) => {
    // Whatever the processes before have done, so many runs are left for each.
    const runs = Math.max(1, Math.floor((0.7 * jobs) / (kills + 1)));
    const kill = fc.oneof({ weight: 1, arbitrary: inTheStart }, { weight: 9, arbitrary: atWork(runs) });
    return fc.record({
      jobs: fc
        .array(fc.record({ kind: fc.constantFrom(...ENDING_KINDS), takesMs: fc.nat(60) }), {
          minLength: jobs,
          maxLength: jobs,
        })
        .map((list) => list.map(({ kind, takesMs }, index) => ({ id: `${kind}-${index}`, kind, takesMs }))),
      batched: fc.boolean(),
      options: fc.constantFrom(2, 16, 16).map((concurrency) => ({ ...options, concurrency })),
      recordsAttempts: fc.boolean(),
      isIdempotent: fc.constantFrom(false, false, true),
      kills: fc.array(kill, { minLength: kills, maxLength: kills }),
    });
  });
}

/** Without fast-check's liking for small numbers: they are not the likely faults here. */
export function killPlan(seed: number, kills: number): KillPlan {
  const [sampled] = fc.sample(fc.noBias(plan(kills)), { numRuns: 1, seed });
  return sampled!;
}
