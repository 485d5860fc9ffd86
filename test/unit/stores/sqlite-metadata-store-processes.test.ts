// A metadata store in a SQLite file and several real processes: at once, one by one after deaths, and where writing ends.
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { MetadataStore } from 'pulsework/sqlite';
import { sqliteMetadataStore } from 'pulsework/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ROOT } from '../../architecture/source-files.js';
import { bundledProgram } from '../../support/bundled-program.js';

const PROGRAM = 'test/unit/stores/metadata-process.ts';
const isRoot = process.getuid?.() === 0;
/** A user that may nothing. */
const NOBODY = 65_534;

let folder: string;
let path: string;
const children: ChildProcess[] = [];
const stores: MetadataStore[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pulsework-metadata-'));
  path = join(folder, 'store.db');
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const store of stores.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

async function opened(options: { readonly exclusive?: boolean; readonly pollIntervalMs?: number } = {}) {
  const store = sqliteMetadataStore({ path, busyTimeoutMs: 2_000, ...options });
  stores.push(store);
  await store.open();
  return store;
}

/** Resolves with what it wrote first. */
async function started(...args: readonly string[]): Promise<ChildProcess> {
  const run = await bundledProgram(PROGRAM);
  const child = spawn(process.execPath, [...run, ...args], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`it ended by itself with ${code}`)));
  await Promise.race([once(child.stdout, 'data'), ended]);
  ended.catch(() => undefined);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
}

/** What each line says that the process wrote until it ended. */
function lines(stdout: string): readonly Readonly<Record<string, unknown>>[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
}

it('two processes that raise one counter lose no step, and one hears of what the other appends', async () => {
  const mine = await opened({ pollIntervalMs: 5 });
  await mine.put('/counter', new TextEncoder().encode('0'));
  let hear: () => void = () => undefined;
  const heard = new Promise<void>((resolve) => (hear = resolve));
  await mine.watch('/raised', hear);
  const child = await started('raise', path, '150');
  for (let done = 0; done < 150;) {
    const counter = await mine.get('/counter');
    const next = new TextEncoder().encode(String(Number(new TextDecoder().decode(counter?.value)) + 1));
    done += await mine.put('/counter', next, { expectedVersion: counter?.version }).then(
      () => 1,
      () => 0,
    );
  }
  await heard;

  expect(new TextDecoder().decode((await mine.get('/counter'))?.value)).toBe('300');
  expect(await mine.scan({ from: '/raised-' })).toHaveLength(1);
  if (child.exitCode === null) await once(child, 'exit');
});

it('a process that has the file for itself keeps others out until it dies', async () => {
  const holder = await started('hold', path);
  const others = [false, true].map((exclusive) => sqliteMetadataStore({ path, exclusive, busyTimeoutMs: 50 }));
  for (const other of others)
    await expect(other.open()).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining(path) as string,
    });
  await kill(holder);

  for (const other of others) {
    await other.open();
    await other.put('/a', new Uint8Array());
    await other.close();
  }
});

it('who has it for itself keeps another process out until it closes, and gets it only when nobody has it', async () => {
  const run = await bundledProgram(PROGRAM);
  const tryToOpen = (): string =>
    spawnSync(process.execPath, [...run, 'open', path], { cwd: ROOT, encoding: 'utf8' }).stdout;
  const mine = await opened({ exclusive: true });
  await mine.put('/a', new Uint8Array());
  expect(lines(tryToOpen())[0]).toMatchObject({ code: 'STORE_LOCKED' });
  await mine.close();
  expect(tryToOpen()).toBe('written\n');

  const shared = await opened();
  await expect(sqliteMetadataStore({ path, exclusive: true, busyTimeoutMs: 50 }).open()).rejects.toMatchObject({
    code: 'STORE_LOCKED',
  });
  await shared.put('/b', new Uint8Array());
});

/** What was told, by path: its version, or that it is gone, or that it may be either. */
function toldOf(file: string): ReadonlyMap<string, number | 'gone' | 'going'> {
  const told = new Map<string, number | 'gone' | 'going'>();
  for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
    const [word, at = '', version] = line.split(' ');
    told.set(at, word === 'is' ? Number(version) : word === 'gone' ? 'gone' : 'going');
  }
  return told;
}

