// An interleaving as text: what a person reads in a report, and what can be pasted as a case that stays.
import type { Program } from './program.js';

/** A line for the setting, and one for each step. */
export function programText({ setting, steps }: Program): readonly string[] {
  return [
    `setting: ${JSON.stringify(setting)},`,
    'steps: [',
    ...steps.map((step) => `  ${JSON.stringify(step)},`),
    ']',
  ];
}
