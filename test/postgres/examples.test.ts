// The examples that need a PostgreSQL, on the one of the tests: what they write is what they say they write.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ROOT } from '../architecture/source-files.js';
import { test } from '../support/postgres/postgres-test.js';
import { runProgram } from '../support/run-node.js';

const names = readdirSync(join(ROOT, 'examples')).filter((name) => name.endsWith('-postgres'));

test.for(names)('%s writes what it says it writes', { timeout: 60_000 }, async (name, { postgres }) => {
  const env = { PULSAR_URL: '', POSTGRES_URL: postgres.url };
  const run = await runProgram(`examples/${name}/main.ts`, { env });

  const stdout = readFileSync(join(ROOT, 'examples', name, 'expected-output.txt'), 'utf8');
  expect(run).toEqual({ stdout, stderr: '', exit: 0 });
  const { rows } = await postgres.pool.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'example_%'`);
  expect(rows).toEqual([]);
});
