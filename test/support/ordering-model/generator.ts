// Random programs for the ordering model, equal for equal seeds.
import { FAULTS } from '../../../src/testing.js';
import { scattered } from '../seeded.js';
import type { Ending, Job, Mode, Program, Setting, Step } from './program.js';

/** Pairs of keys that share a slot on the consistent ring (K-04), and two of their own. */
const KEYS = ['key-107', 'key-411', 'key-12', 'key-540', 'A', 'B'] as const;
const LONGEST_DELAY_MS = 90_000;

interface Chances {
  /** In [0, 1). */
  readonly next: () => number;
  /** A whole number, both ends included. */
  readonly whole: (least: number, most: number) => number;
  readonly oneOf: <T>(choices: readonly T[]) => T;
}

export function programOf(seed: number, mode: Mode): Program {
  const chances = chancesOf(seed);
  const setting = settingOf(mode, chances);
  const hasMixedBatches = mode !== 'broker' && setting.maxProcesses === 1 && chances.next() < 0.4;
  const isCalm = chances.next() < 0.4;
  const kinds = kindsOf(isCalm);
  const keys = KEYS.slice(0, chances.whole(1, KEYS.length));
  const jobOf = (): Job => randomJob(keys, chances);
  const steps: Step[] = [];
  for (let left = chances.whole(6, 30); left > 0; left--) {
    steps.push(stepOf(chances.oneOf(kinds), { chances, jobOf, hasMixedBatches }));
  }
  return { setting, steps };
}

function chancesOf(seed: number): Chances {
  const next = scattered(seed);
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return { next, whole, oneOf: (choices) => choices[whole(0, choices.length - 1)]! };
}

function settingOf(mode: Mode, { next, whole, oneOf }: Chances): Setting {
  return {
    mode,
    partitions: oneOf([1, 1, 1, 2, 4]),
    concurrency: whole(1, 8),
    prefetch: oneOf([0, 1, 2, 5, 50]),
    maxDeliveries: whole(1, 4),
    backoffMs: oneOf([0, 100, 5_000]),
    maxProcesses: whole(1, 3),
    keyBlocks: next() < 0.25,
    maxLaneMessages: oneOf([1_000, 1_000, 1_000, 2]),
    consistentHashing: next() < 0.7,
    lookAhead: oneOf([2_000, 2_000, 1, 3]),
    maxRetryingPositions: oneOf([50_000, 50_000, 50_000, 1, 2]),
    latencyMs: oneOf([0, 0, 5, 500]),
  };
}

const CALM_KINDS: readonly Step['do'][] = [
  ...Array<'publish'>(8).fill('publish'),
  ...Array<'publish-batch'>(2).fill('publish-batch'),
  ...Array<'pass'>(9).fill('pass'),
  ...Array<'join'>(2).fill('join'),
  'drain',
  'pause',
  'resume',
  'release',
  'skip',
];

function kindsOf(isCalm: boolean): readonly Step['do'][] {
  return isCalm ? CALM_KINDS : [...CALM_KINDS, 'join', 'crash', 'unload', 'unload', 'restart', 'fault', 'fault'];
}

interface StepFacts {
  readonly chances: Chances;
  readonly jobOf: () => Job;
  readonly hasMixedBatches: boolean;
}

function stepOf(kind: Step['do'], { chances, jobOf, hasMixedBatches }: StepFacts): Step {
  const { whole, oneOf } = chances;
  switch (kind) {
    case 'publish':
      return { do: kind, jobs: Array.from({ length: whole(1, 4) }, jobOf) };
    case 'publish-batch':
      return { do: kind, jobs: batchOf(Array.from({ length: whole(2, 4) }, jobOf), hasMixedBatches) };
    case 'pass':
      return { do: kind, ms: passingMs(chances) };
    case 'fault':
      return { do: kind, at: whole(0, 2), fault: oneOf(FAULTS) };
    case 'join':
    case 'restart':
      return { do: kind };
    case 'unload':
      return { do: kind, at: whole(0, 3) };
    case 'drain':
    case 'crash':
    case 'pause':
    case 'resume':
    case 'release':
    case 'skip':
      return { do: kind, at: whole(0, 2) };
  }
}

function batchOf(jobs: readonly Job[], mixesKeys: boolean): readonly Job[] {
  const key = jobs[0]?.key;
  return mixesKeys ? jobs : jobs.map((job) => ({ ...job, key }));
}

function passingMs({ whole, oneOf }: Chances): number {
  return oneOf([0, whole(1, 50), whole(50, 2_000), whole(2_000, 30_000), whole(30_000, 120_000)]);
}

function randomJob(keys: readonly string[], chances: Chances): Job {
  const { next, whole, oneOf } = chances;
  const failures = next() < 0.5 ? 0 : whole(1, 4);
  const key = next() < 0.06 ? undefined : oneOf(keys);
  const endings = Array.from({ length: failures }, () => randomEnding(chances));
  const last: Ending = { how: 'success', delayMs: 0, runMs: runMsOf(chances) };
  return { key, endings: [...endings, last] };
}

function randomEnding(chances: Chances): Ending {
  const { whole, oneOf, next } = chances;
  const how = oneOf([
    'retry',
    'retry',
    'retry-after',
    'retry-after',
    'retry-after',
    'throw',
    'defer',
    'dependency-down',
  ] as const);
  const delayMs = oneOf([0, whole(1, 100), whole(100, 5_000), whole(5_000, LONGEST_DELAY_MS)]);
  return { how: next() < 0.08 ? 'poison' : how, delayMs, runMs: runMsOf(chances) };
}

function runMsOf({ whole, oneOf }: Chances): number {
  return oneOf([0, 0, whole(1, 40), whole(100, 3_000)]);
}
