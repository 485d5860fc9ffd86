// The promise of the store in a file, against a real process that dies by SIGKILL in the middle of its writes.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileAttemptStore } from 'pulsework/file';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ROOT } from '../../architecture/source-files.js';
import { bundledProgram } from '../../support/bundled-program.js';

let folder: string;
let path: string;
/** Where the process tells of its steps. */
let told: string;
let child: ChildProcess | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-kill-'));
  path = join(folder, 'attempts.log');
  told = join(folder, 'told');
});

afterEach(() => {
  child?.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** Starts the process and resolves when it has made `steps` steps; it goes on. */
async function churningProcess(steps: number): Promise<ChildProcess> {
  const run = await bundledProgram('test/unit/stores/churning-process.ts');
  const started = spawn(process.execPath, [...run, path, told, String(steps)], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child = started;
  const ended = once(started, 'exit').then(([code]) => Promise.reject(new Error(`it ended by itself with ${code}`)));
  await Promise.race([once(started.stdout, 'data'), ended]);
  ended.catch(() => undefined);
  return started;
}

async function kill(killed: ChildProcess): Promise<void> {
  const exited = once(killed, 'exit');
  killed.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
}

// Different lengths, so that the death comes at different places, also after the file was written anew.
it.each([20, 30_000])('after %i steps: what ran when the process died is known to the next one', async (steps) => {
  await kill(await churningProcess(steps));

  const running = new Set<string>();
  for (const line of readFileSync(told, 'utf8').split('\n').slice(0, -1)) {
    const [word, key = ''] = line.split(' ');
    if (word === 'runs') running.add(key);
    else running.delete(key);
  }
  const store = fileAttemptStore({ path });
  await store.open();
  const found = await Promise.all([...running].map(async (key) => ({ key, known: await store.find(key) })));
  await store.close();

  expect(running.size).toBeGreaterThanOrEqual(8);
  const held = { attempts: 2, notBeforeMs: undefined, suspect: true, deaths: 0 };
  expect(found.filter(({ key }) => key.startsWith('held'))).toEqual(
    Array.from({ length: 8 }, (_, lane) => ({ key: `held-${lane}`, known: held })),
  );
  expect(found.filter(({ known }) => known?.suspect !== true)).toEqual([]);
});

it('a process that lives keeps the file to itself; once it was killed it is taken over', async () => {
  const holder = await churningProcess(20);
  await expect(fileAttemptStore({ path }).open()).rejects.toMatchObject({
    code: 'STORE_LOCKED',
    message: expect.stringContaining(`process ${holder.pid} has it open`) as string,
  });
  await kill(holder);

  const store = fileAttemptStore({ path });
  expect((await store.open()).suspects).toBeGreaterThanOrEqual(8);
  await store.close();
});
