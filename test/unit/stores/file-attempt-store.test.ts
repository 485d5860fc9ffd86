// What only the store in a file has: its text, its writes, its lock, and disks that fail.
import { spawnSync } from 'node:child_process';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, mkdtemp, open, readFile, readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttemptStore } from 'pulsework';
import type { FileAttemptStoreOptions } from 'pulsework/file';
import { fileAttemptStore } from 'pulsework/file';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

let folder: string;
let path: string;
const stores: AttemptStore[] = [];

function newStore(options: Partial<FileAttemptStoreOptions> = {}): AttemptStore {
  const store = fileAttemptStore({ path, ...options });
  stores.push(store);
  return store;
}

async function openStore(options?: Partial<FileAttemptStoreOptions>): Promise<AttemptStore> {
  const store = newStore(options);
  await store.open();
  return store;
}

/** Closes and opens again: what is known then was in the file. */
async function reopened(store: AttemptStore): Promise<AttemptStore> {
  await store.close();
  return openStore();
}

/** All file handles of this process share it. */
async function handlePrototype(): Promise<FileHandle> {
  const handle = await open(join(folder, 'any'), 'w');
  await handle.close();
  return Object.getPrototypeOf(handle) as FileHandle;
}

type Write = (...args: unknown[]) => Promise<{ readonly bytesWritten: number }>;

function failure(errno: string): Error {
  return Object.assign(new Error(`${errno}: played`), { code: errno });
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pulsework-file-store-'));
  path = join(folder, 'attempts.log');
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const store of stores.splice(0)) await store.close();
  await rm(folder, { recursive: true });
});

describe('the text of the file', () => {
  it('names its format and version, and is the same as version 1 always was', async () => {
    const store = await openStore();
    await store.begin('a', { attempt: 3, alone: false });
    await store.begin('b"', { attempt: 1, alone: true });
    await store.end('a', { attempts: 3, notBeforeMs: 1_700_000_000_000.2 });
    await store.delete('a');

    expect(await readFile(path, 'utf8')).toBe(
      'pulsework-attempts 1\nopen 2 0 - "a"\nalone 0 0 - "b\\""\nclosed 3 0 1700000000001 "a"\ndeleted "a"\n',
    );
  });

  it('is written anew at opening, with the verdict on what a dead process left', async () => {
    await writeFile(path, 'pulsework-attempts 1\nopen 2 0 - "a"\nalone 0 0 - "b"\nclosed 1 0 - "c"\ndeleted "c"\n');
    await openStore();

    expect(await readFile(path, 'utf8')).toBe('pulsework-attempts 1\nsuspect 2 0 - "a"\nsuspect 1 1 - "b"\n');
  });

  it.each(['open 5 0', 'closed 5 0 - "b', '\0\0\0\0'])('a last line torn like %j is left out', async (torn) => {
    await writeFile(path, `pulsework-attempts 1\nclosed 2 0 - "a"\n${torn}`);
    const store = await openStore();

    expect(await store.find('a')).toMatchObject({ attempts: 2 });
    expect(await store.find('b')).toBeUndefined();
    await store.end('b', { attempts: 1 });
    expect(await (await reopened(store)).find('b')).toMatchObject({ attempts: 1 });
  });

  it.each(['open 5 0', 'wrong 1 0 - "b"', 'closed -1 0 - "b"', 'closed 1 0 - b', ''])(
    'a line %j that others follow is refused by its number',
    async (line) => {
      await writeFile(path, `pulsework-attempts 1\nclosed 2 0 - "a"\n${line}\nclosed 2 0 - "c"\n`);

      await expect(newStore().open()).rejects.toMatchObject({
        code: 'STORE_FORMAT_UNKNOWN',
        message: expect.stringContaining('its line 3 cannot be read') as string,
      });
    },
  );

  it('a newer version is refused by its number, and left as it is', async () => {
    const text = 'pulsework-attempts 2\nsomething new\n';
    await writeFile(path, text);

    await expect(newStore().open()).rejects.toMatchObject({
      code: 'STORE_FORMAT_UNKNOWN',
      message: expect.stringContaining('it has version 2, this program reads version 1') as string,
    });
    expect(await readFile(path, 'utf8')).toBe(text);
  });

  it('a file of something else is refused and left as it is', async () => {
    await writeFile(path, 'root:x:0:0\n');

    await expect(newStore().open()).rejects.toMatchObject({ code: 'STORE_FORMAT_UNKNOWN' });
    expect(await readFile(path, 'utf8')).toBe('root:x:0:0\n');
  });
});