it(
  'whatever was confirmed is there after each of five kills, and nothing that was deleted',
  { timeout: 60_000 },
  async () => {
    const told = join(folder, 'told');
    for (const [run, after] of [40, 300, 1, 800, 130].entries()) {
      await kill(await started('churn', path, told, String(run), String(after)));

      const store = await opened({ exclusive: true });
      const found = new Map((await store.scan({})).map((entry) => [entry.path, entry.version]));
      const indexed = await store.scanIndex({ index: 'all' });
      await store.close();
      const expected = toldOf(told);
      const wrong = [...expected].filter(([at, is]) => {
        if (is === 'going') return false;
        return is === 'gone' ? found.has(at) : found.get(at) !== is;
      });
      expect(wrong).toEqual([]);
      expect(expected.size).toBeGreaterThanOrEqual(after / 2);
      // The index and the entries tell of the same.
      const lanes = [...found.keys()].filter((at) => at.startsWith('/run-')).sort();
      expect(indexed.map(({ key }) => key).sort()).toEqual(lanes);
      expect(new Set(found.values()).size).toBe(found.size);
    }
  },
);

describe('where writing ends', () => {
  /** Runs the program under another user or in a world of its own; gives what it wrote. */
  async function run(wrap: readonly string[], user: number | undefined, ...args: readonly string[]): Promise<string> {
    const [command, ...rest] = [...wrap, process.execPath, ...(await bundledProgram(PROGRAM)), ...args];
    const { stdout, stderr } = spawnSync(command ?? '', rest, {
      cwd: ROOT,
      encoding: 'utf8',
      ...(user !== undefined && { uid: user, gid: user }),
    });
    if (stdout === '') throw new Error(`it wrote nothing but ${stderr}`);
    return stdout;
  }

  it('a read-only folder and a read-only file are refused by name', async () => {
    const user = isRoot ? NOBODY : undefined;
    chmodSync(folder, 0o555);
    const [inFolder] = lines(await run([], user, 'open', path));
    expect(inFolder).toMatchObject({ code: 'STORE_NOT_WRITABLE', message: expect.stringContaining(path) as string });

    chmodSync(folder, 0o777);
    const mine = await opened();
    await mine.put('/confirmed', new Uint8Array());
    await mine.close();
    chmodSync(path, 0o444);
    const [inFile] = lines(await run([], user, 'open', path));
    expect(inFile).toMatchObject({ code: 'STORE_NOT_WRITABLE' });

    chmodSync(path, 0o600);
    expect(await (await opened()).get('/confirmed')).toBeDefined();
  });

  it('a file that may not grow further loses nothing that was confirmed', async () => {
    // In blocks of 512 or 1,024 bytes, by the shell.
    const limited = ['sh', '-c', 'ulimit -f 600; exec "$@"', 'sh'];
    const [refused] = lines(await run(limited, undefined, 'fill', path, 'limited'));

    // SQLite tells it from a full disk, as a fault of the disk.
    expect(refused?.['code']).toBe('STORE_FAILED');
    expect(refused?.['confirmed']).toBeGreaterThan(5);
    const kept = await (await opened()).scan({ from: '/fill/limited/', to: '/fill/limited0' });
    expect(kept).toHaveLength(Number(refused?.['confirmed']));
  });

  const disk = (): string => join(folder, 'disk');
  /** A small disk that is there only for this command and goes with it. */
  const onSmallDisk = (script: string): readonly string[] => [
    'unshare',
    '-m',
    'sh',
    '-c',
    `mount -t tmpfs -o size=600k tmpfs "${disk()}" && ${script}`,
    'sh',
  ];
  const canMount =
    isRoot && spawnSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs -o size=64k tmpfs /mnt']).status === 0;

  it('a full disk is told as such, and what was confirmed is still read, also when opened again', async ({ skip }) => {
    skip(!canMount, 'a small disk can be mounted by root only, where the machine lets it');
    mkdirSync(disk());
    const store = join(disk(), 'store.db');
    const full = await run(onSmallDisk('"$@" first && "$@" second'), undefined, 'fill', store);
    const [first, keptFirst, second, keptAgain] = lines(full);

    expect(first).toMatchObject({ code: 'STORE_FULL', message: expect.stringContaining('make room') as string });
    expect(first?.['confirmed']).toBeGreaterThan(5);
    expect(keptFirst).toEqual({ kept: first?.['confirmed'] });
    expect(second).toMatchObject({ code: 'STORE_FULL' });
    expect(keptAgain?.['kept']).toBe(Number(first?.['confirmed']) + Number(second?.['confirmed']));
  });
});
