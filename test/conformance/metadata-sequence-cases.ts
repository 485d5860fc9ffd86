// What every MetadataStore must hold to, continued: sequences, who hears of them, and what is refused.
import { expect } from 'vitest';
import type { MetadataStoreCase } from './metadata-store-case.js';
import { bytes, heard, pathsOf, text } from './metadata-store-case.js';

const REFUSED = { code: 'CONFIGURATION_INVALID' };

const SEQUENCE = /^\/ops\/7_1-(\d{20})$/;

export const sequenceCases: readonly MetadataStoreCase[] = [
  {
    title:
      'T-32: numbers the entries of a sequence with 20 digits behind the last "-", in the order in which they come',
    run: async (store) => {
      const appended = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          store.append('/ops/7_1', bytes(String(n)), { indexes: [{ index: 'ops', key: '7_1' }] }),
        ),
      );

      for (const { path } of appended) expect(path).toMatch(SEQUENCE);
      const found = await store.scan({ from: '/ops/7_1-', to: '/ops/7_1.' });
      expect(found.map(({ value }) => text(value))).toEqual(Array.from({ length: 12 }, (_, n) => String(n)));
      expect(found.map(({ path, version }) => ({ path, version }))).toEqual(appended);
      expect(await store.scanIndex({ index: 'ops', key: '7_1' })).toHaveLength(12);
    },
  },
  {
    title: 'gives a number again neither after a delete nor where somebody put an entry under it',
    run: async (store) => {
      const { path: first } = await store.append('/ops/7_1', bytes('1'));
      await store.delete(first);
      const { path: second } = await store.append('/ops/7_1', bytes('2'));
      const ahead = `/ops/7_1-${String(Number(SEQUENCE.exec(second)?.[1]) + 2).padStart(20, '0')}`;
      await store.put(ahead, bytes('mine'));
      const { path: third } = await store.append('/ops/7_1', bytes('3'));

      expect([first, second, third]).toEqual([first, second, third].sort());
      expect(new Set([first, second, third]).size).toBe(3);
      expect(text((await store.get(ahead))?.value)).toBe('mine');
    },
  },
  {
    title: 'tells whoever watches a sequence that there is something newer, which reads then see',
    run: async (store) => {
      const told = heard<readonly string[]>();
      const watch = await store.watch('/events/s', () => {
        told.resolve(pathsOf(store.scan({ from: '/events/s-', to: '/events/s.' })));
      });
      const { path } = await store.append('/events/s', bytes('1'));

      expect(await told.promise).toEqual([path]);
      watch.close();
    },
  },
  {
    title: 'may tell of many at once, but always again after the last',
    run: async (store) => {
      let seen = 0;
      const all = heard<undefined>();
      const watch = await store.watch('/events/s', () => {
        void store.scan({ from: '/events/s-' }).then((found) => {
          seen = Math.max(seen, found.length);
          if (seen === 30) all.resolve(undefined);
        });
      });
      for (let n = 0; n < 3; n++)
        await Promise.all(Array.from({ length: 10 }, () => store.append('/events/s', bytes(''))));

      await all.promise;
      watch.close();
    },
  },
  {
    title: 'tells nobody of other sequences, of puts, or after the watch was closed',
    run: async (store) => {
      const calls: string[] = [];
      const watch = await store.watch('/events/a', () => calls.push('a'));
      const closed = await store.watch('/events/b', () => calls.push('b'));
      const told = heard<undefined>();
      const last = await store.watch('/events/b', () => told.resolve(undefined));
      closed.close();
      closed.close();
      await store.append('/events/a-b', bytes(''));
      await store.put('/events/a', bytes(''));
      await store.append('/events/b', bytes(''));
      await told.promise;

      expect(calls).toEqual([]);
      watch.close();
      last.close();
    },
  },
];

const WRONG_PATHS = ['', '/', 'a', '/a/', '//a', '/a//b', '/a\0', '/\ud800', `/${'a'.repeat(4096)}`];

export const refusalCases: readonly MetadataStoreCase[] = [
  {
    title: 'refuses what is no path, no name, no value or no range, and stores nothing of it',
    run: async (store) => {
      for (const path of WRONG_PATHS) {
        await expect(store.put(path, bytes('')), JSON.stringify(path)).rejects.toMatchObject(REFUSED);
        await expect(store.append(path, bytes(''))).rejects.toMatchObject(REFUSED);
        await expect(store.get(path)).rejects.toMatchObject(REFUSED);
        await expect(store.delete(path)).rejects.toMatchObject(REFUSED);
        await expect(store.watch(path, () => undefined)).rejects.toMatchObject(REFUSED);
      }
      await expect(store.put('/a', 'text' as unknown as Uint8Array)).rejects.toMatchObject(REFUSED);
      const indexes = [{ index: 'i', key: 'a\0' }];
      await expect(store.put('/a', bytes(''), { indexes })).rejects.toMatchObject(REFUSED);
      await expect(store.scan({ limit: 0 })).rejects.toMatchObject(REFUSED);
      await expect(store.scan({ from: '/\0' })).rejects.toMatchObject(REFUSED);
      await expect(store.scanIndex({ index: 'i', key: 'a', from: 'a' })).rejects.toMatchObject(REFUSED);

      expect(await store.scan({})).toEqual([]);
    },
  },
  {
    title: 'after it was closed refuses every call by name; closing again is allowed, opening is not',
    run: async (store) => {
      await store.open();
      let calls = 0;
      await store.watch('/s', () => (calls += 1));
      const written = store.append('/s', bytes('1'));
      await store.close();
      await store.close();
      await written;

      const closed = { code: 'ALREADY_CLOSED' };
      await expect(store.get('/a')).rejects.toMatchObject(closed);
      await expect(store.put('/a', bytes(''))).rejects.toMatchObject(closed);
      await expect(store.delete('/a')).rejects.toMatchObject(closed);
      await expect(store.append('/a', bytes(''))).rejects.toMatchObject(closed);
      await expect(store.children('/a')).rejects.toMatchObject(closed);
      await expect(store.scan({})).rejects.toMatchObject(closed);
      await expect(store.scanIndex({ index: 'i' })).rejects.toMatchObject(closed);
      await expect(store.watch('/s', () => undefined)).rejects.toMatchObject(closed);
      await expect(store.open()).rejects.toMatchObject(closed);
      expect(calls).toBe(0);
    },
  },
];
