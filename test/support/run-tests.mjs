// `npm test`: the type check (type tests included), then all tests. Output ends with vitest's summary and one line,
// `N passed, N failed, N skipped`. `npm test -- NAME` runs the test files whose path contains NAME.
// With PULSEWORK_CHECK=1, which `npm run check` and the gate set, the other checks run beside the tests and count as well.
// Integration tests run on PULSAR_URL, on the broker of `npm run pulsar:up`, or on one that is started for the run where
// Java and Maven are found; else they are skipped, or fail with PULSEWORK_REQUIRE_BROKER=1. Those of PostgreSQL run on
// POSTGRES_URL or on a server that is started for the run where its binaries are found, and PULSEWORK_REQUIRE_POSTGRES=1 is theirs.
import process from 'node:process';
import { parseCLI, startVitest } from 'vitest/node';
import { runChecks } from './checks.mjs';
import { ROOT, TYPE_CHECK, runStep } from './step.mjs';
import { SummaryReporter } from './summary-reporter.mjs';

process.chdir(ROOT);
const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)]);
const wholeSuite = process.argv.length === 2;

const typesHold = await runStep('types', TYPE_CHECK);
const checking = process.env.PULSEWORK_CHECK === '1' ? runChecks() : [];
const summary = new SummaryReporter();
await startVitest('test', filter, { ...options, watch: false, reporters: ['default', summary] });

const problems = summary.problems({ wholeSuite });
if (!typesHold) problems.push('the type check failed: see the top of this output');
for (const name of await checking) problems.push(`${name} failed: see where it ended in this output`);
const skips = ['no broker', 'no postgres'].reduce(oneForAllWithout, summary.skipLines());
const failures = [...summary.failureLines(), ...problems.map((problem) => `failed: ${problem}`)];
for (const line of [...skips, ...failures]) console.log(line);

// What fails a run without being a test counts as a failed one: the last line alone must tell whether all is well.
const { passed, failed, skipped } = summary.counts;
console.log(`${passed} passed, ${failed + problems.length} failed, ${skipped} skipped`);
if (problems.length > 0 || failed > 0) process.exitCode = 1;

/** Whatever needs a server that is not there is skipped for one reason: one line tells it. */
function oneForAllWithout(lines, missing) {
  const without = lines.filter((line) => line.includes(`: ${missing}: `));
  if (without.length < 2) return lines;
  const reason = without[0].split(`: ${missing}: `)[1];
  const told = `skipped: ${without.length} tests: ${missing}: ${reason}`;
  return [...lines.filter((line) => !without.includes(line)), told];
}
