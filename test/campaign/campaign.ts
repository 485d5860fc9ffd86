// What a campaign is: one program of faults with a seed, run many times. A new one is a value of this kind in catalog.ts.

/** What was chosen of `Campaign.choices`, by option. */
export type Choices = Readonly<Record<string, string>>;

export interface Campaign {
  readonly name: string;
  /** What is done and what must hold, in one line for `--help`. */
  readonly says: string;
  readonly defaultRuns: number;
  /** How long one run lasts, where it lasts as long as one says with `--minutes`. */
  readonly defaultMinutes?: number | undefined;
  /** A run that takes longer hangs, which is a violation; beyond the minutes it lasts. @default 60 seconds */
  readonly runLimitMs?: number | undefined;
  /** Further options, and what each may be; the first unless another one is chosen, e.g. `--store postgres`. */
  readonly choices?: Readonly<Record<string, readonly string[]>> | undefined;
  /** How many runs go on at the same time; they are shown as they end. @default 1 */
  readonly atOnce?: number | undefined;
  /** Once before the first run. Gives why the campaign cannot run on this machine; undefined where it can. */
  setUp?(choices: Choices): Promise<string | undefined>;
  /** One run, of so many minutes where it lasts as long as one says; equal seeds do the same. Gives what did not hold, a sentence each. What it throws is a violation too. */
  run(seed: number, minutes: number, choices: Choices): Promise<readonly string[]>;
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
export function replayCommand(
  { name, choices: possible = {} }: Pick<Campaign, 'name' | 'choices'>,
  seed: number,
  minutes?: number,
  choices: Choices = {},
): string {
  const lasting = minutes === undefined ? '' : ` --minutes ${minutes}`;
  const chosen = Object.entries(choices).flatMap(([option, choice]) =>
    choice === possible[option]?.[0] ? [] : ` --${option} ${choice}`,
  );
  return `npm run campaign -- ${name} --runs 1 --seed ${seed}${lasting}${chosen.join('')}`;
}
