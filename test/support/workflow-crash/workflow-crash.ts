// One run of the workflow crash campaign: a program, done and checked, and told as small as it still goes wrong.
import { fewerSteps, smallest, usualSettings } from '../shrink.js';
import { violationsOf } from './checks.js';
import type { CountedBase } from './generator.js';
import { basePrograms } from './generator.js';
import type { Seen } from './office.js';
import { Office } from './office.js';
import type { CrashProgram, Mistake, Setting } from './program.js';

export interface CrashRun {
  readonly seen: Seen;
  readonly violations: readonly string[];
}

export async function runCrash(program: CrashProgram, mistake?: Mistake): Promise<CrashRun> {
  const seen = await new Office(program, mistake).run();
  return { seen, violations: violationsOf(program, seen) };
}

/** Runs the base programs, in which nothing may be violated, to count their calls. */
export async function countedBases(): Promise<readonly CountedBase[]> {
  const bases: CountedBase[] = [];
  for (const program of basePrograms()) {
    const { seen, violations } = await runCrash(program);
    if (violations.length > 0) throw new Error(`a program without a fault: ${violations.join('; ')}`);
    bases.push({ program, calls: seen.calls });
  }
  return bases;
}

const USUAL: Partial<Setting> = { mood: 'calm', workers: 1, keeps: false, refused: [], brokenUntilMs: 0 };
const MAX_TRIES = 300;

/** The violations, and the smallest program that still has some. */
export async function explained(program: CrashProgram, violations: readonly string[]): Promise<readonly string[]> {
  if (violations.length === 0) return [];
  const violates = async (smaller: CrashProgram): Promise<boolean> => (await runCrash(smaller)).violations.length > 0;
  const found = await smallest(program, smallerThan, violates, MAX_TRIES);
  const { violations: left } = await runCrash(found);
  return [...violations, `smallest: ${JSON.stringify(found)}`, ...left.map((each) => `  there: ${each}`)];
}

function* smallerThan(program: CrashProgram): Generator<CrashProgram> {
  for (const smaller of fewerSteps(program)) if (isComplete(smaller)) yield smaller;
  yield* usualSettings(program, USUAL);
}

/** Whatever happens to a workflow that was not started says nothing. */
function isComplete({ steps }: CrashProgram): boolean {
  const started = new Set(steps.flatMap((step) => (step.do === 'start' ? step.id : [])));
  return started.size > 0 && steps.every((step) => !('id' in step) || started.has(step.id));
}
