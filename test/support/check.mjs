// `npm run check`: everything that must hold before a change is merged. All static steps run, so that one call shows
// all that is wrong; the tests come last, so that their count is the last line.
// `--without-tests` is for the gate, which calls the test command itself.
import { spawnSync } from 'node:child_process';
import process from 'node:process';
import { ROOT, TYPE_CHECK, runStep } from './step.mjs';

/** Lanes side by side, about as long as each other. Within a lane each may need the one before. */
const LANES = [
  [['types', TYPE_CHECK]],
  [['format', ['prettier', '--check', '--log-level', 'warn', '.']]],
  [
    ['lint', ['oxlint']],
    ['build', ['node', 'test/support/build.mjs']],
    ['publint', ['publint', '--strict']],
    ['attw', ['attw', '--pack', '--profile', 'esm-only', '--no-emoji', '--no-color']],
  ],
];

const failed = [];
async function runLane(steps) {
  for (const [title, command] of steps) if (!(await runStep(title, command))) failed.push(title);
}
await Promise.all(LANES.map(runLane));

if (failed.length > 0) {
  console.log(`failed: ${failed.join(', ')}`);
  process.exitCode = 1;
} else if (!process.argv.includes('--without-tests')) {
  const tests = spawnSync(process.execPath, ['test/support/run-tests.mjs'], { cwd: ROOT, stdio: 'inherit' });
  process.exitCode = tests.status ?? 1;
}
