// Every example runs on the embedded broker, writes exactly what its expected-output.txt says and nothing on standard
// error. The first one is what `npm start` runs, so its ways of taking input, and of refusing it, are tried too.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runProgram } from '../support/run-node.js';
import type { ProgramOptions, ProgramRun } from '../support/run-node.js';
import { ROOT, repositoryFiles, textOf } from './source-files.js';

const names = readdirSync(join(ROOT, 'examples')).filter((name) => /^\d\d-/.test(name));
const FIRST = 'examples/01-first-handler/main.ts';
const orders = textOf('examples/01-first-handler/orders.ndjson').trimEnd().split('\n');

/** Whatever broker the tests of this run use, these examples use none. */
function runEmbedded(program: string, options: ProgramOptions = {}): Promise<ProgramRun> {
  return runProgram(program, { ...options, env: { PULSAR_URL: '' } });
}

it('each example has a number of its own', () => {
  expect(new Set(names.map((name) => name.slice(0, 2))).size).toBe(names.length);
  expect(names.length).toBeGreaterThanOrEqual(6);
});

/** test/postgres/examples.test.ts runs these. */
const needsPostgres = (name: string): boolean => name.endsWith('-postgres');

it.each(names.filter((name) => !needsPostgres(name)))(
  '%s writes what it says it writes',
  { timeout: 60_000 },
  async (name) => {
    const run = await runEmbedded(`examples/${name}/main.ts`);

    expect(run).toEqual({ stdout: textOf(`examples/${name}/expected-output.txt`), stderr: '', exit: 0 });
  },
);

it.each(names.filter(needsPostgres))('%s says in one line what it needs', { timeout: 60_000 }, async (name) => {
  const run = await runProgram(`examples/${name}/main.ts`, { env: { PULSAR_URL: '', POSTGRES_URL: '' } });

  const stderr = expect.stringMatching(/^this example needs a PostgreSQL: set POSTGRES_URL, .*\n$/) as string;
  expect(run).toEqual({ stdout: '', stderr, exit: 1 });
});

it.each(names)('%s has a README that says how to run it and what to try next', (name) => {
  const text = textOf(`examples/${name}/README.md`);

  const command = name.startsWith('01') ? 'npm start' : `npx tsx examples/${name}/main.ts`;
  expect(text).toContain(`\n${command}\n`);
  expect(text).toContain(`\nPULSAR_URL=pulsar://localhost:6650 ${command}\n`);
  expect(text).toMatch(/^## What it shows$/m);
  expect(text).toMatch(/^## Try next$/m);
});

it('the first example ships at least 200 orders, ASCII and not', () => {
  // oxlint-disable-next-line no-control-regex -- all of ASCII
  const isAscii = (line: string): boolean => /^[\x00-\x7f]*$/.test(line);

  expect(orders.length).toBeGreaterThanOrEqual(200);
  expect(orders.filter(isAscii).length).toBeGreaterThan(40);
  expect(orders.filter((line) => !isAscii(line)).length).toBeGreaterThan(50);
});

it('the first example takes standard input', { timeout: 60_000 }, async () => {
  const run = await runEmbedded(FIRST, { args: ['-'], input: `${orders.slice(0, 20).join('\n')}\n\nnot json` });

  expect(run.stdout).toContain('orders from standard input\n21 lines\n');
  expect(run.stdout).toMatch(/^orders handled {3}20$/m);
  expect(run.stdout).toMatch(/^ {4}line 22, attempt 1: payload is not valid json/m);
  expect(run.exit).toBe(0);
});

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  'the first example drains on %s, also while it waits for input',
  { timeout: 60_000 },
  async (name, exit) => {
    const run = await runEmbedded(FIRST, {
      args: ['-'],
      inputStaysOpen: true,
      signal: { name, after: 'orders from standard input' },
    });

    expect(run.stdout).toMatch(/^interrupted$/m);
    expect(run.stdout).toMatch(/^orders handled /m);
    expect(run).toMatchObject({ stderr: '', exit });
  },
);

it('examples say in one line that the broker cannot be used, and which', { timeout: 60_000 }, async () => {
  const PULSAR_URL = 'pulsar://127.0.0.1:1';
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-broker-'));
  const program = join(folder, 'main.mts');
  const broker = JSON.stringify(join(ROOT, 'examples/broker.ts'));
  // As a start ends that found nobody there, without the half minute for which it looks.
  writeFileSync(
    program,
    `import { PulseworkError } from 'pulsework';
     import { startFailed } from ${broker};
     await Promise.reject(new PulseworkError('START_FAILED', 'nobody is there')).catch(startFailed);`,
  );
  const run = await runProgram(program, { env: { PULSAR_URL }, tsconfig: join(ROOT, 'tsconfig.json') });
  rmSync(folder, { recursive: true });

  const stderr = `connecting to ${PULSAR_URL}\ncannot start on ${PULSAR_URL}: nobody is there\n`;
  expect(run).toEqual({ stdout: '', stderr, exit: 1 });
  // One whose main program only starts another has the start there.
  const startsSo = (name: string): boolean =>
    ['main.ts', 'service.ts'].some((file) => {
      const path = `examples/${name}/${file}`;
      return repositoryFiles.includes(path) && textOf(path).includes('.catch(startFailed)');
    });
  expect(names.filter((name) => !startsSo(name))).toEqual([]);
});

it.each([
  {
    what: 'a file that is not there',
    path: 'no-such-file.ndjson',
    says: /^cannot read no-such-file\.ndjson: ENOENT.*\n$/,
  },
  { what: 'a folder', path: 'examples', says: /^cannot read examples: it is not a file\n$/ },
])('the first example refuses $what in one line', { timeout: 60_000 }, async ({ path, says }) => {
  const run = await runEmbedded(FIRST, { args: [path] });

  expect(run.stderr).toMatch(says);
  expect(run).toMatchObject({ stdout: '', exit: 1 });
});
