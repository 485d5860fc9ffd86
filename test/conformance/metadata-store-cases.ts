// What every MetadataStore must hold to, as data: entries, ranges and indexes. The rest is in metadata-sequence-cases.ts.
import type { IndexRange, MetadataStore } from 'pulsework/sqlite';
import { NO_ENTRY } from 'pulsework/sqlite';
import { expect } from 'vitest';
import { refusalCases, sequenceCases } from './metadata-sequence-cases.js';
import type { MetadataStoreCase } from './metadata-store-case.js';
import { bytes, CONFLICT, pathsOf, text } from './metadata-store-case.js';

async function inIndex(store: MetadataStore, range: IndexRange): Promise<readonly string[]> {
  return (await store.scanIndex(range)).map(({ key, path }) => `${key} ${path}`);
}

async function putAll(store: MetadataStore, ...all: readonly string[]): Promise<void> {
  await Promise.all(all.map((path) => store.put(path, bytes(path))));
}

const entryCases: readonly MetadataStoreCase[] = [
  {
    title: 'gives what was put, byte for byte, and nothing where nothing is',
    run: async (store) => {
      const value = Uint8Array.from({ length: 256 }, (_, at) => at);
      const version = await store.put('/a/b', value);

      expect(await store.get('/a/b')).toEqual({ path: '/a/b', value: expect.anything() as Uint8Array, version });
      expect([...((await store.get('/a/b'))?.value ?? [])]).toEqual([...value]);
      expect(await store.get('/a')).toBeUndefined();
      expect(await store.get('/a/b/c')).toBeUndefined();
    },
  },
  {
    title: 'keeps no bytes as no bytes, and a part of a buffer as that part',
    run: async (store) => {
      await store.put('/empty', new Uint8Array());
      await store.put('/part', Buffer.from('before part after').subarray(7, 11));

      expect((await store.get('/empty'))?.value.length).toBe(0);
      expect(text((await store.get('/part'))?.value)).toBe('part');
      expect((await store.scan({})).map(({ value }) => text(value))).toEqual(['', 'part']);
    },
  },
  {
    title: 'shares no bytes with those who write and read, in whatever kind of array',
    run: async (store) => {
      const written = Buffer.from('original');
      const putting = store.put('/a', written);
      written.fill('x');
      await putting;
      (await store.get('/a'))?.value.fill(0);
      (await store.scan({}))[0]?.value.fill(0);

      expect(text((await store.get('/a'))?.value)).toBe('original');
    },
  },
  {
    title: 'a version is never given twice, not to other entries nor after a delete',
    run: async (store) => {
      const versions = [await store.put('/a', bytes('1')), await store.put('/b', bytes('1'))];
      versions.push(await store.put('/a', bytes('2')));
      await store.delete('/a');
      versions.push(await store.put('/a', bytes('1')), (await store.append('/s', bytes(''))).version);

      expect(new Set(versions).size).toBe(5);
      await expect(store.put('/a', bytes('3'), { expectedVersion: versions[0] })).rejects.toMatchObject(CONFLICT);
    },
  },
  {
    title: 'writes where the version is the expected one, and changes nothing where it is not',
    run: async (store) => {
      const indexes = [{ index: 'i', key: 'old' }];
      const first = await store.put('/a', bytes('1'), { expectedVersion: NO_ENTRY, indexes });
      await expect(store.put('/a', bytes('x'), { expectedVersion: NO_ENTRY })).rejects.toMatchObject(CONFLICT);
      await expect(store.put('/a', bytes('x'), { expectedVersion: first + 1 })).rejects.toMatchObject(CONFLICT);
      await expect(store.put('/none', bytes('x'), { expectedVersion: first })).rejects.toMatchObject(CONFLICT);
      await expect(store.delete('/a', { expectedVersion: first + 1 })).rejects.toMatchObject(CONFLICT);
      await expect(store.delete('/none', { expectedVersion: first })).rejects.toMatchObject(CONFLICT);

      expect((await store.scan({})).map(({ path, value, version }) => [path, text(value), version])).toEqual([
        ['/a', '1', first],
      ]);
      expect(await inIndex(store, { index: 'i' })).toEqual(['old /a']);
      const second = await store.put('/a', bytes('2'), { expectedVersion: first });
      expect(second).toBeGreaterThan(first);
      expect(await store.delete('/a', { expectedVersion: second })).toBe(true);
    },
  },
  {
    title: 'deletes, and says whether there was anything',
    run: async (store) => {
      await store.put('/a', bytes('1'));

      expect(await store.delete('/a')).toBe(true);
      expect(await store.delete('/a')).toBe(false);
      expect(await store.get('/a')).toBeUndefined();
      expect(await store.delete('/a', { expectedVersion: NO_ENTRY })).toBe(false);
    },
  },
  {
    title: 'of many who decide one entry from the same version one wins, and the others find its decision',
    run: async (store) => {
      const open = await store.put('/header', bytes('OPEN'));
      const ends = await Promise.allSettled(
        Array.from({ length: 40 }, (_, n) =>
          store.put('/header', bytes(n % 2 === 0 ? 'COMMITTED' : `ABORTED ${n}`), { expectedVersion: open }),
        ),
      );
      const won = ends.filter(({ status }) => status === 'fulfilled');
      const lost = ends.filter((end) => end.status === 'rejected').map(({ reason }) => reason as unknown);

      expect(won).toHaveLength(1);
      expect(lost).toHaveLength(39);
      for (const reason of lost) expect(reason).toMatchObject(CONFLICT);
      const winner = ends.findIndex(({ status }) => status === 'fulfilled');
      expect(text((await store.get('/header'))?.value)).toBe(winner % 2 === 0 ? 'COMMITTED' : `ABORTED ${winner}`);
    },
  },
  {
    title: 'a counter that many raise by compare-and-set loses no step',
    run: async (store) => {
      await store.put('/counter', bytes('0'));
      const raise = async (): Promise<void> => {
        const entry = await store.get('/counter');
        const next = bytes(String(Number(text(entry?.value)) + 1));
        await store.put('/counter', next, { expectedVersion: entry?.version }).catch(raise);
      };
      await Promise.all(Array.from({ length: 20 }, raise));

      expect(text((await store.get('/counter'))?.value)).toBe('20');
    },
  },
  {
    title: 'writes of one entry take effect in their order without being awaited',
    run: async (store) => {
      const steps = Array.from({ length: 30 }, (_, n) => store.put('/a', bytes(String(n))));
      steps.push(
        store.delete('/a').then(() => 0),
        store.put('/a', bytes('last')),
      );
      const versions = await Promise.all(steps);

      expect(text((await store.get('/a'))?.value)).toBe('last');
      const puts = versions.filter((version) => version > 0);
      expect(puts).toEqual([...puts].sort((a, b) => a - b));
    },
  },
  {
    title: 'a write that is refused takes none of its neighbours with it',
    run: async (store) => {
      const all = await Promise.allSettled([
        store.put('/a', bytes('1')),
        store.put('/b', bytes('1'), { expectedVersion: 99 }),
        store.put('/c', bytes('1')),
      ]);

      expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(await pathsOf(store.scan({}))).toEqual(['/a', '/c']);
    },
  },
];

