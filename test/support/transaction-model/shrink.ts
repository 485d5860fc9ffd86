// Makes a program that violates a rule as small as it still violates it: fewer steps, and settings that are the usual ones.
import { fewerSteps, smallest, usualSettings } from '../shrink.js';
import type { Program, Setting } from './program.js';

/** What a setting is when it has nothing to do with a violation. */
const USUAL: Partial<Setting> = { notices: 'all', latency: 0, maxLedgerEntries: 10_000, hasSegment: false };

/** @param limit how many smaller ones are tried at most. */
export function shrunk(
  program: Program,
  violates: (smaller: Program) => Promise<boolean>,
  limit: number,
): Promise<Program> {
  return smallest(program, smallerThan, violates, limit);
}

/** Those that leave out most come first. */
function* smallerThan(program: Program): Generator<Program> {
  const { setting, steps } = program;
  yield* fewerSteps(program);
  if (setting.topics.length > 1) yield { setting: { ...setting, topics: setting.topics.slice(0, -1) }, steps };
  for (const [at, types] of setting.topics.entries())
    if (types.length > 1) yield { setting: { ...setting, topics: setting.topics.with(at, types.slice(0, -1)) }, steps };
  yield* usualSettings(program, USUAL);
  for (const [at, step] of steps.entries()) {
    if (step.ticks !== undefined) yield { setting, steps: steps.with(at, { ...step, ticks: undefined }) };
    if (step.do === 'publish' && step.batch > 0) yield { setting, steps: steps.with(at, { ...step, batch: 0 }) };
    if ('at' in step && step.at > 0) yield { setting, steps: steps.with(at, { ...step, at: 0 }) };
  }
}
