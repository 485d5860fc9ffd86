// A lock between processes: a file that holds the id of who has it. Two test runs on one machine must not download or
// compile into the same place at once.
import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from './processes.js';

const LOOK_AGAIN_MS = 200;

/** Runs `work` while no other process holds the lock. A lock whose owner is gone is taken over. */
export async function withFileLock<T>(path: string, limitMs: number, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  const giveUpAt = Date.now() + limitMs;
  while (!(await take(path))) {
    if (Date.now() > giveUpAt) throw new Error(`the lock ${path} was not free within ${limitMs} ms`);
    await sleep(LOOK_AGAIN_MS);
  }
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function take(path: string): Promise<boolean> {
  // Linked into its place whole: a lock never exists without the id of its owner.
  const written = `${path}.${randomUUID()}`;
  await writeFile(written, String(process.pid));
  try {
    await link(written, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(written, { force: true });
  }
  const owner = Number(await readFile(path, 'utf8').catch(() => ''));
  if (owner > 0 && !isAlive(owner)) await rm(path, { force: true });
  return false;
}
