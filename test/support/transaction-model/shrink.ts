// Makes a program that violates a rule as small as it still violates it: fewer steps, and settings that are the usual ones.
import type { Program, Setting } from './program.js';

/** What a setting is when it has nothing to do with a violation. */
const USUAL: Partial<Setting> = { notices: 'all', latency: 0, maxLedgerEntries: 10_000, hasSegment: false };

/** @param limit how many smaller ones are tried at most. */
export async function shrunk(
  program: Program,
  violates: (smaller: Program) => Promise<boolean>,
  limit: number,
): Promise<Program> {
  let smallest = program;
  let left = limit;
  for (let found = true; found;) {
    found = false;
    for (const smaller of smallerThan(smallest)) {
      if (left-- <= 0) return smallest;
      if (!(await violates(smaller))) continue;
      smallest = smaller;
      found = true;
      break;
    }
  }
  return smallest;
}

/** Those that leave out most come first. */
function* smallerThan(program: Program): Generator<Program> {
  const { setting, steps } = program;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = steps.length - size; from > -size; from -= size)
      yield { setting, steps: [...steps.slice(0, Math.max(0, from)), ...steps.slice(from + size)] };
  if (setting.topics.length > 1) yield { setting: { ...setting, topics: setting.topics.slice(0, -1) }, steps };
  for (const [at, types] of setting.topics.entries())
    if (types.length > 1) yield { setting: { ...setting, topics: setting.topics.with(at, types.slice(0, -1)) }, steps };
  for (const [name, usual] of Object.entries(USUAL))
    if (setting[name as keyof Setting] !== usual) yield { setting: { ...setting, [name]: usual }, steps };
  for (const [at, step] of steps.entries()) {
    if (step.ticks !== undefined) yield { setting, steps: steps.with(at, { ...step, ticks: undefined }) };
    if (step.do === 'publish' && step.batch > 0) yield { setting, steps: steps.with(at, { ...step, batch: 0 }) };
    if ('at' in step && step.at > 0) yield { setting, steps: steps.with(at, { ...step, at: 0 }) };
  }
}
