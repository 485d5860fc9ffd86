// What `npm run check` adds to the tests: format, lint, build and what the package holds. One after the other, beside the
// tests, which wait more than they work.
import { runStep } from './step.mjs';

const CHECKS = [
  ['format', ['oxfmt', '--check']],
  ['lint', ['oxlint']],
  ['build', ['node', 'test/support/build.mjs']],
  ['publint', ['publint', '--strict']],
  ['attw', ['attw', '--pack', '--profile', 'esm-only', '--no-emoji', '--no-color']],
];

/** All of them, so that one run shows all that is wrong. @returns {Promise<string[]>} the names of those that failed */
export async function runChecks() {
  /** @type {string[]} */
  const failed = [];
  for (const [title, command] of CHECKS) if (!(await runStep(title, command))) failed.push(title);
  return failed;
}
