// One program on the embedded broker and on a real one, step by step, until they differ or it ends.
import { differences, areConnected } from './comparison.js';
import type { Action } from './actions.js';
import { embeddedWorld } from './embedded-world.js';
import { programText, stepText } from './program-text.js';
import { ProgramRun } from './program-run.js';
import type { Observation } from './program-run.js';
import type { Program } from './program.js';
import type { SharedPulsar } from '../real-pulsar/shared-pulsar.js';
import { wireWorld } from './wire-world.js';

/** How long after the last step something may still come that must not. */
const AFTERWARDS_MS = 300;

export interface Difference {
  /** Where in the program, from 0. */
  readonly at: number;
  readonly found: readonly string[];
}

interface PerformedAction {
  readonly at: number;
  readonly action: Action;
  readonly seen: Observation;
}

/** @param topic full name, on both: Failover's choice goes by it. @returns undefined when both gave the same. */
export async function differenceOf(
  program: Program,
  pulsar: SharedPulsar,
  patienceMs: number,
): Promise<Difference | undefined> {
  const topic = pulsar.newTopic('differential');
  const performed = await onEmbedded(program, topic);
  try {
    return await onPulsar(program, performed, { pulsar, topic, patienceMs });
  } finally {
    await pulsar.admin.deleteTopic(topic).catch(() => undefined);
  }
}

/** What every step that can mean something came to. */
export async function onEmbedded(program: Program, topic: string): Promise<readonly PerformedAction[]> {
  const world = await embeddedWorld(topic);
  const run = new ProgramRun(program, world, topic);
  const performed: PerformedAction[] = [];
  for (const [at, step] of program.steps.entries()) {
    const action = run.actionFor(step);
    if (action !== undefined) performed.push({ at, action, seen: await run.perform(action) });
  }
  await world.close();
  return performed;
}

async function onPulsar(
  program: Program,
  performed: readonly PerformedAction[],
  place: { readonly pulsar: SharedPulsar; readonly topic: string; readonly patienceMs: number },
): Promise<Difference | undefined> {
  const world = await wireWorld(place.pulsar, place.topic, place.patienceMs);
  const run = new ProgramRun(program, world, place.topic);
  try {
    for (const { at, action, seen } of performed) {
      const differ = (actual: Observation): readonly string[] => differences(action, seen, actual);
      const matches = (actual: Observation): boolean => differ(actual).length === 0 && areConnected(seen, actual);
      const actual = await run.perform(action, { seen, matches });
      const found = differ(actual);
      if (found.length > 0) return { at, found };
    }
    const last = performed.at(-1);
    if (last === undefined) return undefined;
    await world.pause(AFTERWARDS_MS);
    const found = differences(last.action, last.seen, await run.observe());
    return found.length > 0 ? { at: last.at, found: found.map((text) => `afterwards, ${text}`) } : undefined;
  } finally {
    await world.close();
  }
}

/** The lines of a report. */
export function differenceText(program: Program, { at, found }: Difference): readonly string[] {
  return [`${stepText(program.steps[at]!)}: ${found.join('; ')}`, `the program: ${programText(program)}`];
}
