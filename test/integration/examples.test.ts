// The examples on a real broker: with PULSAR_URL each writes what it writes on the embedded one, and again the next time,
// although the broker keeps what the run before left there.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ROOT } from '../architecture/source-files.js';
import { runProgram } from '../support/run-node.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';

const names = readdirSync(join(ROOT, 'examples')).filter((name) => /^\d\d-/.test(name) && !name.endsWith('-postgres'));

/** Three times what two runs took on an overloaded machine. */
const RUNS_LIMIT_MS = 130_000;

/** The shared broker has none; `own-broker-transactions.test.ts` runs it on one that has. */
const NEEDS_TRANSACTIONS = '08-transactions';
const anywhere = names.filter((name) => name !== NEEDS_TRANSACTIONS);

test.for(anywhere)('%s writes the same on a real broker', { timeout: RUNS_LIMIT_MS }, async (name, { pulsar }) => {
  const stdout = readFileSync(join(ROOT, 'examples', name, 'expected-output.txt'), 'utf8');
  const env = { PULSAR_URL: pulsar.serviceUrl };
  const before = await exampleRuns(pulsar);

  const runs = [await runProgram(`examples/${name}/main.ts`, { env })];
  // What an earlier run has left there must not show: one of them says it for all, they share how topics are named.
  if (name === names[0]) runs.push(await runProgram(`examples/${name}/main.ts`, { env }));

  const stderr = `connecting to ${pulsar.serviceUrl}\n`;
  expect(runs).toEqual(runs.map(() => ({ stdout, stderr, exit: 0 })));
  const added = [...(await exampleRuns(pulsar))].filter((run) => !before.has(run));
  expect(added.length).toBeGreaterThanOrEqual(runs.length);
});

test(
  `${NEEDS_TRANSACTIONS} is refused at start, in one line, by a broker without transactions`,
  { timeout: RUNS_LIMIT_MS },
  async ({ pulsar }) => {
    const run = await runProgram(`examples/${NEEDS_TRANSACTIONS}/main.ts`, { env: { PULSAR_URL: pulsar.serviceUrl } });
    const [, refusal] = run.stderr.split('\n');

    expect(run).toMatchObject({ stdout: '', exit: 1 });
    expect(refusal).toContain(`cannot start on ${pulsar.serviceUrl}: handler "transactional-teller" cannot start`);
    expect(refusal).toContain('transactionCoordinatorEnabled=true');
  },
);

/** The runs that have left topics on the broker: the proof that it was used. */
async function exampleRuns(pulsar: SharedPulsar): Promise<ReadonlySet<string>> {
  const topics = (await pulsar.admin.call('GET', '/persistent/public/default')) as readonly string[];
  return new Set(topics.flatMap((topic) => /\/example-([0-9a-f-]{36})-/.exec(topic)?.[1] ?? []));
}
