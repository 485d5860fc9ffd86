// What a campaign is: one program of faults with a seed, run many times. A new one is a value of this kind in catalog.ts.

export interface Campaign {
  readonly name: string;
  /** What is done and what must hold, in one line for `--help`. */
  readonly says: string;
  readonly defaultRuns: number;
  /** How long one run lasts, where it lasts as long as one says with `--minutes`. */
  readonly defaultMinutes?: number | undefined;
  /** A run that takes longer hangs, which is a violation; beyond the minutes it lasts. @default 60 seconds */
  readonly runLimitMs?: number | undefined;
  /** How many runs go on at the same time; they are shown as they end. @default 1 */
  readonly atOnce?: number | undefined;
  /** Once before the first run. Gives why the campaign cannot run on this machine; undefined where it can. */
  setUp?(): Promise<string | undefined>;
  /** One run, of so many minutes where it lasts as long as one says; equal seeds do the same. Gives what did not hold, a sentence each. What it throws is a violation too. */
  run(seed: number, minutes: number): Promise<readonly string[]>;
  /** What the runs did together, for the end of the report, e.g. `913 connections lost`. */
  summary?(): string;
  /** Once after the last run, also when it failed. */
  tearDown?(): Promise<void>;
}

/** A run in which something did not hold. */
export interface ViolatedRun {
  readonly seed: number;
  readonly violations: readonly string[];
}

/** The one command that does a run again. */
export function replayCommand({ name }: Pick<Campaign, 'name'>, seed: number, minutes?: number): string {
  const lasting = minutes === undefined ? '' : ` --minutes ${minutes}`;
  return `npm run campaign -- ${name} --runs 1 --seed ${seed}${lasting}`;
}