describe('its writes', () => {
  it('what is begun together goes out in one write, and what comes meanwhile in the next', async () => {
    const store = await openStore();
    const write = vi.spyOn(await handlePrototype(), 'write');
    const begun = Array.from({ length: 64 }, (_, n) => store.begin(`key-${n}`, { attempt: 1, alone: false }));
    await vi.waitFor(() => expect(write).toHaveBeenCalledTimes(1));
    const later = Array.from({ length: 64 }, (_, n) => store.delete(`key-${n}`));
    await Promise.all([...begun, ...later]);

    expect(write).toHaveBeenCalledTimes(2);
  });

  it('a begin resolves only after its write', async () => {
    const store = await openStore();
    let letThrough: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (letThrough = resolve));
    const prototype = await handlePrototype();
    const write = Reflect.get(prototype, 'write') as Write;
    vi.spyOn(prototype, 'write').mockImplementation(async function (this: FileHandle, ...args: unknown[]) {
      await gate;
      return write.apply(this, args);
    } as never);
    let begun = false;
    const begin = store.begin('a', { attempt: 1, alone: false }).then(() => (begun = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toBe(false);
    letThrough();
    await begin;

    expect(await readFile(path, 'utf8')).toContain('open 0 0 - "a"\n');
  });

  it('stays small under any number of runs, and keeps what is still known', async () => {
    const store = await openStore();
    await store.end('waits', { attempts: 4 });
    for (let round = 0; round < 500; round++) {
      const keys = Array.from(
        { length: 64 },
        (_, n) => `persistent://public/default/orders\tbilling\t${round}:${n}:-1`,
      );
      await Promise.all(keys.map((key) => store.begin(key, { attempt: 1, alone: false })));
      await Promise.all(keys.map((key) => store.delete(key)));
    }

    expect((await stat(path)).size).toBeLessThan(2 ** 20);
    expect(await readdir(folder)).not.toContain('attempts.log.new');
    expect(await (await reopened(store)).find('waits')).toMatchObject({ attempts: 4 });
  });

  it('goes on in the old file where a new one cannot be written', async () => {
    const store = await openStore();
    await mkdir(`${path}.new`);
    for (let n = 0; n < 200; n++) {
      await Promise.all(Array.from({ length: 64 }, () => store.end('waits', { attempts: n })));
    }
    await rmdir(`${path}.new`);

    expect((await readFile(path, 'utf8')).split('\n').length).toBeGreaterThan(12_800);
    expect(await (await reopened(store)).find('waits')).toMatchObject({ attempts: 199 });
  });
});

describe('a disk that fails', () => {
  it('in the middle of a write: the call says so, has changed nothing, and nothing follows a torn line', async () => {
    const store = await openStore();
    await store.end('a', { attempts: 1 });
    const prototype = await handlePrototype();
    const write = Reflect.get(prototype, 'write') as Write;
    const spy = vi
      .spyOn(prototype, 'write')
      .mockImplementationOnce(function (this: FileHandle, ...[bytes, offset, , position]: unknown[]) {
        return write.call(this, bytes, offset, 7, position);
      } as never)
      .mockRejectedValueOnce(failure('ENOSPC'));

    await expect(
      Promise.all([store.begin('a', { attempt: 2, alone: false }), store.begin('b', { attempt: 1, alone: true })]),
    ).rejects.toMatchObject({ code: 'STORE_FULL', cause: { code: 'ENOSPC' } });
    expect(spy).toHaveBeenCalledTimes(2);
    expect(await store.find('a')).toMatchObject({ attempts: 1 });
    expect(await store.find('b')).toBeUndefined();
    await store.end('c', { attempts: 9 });
    expect(await readFile(path, 'utf8')).toBe('pulsework-attempts 1\nclosed 1 0 - "a"\nclosed 9 0 - "c"\n');
  });

  it('at a delete: the record stays, and the delete can be made again', async () => {
    const store = await openStore();
    await store.end('a', { attempts: 1 });
    vi.spyOn(await handlePrototype(), 'write').mockRejectedValueOnce(failure('EIO'));

    await expect(store.delete('a')).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(await store.find('a')).toMatchObject({ attempts: 1 });
    await store.delete('a');
    expect(await (await reopened(store)).find('a')).toBeUndefined();
  });

  it.each([
    ['ENOSPC', 'STORE_FULL'],
    ['EDQUOT', 'STORE_FULL'],
    ['EFBIG', 'STORE_FULL'],
    ['EROFS', 'STORE_NOT_WRITABLE'],
    ['EACCES', 'STORE_NOT_WRITABLE'],
    ['EIO', 'STORE_FAILED'],
  ])('%s is %s', async (errno, code) => {
    const store = await openStore();
    vi.spyOn(await handlePrototype(), 'write').mockRejectedValueOnce(failure(errno));

    await expect(store.end('a', { attempts: 1 })).rejects.toMatchObject({
      code,
      message: expect.stringContaining(path) as string,
    });
  });

  it('at opening: the lock is let go, and the file is as before', async () => {
    await writeFile(path, 'pulsework-attempts 1\nclosed 1 0 - "a"\n');
    vi.spyOn(await handlePrototype(), 'write').mockRejectedValueOnce(failure('ENOSPC'));

    await expect(newStore().open()).rejects.toMatchObject({ code: 'STORE_FULL' });
    expect(await readdir(folder)).toEqual(['any', 'attempts.log']);
    expect(await (await openStore()).find('a')).toMatchObject({ attempts: 1 });
  });

  it('a folder that is missing is not made on its own', async () => {
    path = join(folder, 'missing', 'attempts.log');

    await expect(newStore().open()).rejects.toMatchObject({ code: 'STORE_NOT_WRITABLE' });
    expect(await readdir(folder)).toEqual([]);
  });

  it('a path that is a folder is refused', async () => {
    path = folder;

    await expect(newStore().open()).rejects.toMatchObject({ code: 'STORE_NOT_WRITABLE' });
  });

  it('a folder that may not be written is refused', async ({ skip }) => {
    skip(process.platform !== 'linux', 'needs a folder that not even root may write to, such as /sys');
    path = '/sys/kernel/attempts.log';

    await expect(newStore().open()).rejects.toMatchObject({ code: 'STORE_NOT_WRITABLE' });
  });
});

describe('its lock', () => {
  /** The id of a process that lived a moment ago. */
  const deadProcess = (): number => spawnSync(process.execPath, ['-e', '']).pid;
  const locks = async (): Promise<string[]> => (await readdir(folder)).filter((name) => name.includes('.lock-'));

  it('is taken over from a dead process', async () => {
    await writeFile(`${path}.lock-${hostname()}-${deadProcess()}`, '');
    await openStore();

    expect(await locks()).toEqual([`attempts.log.lock-${hostname()}-${process.pid}`]);
  });

  it('is taken over from a dead process that had the id of this one, as in a container that starts again', async () => {
    await writeFile(`${path}.lock-${hostname()}-${process.pid}`, '');

    await expect(newStore().open()).resolves.toBeDefined();
  });

  it('of a living process is respected, and the error names it', async () => {
    await writeFile(`${path}.lock-${hostname()}-${process.ppid}`, '');

    await expect(newStore().open()).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining(`process ${process.ppid} has it open`) as string,
    });
    expect(await locks()).toEqual([`attempts.log.lock-${hostname()}-${process.ppid}`]);
  });

  it('of another host is respected unless that is allowed', async () => {
    await writeFile(`${path}.lock-pod-a-1`, '');

    await expect(newStore().open()).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining('host pod-a had it open') as string,
    });
    await expect(newStore({ takeOverFromOtherHosts: true }).open()).resolves.toBeDefined();
    expect(await locks()).toEqual([`attempts.log.lock-${hostname()}-${process.pid}`]);
  });

  it('is gone after the last close', async () => {
    const store = await openStore();
    await store.close();

    expect(await locks()).toEqual([]);
  });

  it('is one for all ways to write the path', async () => {
    await openStore();

    await expect(
      newStore({ path: join(folder, '..', folder.split('/').at(-1) ?? '', './attempts.log') }).open(),
    ).rejects.toMatchObject({ code: 'STORE_LOCKED' });
  });
});

describe('its options', () => {
  it('are all checked at once', () => {
    expect(() =>
      fileAttemptStore({ path: ' ', maxRecords: 0, takeOverFromOtherHosts: 'yes', pth: 1 } as never),
    ).toThrow(
      expect.objectContaining({
        problems: [
          'fileAttemptStore: unknown option "pth", did you mean "path"?',
          'fileAttemptStore: "path" must be a text that is not empty, got " "',
          'fileAttemptStore: "maxRecords" must be a positive integer, got 0',
          'fileAttemptStore: "takeOverFromOtherHosts" must be true or false, got "yes"',
        ],
      }) as Error,
    );
  });

  it('need a path', () => {
    expect(() => fileAttemptStore({} as never)).toThrow('"path" is missing; it must be the path of a file');
    expect(() => fileAttemptStore('a.log' as never)).toThrow(
      'must be an object such as { path: "a.log" }, got "a.log"',
    );
  });
});
