// What a run of the workflow crash campaign does: which workflows there are, what happens to them from outside, and what goes
// wrong. Plain data, so that it can be printed, made smaller, and done again.
import type { Fault } from '../../../src/testing.js';
import type { StoryName } from './story.js';

/** What a step does besides its work. `rough`: some attempts throw, take long, or end although nobody hears of it. */
export type Mood = 'calm' | 'rough';

export interface Setting {
  readonly seed: number;
  readonly story: StoryName;
  readonly mood: Mood;
  /** Processes on one broker and one store. */
  readonly workers: number;
  /** Workflows that wait are kept in memory, as long ones are, and not replayed. */
  readonly keeps: boolean;
  /** Names of steps that refuse for good; `STEP of ID` for one workflow only. */
  readonly refused: readonly string[];
  /** Until then compensations give up; afterwards those that are stuck are resumed. 0 for never. */
  readonly brokenUntilMs: number;
}

/** Times are milliseconds from the beginning of the run. */
export type Step =
  | { readonly do: 'start'; readonly atMs: number; readonly id: string }
  | { readonly do: 'cancel'; readonly atMs: number; readonly id: string }
  | { readonly do: 'resume'; readonly atMs: number; readonly id: string }
  | { readonly do: 'signal'; readonly atMs: number; readonly id: string; readonly value: number }
  /** The n-th call that a process makes goes wrong; processes are counted as they start, from 0. */
  | { readonly do: 'fault'; readonly process: number; readonly at: number; readonly fault: Fault }
  | { readonly do: 'kill'; readonly atMs: number; readonly worker: number }
  /** The store is out of its reach, or nothing of it goes on: longer than a lease, perhaps. */
  | { readonly do: 'cut'; readonly atMs: number; readonly worker: number; readonly forMs: number }
  | { readonly do: 'freeze'; readonly atMs: number; readonly worker: number; readonly forMs: number };

export interface CrashProgram {
  readonly setting: Setting;
  readonly steps: readonly Step[];
}

export type Happening = Extract<Step, { readonly do: 'start' | 'cancel' | 'resume' | 'signal' }>;

export function happeningsOf({ steps }: CrashProgram, id?: string): readonly Happening[] {
  return steps.filter((step): step is Happening => 'id' in step && (id === undefined || step.id === id));
}

/** What is built in to show that the checks see it. */
export const MISTAKES = [
  'forgets-results',
  'accepts-any-epoch',
  'swaps-compensations',
  'skips-a-compensation',
  'wakes-nobody',
  'acts-outside-steps',
  'answers-wrongly',
  'renames-messages',
] as const;
export type Mistake = (typeof MISTAKES)[number];
