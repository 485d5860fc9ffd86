// One process at a time on a file. Each contender first leaves a file with its own name beside it and then looks for those
// of others: of two that come together at least one sees the other, so never do two hold it. That of a dead process
// is removed. An advisory lock of the system would be simpler; Node has none.
import { readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { PulseworkError } from '../../core/errors.js';
import type { ProcessTable } from '../../ports/process-table.js';

/** Paths that this process holds: its own id in a lock file alone may be that of a dead one, as ids come again. */
const heldHere = new Set<string>();

export interface FileLock {
  /** The locked file, with links in its folder resolved. */
  readonly path: string;
  release(): Promise<void>;
}

/** @throws PulseworkError STORE_LOCKED, and what the file system throws. */
export async function lockFile(
  given: string,
  processes: ProcessTable,
  takeOverFromOtherHosts: boolean,
): Promise<FileLock> {
  const path = join(await realpath(dirname(resolve(given))), basename(given));
  if (heldHere.has(path)) throw locked(path, 'this process has it open already; share that store');
  heldHere.add(path);
  const own = `${path}.lock-${processes.host}-${processes.processId}`;
  const release = async (): Promise<void> => {
    heldHere.delete(path);
    await rm(own, { force: true });
  };
  try {
    await writeFile(own, `process ${processes.processId} on ${processes.host}\n`);
    for (const other of await otherLocks(path, own)) {
      const holder = holderOf(other, path, processes, takeOverFromOtherHosts);
      if (holder !== undefined) throw locked(path, holder);
      await rm(other, { force: true });
    }
  } catch (error) {
    await release();
    throw error;
  }
  return { path, release };
}

async function otherLocks(path: string, own: string): Promise<string[]> {
  const folder = dirname(path);
  const names = await readdir(folder);
  return names
    .filter((name) => name.startsWith(`${basename(path)}.lock-`))
    .map((name) => join(folder, name))
    .filter((lock) => lock !== own);
}

/** Who has it, for people; undefined when nobody does any more. */
function holderOf(
  lock: string,
  path: string,
  processes: ProcessTable,
  takeOverFromOtherHosts: boolean,
): string | undefined {
  const match = /^(.*)-(\d+)$/.exec(lock.slice(`${path}.lock-`.length));
  const [host, processId] = [match?.[1] ?? 'unknown', Number(match?.[2] ?? 0)];
  if (host === processes.host)
    return processes.isAlive(processId) ? `process ${processId} has it open; close it there first` : undefined;
  if (takeOverFromOtherHosts) return undefined;
  return `process ${processId} on host ${host} had it open; if that host is gone, delete ${lock} or set takeOverFromOtherHosts`;
}

function locked(path: string, holder: string): PulseworkError {
  return new PulseworkError('STORE_LOCKED', `attempt store ${JSON.stringify(path)}: ${holder}`);
}
