// The guard of globals: who is told, of what, and that everything else of the process is left alone.
import nodeCrypto, { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import type { GlobalUse } from '../../../src/ports/global-guard.js';
import { systemGlobalGuard } from '../../../src/system/global-guard.js';

let release: () => void = () => undefined;
afterEach(() => release());

async function usesOf(run: () => unknown): Promise<readonly GlobalUse[]> {
  const uses: GlobalUse[] = [];
  await systemGlobalGuard.within((use) => uses.push(use), run);
  return uses;
}

const CALLS: readonly [string, () => unknown, string][] = [
  ['Date.now()', () => Date.now(), 'flow.now()'],
  ['new Date()', () => new Date(), 'new Date(flow.now())'],
  ['Date()', () => Date(), 'new Date(flow.now())'],
  ['performance.now()', () => performance.now(), 'flow.now()'],
  ['Math.random()', () => Math.random(), 'flow.random()'],
  ['crypto.randomUUID()', () => crypto.randomUUID(), 'flow.uuid()'],
  ['crypto.randomUUID()', () => randomUUID(), 'flow.random() or flow.uuid()'],
  ['crypto.randomBytes()', () => nodeCrypto.randomBytes(4), 'flow.random() or flow.uuid()'],
  ['setTimeout()', () => clearTimeout(setTimeout(() => undefined, 1)), 'flow.sleep()'],
  ['setInterval()', () => clearInterval(setInterval(() => undefined, 1)), 'flow.sleep()'],
  ['setImmediate()', () => clearImmediate(setImmediate(() => undefined)), 'flow.sleep()'],
];

it.each(CALLS)('%s is told once, with its place, also after an await', async (what, call, instead) => {
  release = systemGlobalGuard.install();
  const uses = await usesOf(async () => {
    call();
    await Promise.resolve();
    call();
  });

  const place = expect.stringMatching(/^global-guard\.test\.ts:\d+$/) as string;
  expect(uses).toEqual([
    { what, instead, place },
    { what, instead, place },
  ]);
});

it('outside nothing is told, and everything does what it did', async () => {
  release = systemGlobalGuard.install();
  const uses = await usesOf(() => undefined);
  const before = performance.timeOrigin;

  for (const [, call] of CALLS) call();
  expect(Date.now()).toBeGreaterThan(before);
  expect(new Date()).toBeInstanceOf(Date);
  expect(new Date(5).getTime()).toBe(5);
  expect(new Date(5).constructor).toBe(Date);
  expect(crypto.randomUUID()).toMatch(/^[0-9a-f-]{36}$/);
  expect(await promisify(setTimeout)(1, 'value')).toBe('value');
  expect(uses).toEqual([]);
});

it('a Date of a number is the same each time, and no use', async () => {
  release = systemGlobalGuard.install();

  expect(
    await usesOf(() => [new Date(0), new Date('2026-01-01'), Date.UTC(2026, 0), Date.parse('2026-01-01')]),
  ).toEqual([]);
});

it('what Node does of its own is no use', async () => {
  release = systemGlobalGuard.install();

  expect(await usesOf(() => AbortSignal.timeout(1_000))).toEqual([]);
});

/** What is there now. */
function now(): unknown[] {
  const ofCrypto = (Object(crypto) as { readonly randomUUID: unknown }).randomUUID;
  return [Date, Date.now, Math.random, setTimeout, ofCrypto, nodeCrypto.randomBytes, fetch];
}

it('the last one of those who put it there takes it out, once', () => {
  const originals = now();
  const first = systemGlobalGuard.install();
  const second = systemGlobalGuard.install();
  first();
  first();
  expect(now().filter((value, i) => value === originals[i])).toEqual([]);
  second();

  expect(now()).toEqual(originals);
  expect(Object.hasOwn(crypto, 'randomUUID')).toBe(false);
  expect(new Date(0).constructor).toBe(Date);
});