const rangeCases: readonly MetadataStoreCase[] = [
  {
    title: 'scans in the order of code points, from a bound that is in it to one that is not',
    run: async (store) => {
      await putAll(store, '/a', '/a-1', '/a/x', '/a0', '/B', '/b', '/\u{1f600}', '/\uffee', '/é');

      const all = ['/B', '/a', '/a-1', '/a/x', '/a0', '/b', '/é', '/\uffee', '/\u{1f600}'];
      expect(await pathsOf(store.scan({}))).toEqual(all);
      expect(await pathsOf(store.scan({ from: '/a', to: '/b' }))).toEqual(['/a', '/a-1', '/a/x', '/a0']);
      expect(await pathsOf(store.scan({ from: '/a/', to: '/a0' }))).toEqual(['/a/x']);
      expect(await pathsOf(store.scan({ from: '/b' }))).toEqual(['/b', '/é', '/\uffee', '/\u{1f600}']);
      expect(await pathsOf(store.scan({ from: '/z', to: '/a' }))).toEqual([]);
      expect(await pathsOf(store.scan({ from: '/a', after: '/a0', to: '/c' }))).toEqual(['/b']);
      expect(await pathsOf(store.scan({ from: '/a0', after: '/a', to: '/b' }))).toEqual(['/a0']);
    },
  },
  {
    title: 'scans in pieces that leave nothing out and give nothing twice',
    run: async (store) => {
      const all = Array.from({ length: 25 }, (_, n) => `/p/${String(n).padStart(2, '0')}`);
      await putAll(store, ...all.toReversed(), '/q');
      const seen: string[] = [];
      for (let piece = await pathsOf(store.scan({ from: '/p/', to: '/p0', limit: 10 })); piece.length > 0;) {
        seen.push(...piece);
        piece = await pathsOf(store.scan({ from: '/p/', after: piece.at(-1), to: '/p0', limit: 10 }));
      }

      expect(seen).toEqual(all);
    },
  },
  {
    title: 'names what is directly below a path, also what only leads to entries, each once',
    run: async (store) => {
      await putAll(store, '/t/id/1', '/t/id/1/x', '/t/id/1-2', '/t/id/10', '/t/id/2/y/z', '/t/ids', '/t/id', '/u');

      expect(await store.children('/t/id')).toEqual(['1', '1-2', '10', '2']);
      expect(await store.children('/t')).toEqual(['id', 'ids']);
      expect(await store.children('/')).toEqual(['t', 'u']);
      expect(await store.children('/t/id/2')).toEqual(['y']);
      expect(await store.children('/u')).toEqual([]);
    },
  },
  {
    title: 'a name that goes on with 0 is not lost behind a folder of the shorter name',
    run: async (store) => {
      await putAll(store, '/t/a/x', '/t/a0', '/t/a0/y');

      expect(await store.children('/t')).toEqual(['a', 'a0']);
    },
  },
];

