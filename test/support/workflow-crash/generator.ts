// The programs of a seed: by turns one in which exactly one call goes wrong, until each call of each base program has gone wrong in
// each way, and one in which chance has its way with everything.
import type { Fault } from '../../../src/testing.js';
import { FAULTS } from '../../../src/testing/faulty-transport.js';
import { days, minutes, seconds } from '../../../src/index.js';
import { scattered } from '../seeded.js';
import type { CrashProgram, Mood, Step } from './program.js';
import { STORIES } from './stories.js';
import { LAG_MS, STORY_NAMES } from './story.js';
import type { StoryName } from './story.js';

const START: Step = { do: 'start', atMs: seconds(1), id: 'A' };
const signal = (value: number, atMs = seconds(20)): Step => ({ do: 'signal', atMs, id: 'A', value });
/** In the middle of steps, where they take long. */
const CANCEL: Step = { do: 'cancel', atMs: seconds(1) + 1, id: 'A' };
/** In the middle of what takes no time. */
const CANCEL_AT_ONCE: Step = { ...CANCEL, atMs: seconds(1) };

interface Base {
  readonly story: StoryName;
  readonly steps: readonly Step[];
  readonly refused?: readonly string[];
}

/** One of each end. */
const BASES: readonly Base[] = [
  { story: 'order', steps: [START, signal(3)] },
  { story: 'order', steps: [START] },
  { story: 'order', steps: [START, CANCEL] },
  { story: 'order', steps: [START], refused: ['reserve'] },
  { story: 'approval', steps: [START, signal(1)] },
  { story: 'approval', steps: [START, signal(2)] },
  { story: 'approval', steps: [START] },
  { story: 'approval', steps: [START, signal(1), CANCEL] },
  { story: 'fan-out', steps: [START] },
  { story: 'fan-out', steps: [START], refused: ['add of A/acc-1', 'write of A/acc-2'] },
  { story: 'fan-out', steps: [START, CANCEL] },
  { story: 'fan-out', steps: [START, CANCEL_AT_ONCE] },
];

/** Programs in which nothing goes wrong yet. */
export function basePrograms(): readonly CrashProgram[] {
  return BASES.flatMap(({ story, steps, refused = [] }, n) =>
    (['calm', 'rough'] as const).map((mood: Mood) => ({
      setting: { seed: n + 1, story, mood, workers: 1, keeps: n % 2 === 0, refused, brokenUntilMs: 0 },
      steps,
    })),
  );
}

/** A base program, and how many calls its process makes. */
export interface CountedBase {
  readonly program: CrashProgram;
  readonly calls: number;
}

/** One after the other, these are spread over all of the list: it has no common factor with a list that is not made for it. */
const STRIDE = 7_919;

export function programOf(seed: number, bases: readonly CountedBase[]): CrashProgram {
  const cuts = bases.reduce((sum, { calls }) => sum + calls, 0) * FAULTS.length;
  const place = seed / 2 - 1;
  if (seed % 2 === 1 || place < 0 || place >= cuts) return randomProgram(seed);
  return cutProgram((place * STRIDE) % cuts, bases);
}

/** How many seeds it takes until each call has gone wrong in each way. */
export function seedsOfAllCuts(bases: readonly CountedBase[]): number {
  return 2 * bases.reduce((sum, { calls }) => sum + calls, 0) * FAULTS.length;
}

function cutProgram(index: number, bases: readonly CountedBase[]): CrashProgram {
  const fault = FAULTS[index % FAULTS.length] as Fault;
  let at = Math.floor(index / FAULTS.length);
  const base = bases.find(({ calls }) => {
    if (at < calls) return true;
    at -= calls;
    return false;
  }) as CountedBase;
  const { setting, steps } = base.program;
  return { setting, steps: [...steps, { do: 'fault', process: 0, at: at + 1, fault }] };
}

function randomProgram(seed: number): CrashProgram {
  const next = scattered(seed);
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  const oneOf = <T>(choices: readonly T[]): T => choices[whole(0, choices.length - 1)] as T;
  const often = (most: number, one: () => Step): Step[] => Array.from({ length: whole(0, most) }, one);
  const story = oneOf(STORY_NAMES);
  const { timesMs, refusable } = STORIES[story];
  const ids = next() < 0.8 ? ['A'] : ['A', 'B'];
  const refused = next() < 0.2 ? [oneOf(refusable(ids)), oneOf(refusable(ids))] : [];
  const workers = next() < 0.5 ? 1 : 2;
  const startMs = seconds(2);
  const atMs = (): number => startMs + oneOf(timesMs) + (next() < 0.5 ? 0 : whole(0, seconds(50)));
  const worker = (): number => whole(0, workers - 1);
  const soon = (): number => whole(0, next() < 0.5 ? startMs : minutes(2));
  const brokenUntilMs = next() < 0.8 ? 0 : whole(1, minutes(20));
  const repairsMs = brokenUntilMs === 0 ? [] : [brokenUntilMs + LAG_MS, days(10)];
  const steps: Step[] = [
    ...ids.map((id): Step => ({ do: 'start', atMs: startMs, id })),
    ...repairsMs.flatMap((atMs) => ids.map((id): Step => ({ do: 'resume', atMs, id }))),
    ...often(1, () => ({ do: 'start', atMs: startMs + whole(0, minutes(1)), id: oneOf(ids) })),
    ...often(2, () => ({ do: 'signal', atMs: atMs(), id: oneOf(ids), value: whole(1, 9) })),
    ...(next() < 0.4 ? [{ do: 'cancel', atMs: atMs(), id: oneOf(ids) } as const] : []),
    ...often(4, () => ({ do: 'fault', process: whole(0, workers + 2), at: whole(1, 70), fault: oneOf(FAULTS) })),
    ...often(1, () => ({ do: 'kill', atMs: soon(), worker: worker() })),
    ...often(1, () => ({ do: oneOf(['cut', 'freeze']), atMs: soon(), worker: worker(), forMs: whole(1, minutes(2)) })),
  ];
  return {
    setting: {
      seed,
      story,
      mood: next() < 0.3 ? 'calm' : 'rough',
      workers,
      keeps: next() < 0.4,
      refused,
      brokenUntilMs,
    },
    steps,
  };
}
