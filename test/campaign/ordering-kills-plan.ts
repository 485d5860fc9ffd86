// What one run of `ordering-kills` does, as a value: all of it follows from the seed.
import type { JobKind, OrderedJob } from '../support/ordered/ordered-jobs.js';
import { scattered } from '../support/seeded.js';

export interface OrderedStep {
  /** It happens so long after so many runs have started, of all processes together. */
  readonly runs: number;
  readonly delayMs: number;
  /** `kill`: `kill -9`. `drain`: SIGTERM. Both are followed by a new process. `join`: only the new one. */
  readonly kind: 'kill' | 'drain' | 'join';
  /** Which of the living ones, 0 to 1. */
  readonly which: number;
  /** Until the new one starts. */
  readonly replacedAfterMs: number;
}

export interface OrderedPlan {
  readonly jobs: readonly OrderedJob[];
  readonly batched: boolean;
  readonly concurrency: number;
  /** At the beginning. */
  readonly processes: number;
  readonly steps: readonly OrderedStep[];
}

const JOBS = 300;
const HOT_KEY_SHARE = 0.15;
const SLOW_SHARE = 0.04;
const SLOW_MS = 300;
const MOST_MS = 40;
const MOST_DELAY_MS = 60;
const MOST_REPLACED_AFTER_MS = 600;

export function orderedPlan(seed: number): OrderedPlan {
  const random = scattered(seed);
  const upTo = (most: number): number => Math.floor(random() * (most + 1));
  const keys = 16 + upTo(16);
  const job = (n: number): OrderedJob => ({
    n,
    key: random() < HOT_KEY_SHARE ? 'hot' : `key-${upTo(keys - 1)}`,
    kind: kindFor(random()),
    takesMs: random() < SLOW_SHARE ? SLOW_MS : upTo(MOST_MS),
  });
  const step = (runs: number): OrderedStep => ({
    runs,
    delayMs: upTo(MOST_DELAY_MS),
    kind: stepFor(random()),
    which: random(),
    replacedAfterMs: upTo(MOST_REPLACED_AFTER_MS),
  });
  return {
    jobs: Array.from({ length: JOBS }, (_, n) => job(n)),
    batched: random() < 0.3,
    concurrency: random() < 0.5 ? 4 : 16,
    processes: 2 + upTo(1),
    steps: Array.from({ length: 3 + upTo(2) }, () => upTo(Math.floor(JOBS * 0.9)))
      .toSorted((a, b) => a - b)
      .map(step),
  };
}

function kindFor(share: number): JobKind {
  if (share < 0.72) return 'plain';
  if (share < 0.82) return 'flaky';
  if (share < 0.87) return 'late';
  if (share < 0.94) return 'deferred';
  return share < 0.97 ? 'hopeless' : 'poisoned';
}

function stepFor(share: number): OrderedStep['kind'] {
  if (share < 0.7) return 'kill';
  return share < 0.85 ? 'drain' : 'join';
}