const indexCases: readonly MetadataStoreCase[] = [
  {
    title: 'finds entries by the keys of an index, in the order of keys and then of paths',
    run: async (store) => {
      await store.put('/b', bytes('b'), { indexes: [{ index: 'due', key: '0020' }] });
      await store.put('/a', bytes('a'), { indexes: [{ index: 'due', key: '0020' }] });
      await store.put('/c', bytes('c'), { indexes: [{ index: 'due', key: '0003' }] });
      await store.put('/d', bytes('d'), { indexes: [{ index: 'other', key: '0004' }] });
      await store.put('/e', bytes('e'));

      expect(await inIndex(store, { index: 'due' })).toEqual(['0003 /c', '0020 /a', '0020 /b']);
      expect(await inIndex(store, { index: 'due', from: '0003', to: '0020' })).toEqual(['0003 /c']);
      expect(await inIndex(store, { index: 'due', key: '0020' })).toEqual(['0020 /a', '0020 /b']);
      expect(await inIndex(store, { index: 'due', key: '002' })).toEqual([]);
      expect(await inIndex(store, { index: 'none' })).toEqual([]);
      const [first] = await store.scanIndex({ index: 'other' });
      expect([first?.version, text(first?.value)]).toEqual([(await store.get('/d'))?.version, 'd']);
    },
  },
  {
    title: 'goes on in an index behind the last entry, also among equal keys',
    run: async (store) => {
      for (const path of ['/a', '/b', '/c', '/d'])
        await store.put(path, bytes(''), { indexes: [{ index: 'i', key: path < '/d' ? 'k' : 'l' }] });

      expect(await inIndex(store, { index: 'i', limit: 2 })).toEqual(['k /a', 'k /b']);
      const after = { key: 'k', path: '/b' };
      expect(await inIndex(store, { index: 'i', after })).toEqual(['k /c', 'l /d']);
      expect(await inIndex(store, { index: 'i', key: 'k', after })).toEqual(['k /c']);
      expect(await inIndex(store, { index: 'i', key: 'l', after })).toEqual(['l /d']);
      expect(await inIndex(store, { index: 'i', from: 'l', after })).toEqual(['l /d']);
      expect(await inIndex(store, { index: 'i', from: 'a', after: { key: 'k', path: '/c' }, to: 'l' })).toEqual([]);
    },
  },
  {
    title: 'an entry has exactly the index keys of its last put, and none once it is deleted',
    run: async (store) => {
      await store.put('/a', bytes('1'), {
        indexes: [
          { index: 'state', key: 'OPEN' },
          { index: 'by', key: 'x' },
          { index: 'by', key: 'y' },
          { index: 'by', key: 'x' },
        ],
      });
      expect(await inIndex(store, { index: 'by' })).toEqual(['x /a', 'y /a']);
      await store.put('/a', bytes('2'), { indexes: [{ index: 'state', key: 'DONE' }] });

      expect(await inIndex(store, { index: 'state' })).toEqual(['DONE /a']);
      expect(await inIndex(store, { index: 'by' })).toEqual([]);
      await store.put('/a', bytes('3'));
      expect(await inIndex(store, { index: 'state' })).toEqual([]);
      await store.put('/a', bytes('4'), { indexes: [{ index: 'state', key: 'AGAIN' }] });
      await store.delete('/a');
      expect(await inIndex(store, { index: 'state' })).toEqual([]);
    },
  },
];

export const metadataStoreCases: readonly MetadataStoreCase[] = [
  ...entryCases,
  ...rangeCases,
  ...indexCases,
  ...sequenceCases,
  ...refusalCases,
];
