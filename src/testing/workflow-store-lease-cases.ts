// Cases of workflow stores: who may write, who is woken when, and who sends what is to be sent.
import type { WorkflowStoreCase } from './workflow-store-case.js';
import { KEEP, KEY, LEASE, NEW, begun, entry, signal, writeOf } from './workflow-store-case.js';
import { equal, expectThat, rejectsWith } from './workflow-store-expectations.js';

const DUE = { names: ['fulfil'], beforeMs: 0, limit: 10 };
const message = { topic: 'persistent://a/b/c', payload: null, properties: {} };

export const LEASE_CASES: readonly WorkflowStoreCase[] = [
  {
    title: 'of many that want a workflow one gets it, until its lease is over and not a millisecond less',
    run: async (store) => {
      await store.start(KEY, NEW, 0);
      const all = await Promise.all(['a', 'b', 'c'].map((owner) => store.acquire(KEY, { ...LEASE, owner })));
      equal(all.filter((held) => held !== undefined).length, 1);
      equal(await store.acquire(KEY, { ...LEASE, nowMs: 999 }), undefined);
      const next = await store.acquire(KEY, { ...LEASE, owner: 'two', nowMs: 1_000 });
      expectThat((next?.epoch ?? 0) > (all.find((held) => held !== undefined)?.epoch ?? 0), 'the epoch rises');
    },
  },
  {
    title: 'nothing is accepted under an older epoch: no write, no renewal, not even when the newer owner is gone',
    run: async (store) => {
      const old = await begun(store);
      const next = await store.acquire(KEY, { owner: 'two', nowMs: 1_000, leaseMs: 10 });
      await rejectsWith('WORKFLOW_LEASE_LOST', store.write(KEY, writeOf(old, { entries: [entry(0)] })));
      equal(await store.renew(KEY, old.epoch, { nowMs: 2_000, leaseMs: 1_000 }), undefined);
      equal((await store.read(KEY))?.journal, []);
      equal(next?.writeVersion, old.writeVersion);
    },
  },
  {
    title:
      'whoever knows the newest version may get no journal, whoever knows another one, or another run, gets it whole',
    run: async (store) => {
      const held = await begun(store);
      const entries = [entry(0), entry(1)];
      const { writeVersion } = await store.write(KEY, writeOf(held, { entries, release: { seen: 0 } }));
      const { seed } = NEW;
      const known = await store.acquire(KEY, { ...LEASE, known: { seed, writeVersion } });
      equal([known?.writeVersion, known?.record.status], [writeVersion, 'running']);
      expectThat([0, 2].includes(known?.journal.length ?? -1), 'the journal is left out, or whole');
      const older = { seed, writeVersion: writeVersion - 1 };
      equal((await store.acquire(KEY, { ...LEASE, nowMs: 5_000, known: older }))?.journal, entries);
      const other = { seed: 'another', writeVersion };
      equal((await store.acquire(KEY, { ...LEASE, nowMs: 9_000, known: other }))?.journal, entries);
    },
  },
  {
    title: 'an owner whose lease is over may still write and renew while nobody else has taken it',
    run: async (store) => {
      const held = await begun(store);
      const answer = await store.write(KEY, writeOf(held, { nowMs: 5_000, entries: [entry(0)] }));
      equal(await store.renew(KEY, held.epoch, { nowMs: 5_000, leaseMs: 1_000 }), { inboxSeq: 0 });
      equal(await store.acquire(KEY, { ...LEASE, owner: 'two', nowMs: 5_999 }), undefined);
      await store.write(KEY, writeOf({ ...held, ...answer }));
    },
  },
  {
    title: 'a renewal tells of the newest event',
    run: async (store) => {
      const held = await begun(store);
      await store.append(KEY, signal('e1'), KEEP);
      const [event] = await store.inbox(KEY, 0);
      equal(await store.renew(KEY, held.epoch, LEASE), { inboxSeq: event?.seq });
    },
  },
  {
    title: 'a release gives the lease up and sets the wake time; without one only an event wakes',
    run: async (store) => {
      const held = await begun(store);
      const answer = await store.write(KEY, writeOf(held, { release: { seen: 0, wakeMs: 700 } }));
      equal(answer.released, true);
      equal(await store.due({ ...DUE, beforeMs: 699 }), []);
      equal(await store.due({ ...DUE, beforeMs: 700 }), [{ ...KEY, wakeMs: 700 }]);
      const again = await store.acquire(KEY, { ...LEASE, nowMs: 700 });
      await store.write(KEY, writeOf(again ?? held, { release: { seen: 0 } }));
      equal(await store.due({ ...DUE, beforeMs: 1e12 }), []);
      await store.append(KEY, signal('e1'), { nowMs: 800, keepMs: 1 });
      equal(await store.due({ ...DUE, beforeMs: 800 }), [{ ...KEY, wakeMs: 800 }]);
    },
  },
  {
    title: 'an event that came in meanwhile keeps the lease with its owner, unless it was seen',
    run: async (store) => {
      const held = await begun(store);
      await store.append(KEY, signal('e1'), KEEP);
      const [event] = await store.inbox(KEY, 0);
      const answer = await store.write(KEY, writeOf(held, { release: { seen: 0 } }));
      equal(answer.released, false);
      equal(await store.acquire(KEY, { ...LEASE, owner: 'two', nowMs: 999 }), undefined);
      const seen = await store.write(KEY, writeOf({ ...held, ...answer }, { release: { seen: event?.seq ?? 0 } }));
      equal(seen.released, true);
    },
  },
  {
    title: 'a workflow that is held is not due, one whose owner is gone is; an ended one never',
    run: async (store) => {
      const held = await begun(store);
      await store.append(KEY, signal('e1'), KEEP);
      equal(await store.due({ ...DUE, beforeMs: 999 }), []);
      equal((await store.due({ ...DUE, beforeMs: 1_000 })).length, 1);
      await store.write(KEY, writeOf(held, { change: { status: 'cancelled' } }));
      equal(await store.due({ ...DUE, beforeMs: 1e12 }), []);
    },
  },
  {
    title: 'what is due comes by its time, only of the names asked for, and no more than asked for',
    run: async (store) => {
      for (const [id, at] of [
        ['b', 2],
        ['a', 1],
        ['c', 3],
      ] as const)
        await store.start({ name: 'fulfil', id }, NEW, at);
      await store.start({ name: 'other', id: 'x' }, NEW, 0);
      const due = await store.due({ ...DUE, beforeMs: 10, limit: 2 });
      equal(
        due.map(({ id }) => id),
        ['a', 'b'],
      );
    },
  },
  {
    title: 'messages are one owner’s until its time is over, then anyone’s, and gone once sent',
    run: async (store) => {
      const held = await begun(store);
      const outgoing = ['m1', 'm2'].map((messageId) => ({ messageId, message }));
      await store.write(KEY, writeOf(held, { outgoing }));
      const first = await store.takeOutgoing({ owner: 'one', nowMs: 0, leaseMs: 100, limit: 1 });
      equal(
        first.map(({ messageId }) => messageId),
        ['m1'],
      );
      // The second one is behind it: it would overtake.
      equal(await store.takeOutgoing({ owner: 'two', nowMs: 99, leaseMs: 100, limit: 9 }), []);
      const late = await store.takeOutgoing({ owner: 'two', nowMs: 100, leaseMs: 100, limit: 9 });
      equal(
        late.map(({ messageId }) => messageId),
        ['m1', 'm2'],
      );
      await store.sent(['m1', 'unknown']);
      const left = await store.takeOutgoing({ owner: 'two', nowMs: 150, leaseMs: 100, limit: 9 });
      equal(
        left.map(({ messageId }) => messageId),
        ['m2'],
      );
    },
  },
  {
    title: 'no messages are taken of workflows that are to be left out, and all those of others are',
    run: async (store) => {
      const [first, second, third] = [KEY, { name: 'fulfil', id: '"A-2"' }, { name: 'fulfil,A', id: '1' }];
      for (const key of [first, second, third]) {
        const outgoing = [1, 2].map((n) => ({ messageId: `${key.id}/${n}`, message }));
        await store.write(key, writeOf(await begun(store, key), { outgoing }));
      }
      const taken = await store.takeOutgoing({ ...LEASE, limit: 2, exceptWorkflows: [first, third] });
      equal(
        taken.map(({ messageId }) => messageId),
        ['"A-2"/1', '"A-2"/2'],
      );
      equal(await store.takeOutgoing({ ...LEASE, limit: 9, exceptWorkflows: [first, second, third] }), []);
      const all = await store.takeOutgoing({ ...LEASE, limit: 9, exceptWorkflows: [{ name: 'fulfil', id: 'A' }] });
      equal(all.length, 6);
    },
  },
];
