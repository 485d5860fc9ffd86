// One step of the gate: a command whose output is shown only when it fails, and a line with its duration.
import { Buffer } from 'node:buffer';
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The compiler by its path: the package that tests read syntax trees with (`typescript-6`) has a `tsc` too. */
const COMPILER = ['node', 'node_modules/typescript/bin/tsc'];

/** The type check, type tests and examples included. What it found is kept, so that a second run is quick. */
export const TYPE_CHECK = [
  ...COMPILER,
  '-p',
  'tsconfig.json',
  '--incremental',
  '--tsBuildInfoFile',
  'types.tsbuildinfo',
];
export const EMIT = [...COMPILER, '-p', 'tsconfig.build.json', '--noCheck'];

/** Runs a tool that this package has installed, or `node`. Gives whether it ended with exit code 0. */
export async function runStep(title, command) {
  const startedMs = performance.now();
  const { ok, output } = await run(command);
  const took = `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
  console.log(`${ok ? 'ok    ' : 'FAILED'}  ${title.padEnd(10)} ${took}`);
  if (!ok) console.log(`\n${output.trimEnd()}\n\nThe command was: ${command.join(' ')}\n`);
  return ok;
}

function run([tool, ...args]) {
  return new Promise((resolve) => {
    const chunks = [];
    const child = spawn(tool, args, {
      cwd: ROOT,
      env: { ...process.env, PATH: `${join(ROOT, 'node_modules', '.bin')}${delimiter}${process.env.PATH ?? ''}` },
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32',
    });
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr.on('data', (chunk) => chunks.push(chunk));
    child.on('error', (error) => resolve({ ok: false, output: String(error) }));
    child.on('close', (code) => resolve({ ok: code === 0, output: Buffer.concat(chunks).toString() }));
  });
}
