// Cases of workflow stores: what is found by what, and what is forgotten when.
import type { WorkflowStoreCase } from './workflow-store-case.js';
import { KEEP, KEY, LEASE, NEW, begun, entry, signal, writeOf } from './workflow-store-case.js';
import { equal } from './workflow-store-expectations.js';

export const READING_CASES: readonly WorkflowStoreCase[] = [
  {
    title: 'what is not there is undefined',
    run: async (store) => {
      equal(await store.get(KEY), undefined);
      equal(await store.read(KEY), undefined);
      equal(await store.acquire(KEY, LEASE), undefined);
      equal(await store.inbox(KEY, 0), []);
      equal(await store.list({ limit: 5 }), []);
    },
  },
  {
    title: 'keys that look alike are not the same',
    run: async (store) => {
      await store.start({ name: 'a', id: 'bc' }, NEW, 0);
      equal(await store.start({ name: 'ab', id: 'c' }, NEW, 0), true);
      equal(await store.get({ name: 'A', id: 'bc' }), undefined);
      equal(await store.start({ name: 'a', id: "it's; DROP TABLE" }, NEW, 0), true);
      equal((await store.get({ name: 'a', id: "it's; DROP TABLE" }))?.status, 'running');
    },
  },
  {
    title: 'workflows are listed by name, status, attributes and time, in the order of their beginning, page by page',
    run: async (store) => {
      for (const [id, customer, nowMs] of [
        ['c', 'ann', 3],
        ['a', 'bob', 1],
        ['b', 'ann', 1],
      ] as const)
        await store.start({ name: 'fulfil', id }, { ...NEW, attributes: { customer, kind: 'k' } }, nowMs);
      await begun(store, { name: 'other', id: 'x' }, 9);
      const ids = async (filter: object): Promise<readonly string[]> =>
        (await store.list({ limit: 10, ...filter })).map(({ id }) => id);
      equal(await ids({}), ['a', 'b', 'c', 'x']);
      equal(await ids({ name: 'fulfil' }), ['a', 'b', 'c']);
      equal(await ids({ attributes: { customer: 'ann' } }), ['b', 'c', 'x']);
      equal(await ids({ attributes: { customer: 'ann', kind: 'k' } }), ['b', 'c']);
      equal(await ids({ createdFromMs: 1, createdBeforeMs: 3 }), ['a', 'b']);
      equal(await ids({ status: 'completed' }), []);
      equal(await ids({ limit: 1, after: { createdMs: 1, name: 'fulfil', id: 'a' } }), ['b']);
    },
  },
  {
    title: 'a list shows how each stands',
    run: async (store) => {
      const held = await begun(store);
      const error = { name: 'E', message: 'recorded step "a", now step "b"' };
      await store.write(KEY, writeOf(held, { change: { status: 'blocked', waits: [], error } }));
      const [found] = await store.list({ status: 'blocked', limit: 10 });
      equal(found?.error, error);
    },
  },
  {
    title: 'those that have not ended are counted by name and status',
    run: async (store) => {
      const other = { name: 'other', id: 'x' };
      for (const id of ['a', 'b', 'c']) await store.start({ name: 'fulfil', id }, NEW, 0);
      await store.start({ name: 'unasked', id: 'y' }, NEW, 0);
      const held = await begun(store, other);
      await store.write(other, writeOf(held, { change: { status: 'stuck', waits: [] } }));
      const ended = await store.acquire({ name: 'fulfil', id: 'c' }, LEASE);
      await store.write({ name: 'fulfil', id: 'c' }, writeOf(ended ?? held, { change: { status: 'completed' } }));
      const counts = await store.count(['fulfil', 'other', 'unknown']);
      equal(
        [...counts].sort((a, b) => (a.name < b.name ? -1 : 1)),
        [
          { name: 'fulfil', status: 'running', count: 2 },
          { name: 'other', status: 'stuck', count: 1 },
        ],
      );
    },
  },
  {
    title: 'what telemetry goes on from is kept with the workflow and its events, over all of its runs',
    run: async (store) => {
      const context = { traceparent: '00-1-2-01' };
      await store.start(KEY, { ...NEW, context }, 0);
      await store.append(KEY, { ...signal('e1'), context }, KEEP);
      const held = await store.acquire(KEY, LEASE);
      equal(held?.record.context, context);
      equal(held?.inbox[0]?.context, context);
      if (held === undefined) return;
      const change = { status: 'continued', input: 'next', seed: 's2', version: 2 } as const;
      await store.write(KEY, writeOf(held, { change }));
      equal((await store.get(KEY))?.context, context);
    },
  },
  {
    title: 'an ended workflow keeps its journal until it is forgotten, and then may begin anew',
    run: async (store) => {
      const held = await begun(store);
      await store.write(
        KEY,
        writeOf(held, { nowMs: 100, entries: [entry(0)], change: { status: 'completed', result: 1 } }),
      );
      equal((await store.read(KEY))?.journal, [entry(0)]);
      equal((await store.get(KEY))?.endedMs, 100);
      equal(await store.purge({ nowMs: 101, endedBeforeMs: 100, limit: 9 }), 0);
      equal(await store.purge({ nowMs: 101, endedBeforeMs: 101, limit: 9 }), 1);
      equal(await store.read(KEY), undefined);
      equal(await store.start(KEY, NEW, 200), true);
      equal((await store.read(KEY))?.journal, []);
    },
  },
  {
    title: 'what has not ended is never forgotten; signals for what never began are, after their time',
    run: async (store) => {
      await begun(store);
      const unborn = { name: 'fulfil', id: 'unborn' };
      await store.append(unborn, signal('early'), KEEP);
      equal(await store.purge({ nowMs: 2_000, endedBeforeMs: 2_000, limit: 9 }), 0);
      equal((await store.get(KEY))?.status, 'running');
      await store.start(unborn, NEW, 500);
      equal((await store.read(unborn))?.inbox, []);
    },
  },
  {
    title: 'texts of any language and values of any shape come back as they were',
    run: async (store) => {
      const input = { text: 'Tromsø 東京 🚚 \u0000', list: [1, null, { deep: [true] }], none: null };
      const key = { name: 'fulfil', id: 'Ünï/code id' };
      await store.start(key, { ...NEW, input }, 0);
      equal((await store.get(key))?.input, input);
      equal((await store.get(key))?.id, key.id);
    },
  },
];
