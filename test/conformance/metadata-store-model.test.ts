// Random programs of writes on every metadata store, against a plain Map: after each program all questions have the same answers.
import fc from 'fast-check';
import type { IndexKey, MetadataStore } from 'pulsework/sqlite';
import { NO_ENTRY } from 'pulsework/sqlite';
import { describe, expect, it } from 'vitest';
import { metadataPlaces } from '../support/metadata-places.js';
import { bytes, text } from './metadata-store-case.js';

const RUNS = 40;
const SEED = 20261130;

/** Few, so that programs meet themselves; with what sorts oddly. */
const PATHS = ['/a', '/a/x', '/a-1', '/a0', '/a/x/y', '/b', '/é', '/\uffee/z', '/\u{1f600}'];
const KEYS = ['', 'k', 'k-1', 'k/', 'k0', '\u{1f600}', '\uffee'];

type Expectation = 'any' | 'none' | 'current' | 'stale';
type Step =
  | {
      readonly kind: 'put';
      readonly path: string;
      readonly expected: Expectation;
      readonly indexes: readonly IndexKey[];
    }
  | { readonly kind: 'delete'; readonly path: string; readonly expected: Expectation }
  | { readonly kind: 'append'; readonly path: string; readonly indexes: readonly IndexKey[] };

const path = fc.constantFrom(...PATHS);
const expected = fc.constantFrom<Expectation>('any', 'any', 'none', 'current', 'stale');
const indexes = fc.array(fc.record({ index: fc.constantFrom('i', 'j'), key: fc.constantFrom(...KEYS) }), {
  maxLength: 3,
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('put' as const), path, expected, indexes }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), path, expected }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('append' as const), path, indexes }) },
);

interface ModelEntry {
  readonly value: string;
  readonly version: number;
  readonly indexes: readonly IndexKey[];
}

/** The order of UTF-8 bytes, told by the bytes themselves. */
const inOrder = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

function versionFor(expectation: Expectation, found: number | undefined): number | undefined {
  if (expectation === 'any') return undefined;
  if (expectation === 'none') return NO_ENTRY;
  return expectation === 'current' ? (found ?? NO_ENTRY) : (found ?? 0) + 1_000_000;
}

/** Runs a program on both and says what the model holds in the end. */
async function play(store: MetadataStore, program: readonly Step[]): Promise<Map<string, ModelEntry>> {
  const model = new Map<string, ModelEntry>();
  const versions = new Set<number>();
  for (const [at, next] of program.entries()) {
    const value = `value ${at}`;
    if (next.kind === 'append') {
      const { path: appended, version } = await store.append(next.path, bytes(value), { indexes: next.indexes });
      expect(model.has(appended)).toBe(false);
      model.set(appended, { value, version, indexes: next.indexes });
      versions.add(version);
      continue;
    }
    const found = model.get(next.path)?.version;
    const expectedVersion = versionFor(next.expected, found);
    const fits = expectedVersion === undefined || expectedVersion === (found ?? NO_ENTRY);
    const done =
      next.kind === 'put'
        ? store.put(next.path, bytes(value), { expectedVersion, indexes: next.indexes })
        : store.delete(next.path, { expectedVersion });
    if (!fits) await expect(done).rejects.toMatchObject({ code: 'STORE_VERSION_CONFLICT' });
    else if (next.kind === 'delete') {
      expect(await done).toBe(found !== undefined);
      model.delete(next.path);
    } else {
      const version = Number(await done);
      expect(versions.has(version)).toBe(false);
      versions.add(version);
      model.set(next.path, { value, version, indexes: next.indexes });
    }
  }
  return model;
}

async function compare(store: MetadataStore, model: ReadonlyMap<string, ModelEntry>): Promise<void> {
  const sorted = [...model.keys()].sort(inOrder);
  const all = sorted.map((name) => ({ path: name, value: model.get(name)?.value, version: model.get(name)?.version }));
  const found = await store.scan({});
  expect(found.map((entry) => ({ ...entry, value: text(entry.value) }))).toEqual(all);
  for (const name of PATHS) {
    expect((await store.get(name))?.version).toBe(model.get(name)?.version);
    const from = (await store.scan({ from: name, limit: 3 })).map((entry) => entry.path);
    expect(from).toEqual(sorted.filter((other) => inOrder(other, name) >= 0).slice(0, 3));
    const below = sorted.filter((other) => other.startsWith(`${name}/`)).map((other) => other.slice(name.length + 1));
    const names = new Set(below.map((other) => other.split('/')[0] ?? ''));
    expect(await store.children(name)).toEqual([...names].sort(inOrder));
  }
  for (const index of ['i', 'j']) {
    const places = sorted.flatMap((name) => {
      const keys = (model.get(name)?.indexes ?? []).filter((other) => other.index === index).map(({ key }) => key);
      return [...new Set(keys)].map((key) => ({ key, path: name }));
    });
    places.sort((a, b) => inOrder(a.key, b.key) || inOrder(a.path, b.path));
    const indexed = await store.scanIndex({ index });
    expect(indexed.map(({ key, path: name }) => ({ key, path: name }))).toEqual(places);
    const [middle] = places.slice(Math.floor(places.length / 2));
    const rest = await store.scanIndex({ index, after: middle });
    expect(rest).toHaveLength(middle === undefined ? places.length : places.length - places.indexOf(middle) - 1);
  }
}

describe.each(Object.entries(metadataPlaces))('random programs on a metadata store (%s)', (_name, newPlace) => {
  it('leave what a plain map holds', { timeout: 60_000 }, async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (program) => {
      const place = newPlace();
      const store = place.newStore();
      try {
        await store.open();
        await compare(store, await play(store, program));
      } finally {
        await store.close();
        place.end();
      }
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
  });
});
