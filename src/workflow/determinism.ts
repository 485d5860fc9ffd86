// What is done about a method that uses what differs in each replay, such as the time.
import type { GlobalGuard, GlobalUse } from '../ports/global-guard.js';
import type { Logger } from '../ports/logger.js';

export type DeterminismGuard = 'off' | 'warn' | 'block';

export const DETERMINISM_GUARDS: readonly DeterminismGuard[] = ['off', 'warn', 'block'];

/** Runs a method, watched. @param refuse stops the workflow with a sentence that says why */
export type MethodWatch = <T>(refuse: (sentence: string) => void, run: () => T) => T;

/** How many different uses are told of by `warn`. */
const MAX_WARNINGS = 100;

/** @returns undefined where nothing is watched */
export function methodWatch(
  kind: DeterminismGuard,
  guard: GlobalGuard,
  logger: Pick<Logger, 'warn'>,
): ((workflow: string) => MethodWatch) | undefined {
  if (kind === 'off') return undefined;
  if (kind === 'block') return () => (refuse, run) => guard.within((use) => refuse(sentenceOf(use)), run);
  const told = new Set<string>();
  return (workflow) => (_refuse, run) =>
    guard.within((use) => {
      const text = `${workflow} ${use.what} ${use.place ?? ''}`;
      if (told.has(text) || told.size >= MAX_WARNINGS) return;
      told.add(text);
      logger.warn('workflow method uses what differs in each replay', { workflow, reason: sentenceOf(use) });
    }, run);
}

function sentenceOf({ what, instead, place }: GlobalUse): string {
  const where = place === undefined ? '' : ` (${place})`;
  return `the method called ${what}${where}, which differs in each replay; use ${instead}`;
}
