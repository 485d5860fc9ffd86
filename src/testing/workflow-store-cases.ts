// What every WorkflowStore must hold to, as functions: an adapter runs each of them on a store that is open and empty.
// All times are passed in, none is waited for.
import type { JournalEntry } from '../core/workflow-journal.js';
import { CONSUMED_IDS_KEPT } from '../ports/workflow-state.js';
import type { AcquiredWorkflow } from '../ports/workflow-store.js';
import type { WorkflowStoreCase } from './workflow-store-case.js';
import { KEEP, KEY, LEASE, NEW, begun, entry, signal, writeOf } from './workflow-store-case.js';
import { equal, expectThat, rejectsWith } from './workflow-store-expectations.js';
import { LEASE_CASES } from './workflow-store-lease-cases.js';
import { READING_CASES } from './workflow-store-reading-cases.js';

const INBOX_CASES: readonly WorkflowStoreCase[] = [
  {
    title: 'a workflow begins once: a second start changes nothing, ended or not',
    run: async (store) => {
      equal(await store.start(KEY, NEW, 5), true);
      equal(await store.start(KEY, { ...NEW, input: 'other' }, 6), false);
      const held = await store.acquire(KEY, { ...LEASE, nowMs: 6 });
      equal(held?.record.input, NEW.input);
      equal(held?.record.createdMs, 5);
      await store.write(KEY, writeOf(held as AcquiredWorkflow, { change: { status: 'completed', result: 1 } }));
      equal(await store.start(KEY, NEW, 7), false);
    },
  },
  {
    title: 'an event of an id that came before is known, consumed or not',
    run: async (store) => {
      const held = await begun(store);
      equal(await store.append(KEY, signal('e1', 1), KEEP), 'added');
      equal(await store.append(KEY, signal('e1', 2), KEEP), 'known');
      const [first] = await store.inbox(KEY, 0);
      await store.write(KEY, writeOf(held, { consumed: [first?.seq ?? 0] }));
      equal(await store.append(KEY, signal('e1', 3), KEEP), 'known');
      equal(await store.inbox(KEY, 0), []);
    },
  },
  {
    title: 'events come in the order of arrival, with rising numbers, and from the one asked for',
    run: async (store) => {
      await begun(store);
      for (const id of ['a', 'b', 'c']) await store.append(KEY, signal(id), KEEP);
      const all = await store.inbox(KEY, 0);
      equal(
        all.map(({ eventId }) => eventId),
        ['a', 'b', 'c'],
      );
      expectThat(
        all.every(({ seq }, i) => seq > (all[i - 1]?.seq ?? 0)),
        'numbers rise',
      );
      equal((await store.inbox(KEY, all[1]?.seq ?? 0)).length, 1);
    },
  },
  {
    title:
      'signals before the start are kept for their time and become those of the workflow; other events are not kept',
    run: async (store) => {
      equal(await store.append(KEY, signal('early'), KEEP), 'added');
      equal(await store.append(KEY, signal('early'), KEEP), 'known');
      equal(await store.append(KEY, signal('too-early'), { nowMs: 0, keepMs: 10 }), 'added');
      equal(await store.append(KEY, { eventId: 'c', kind: 'cancel' }, KEEP), 'unknown');
      await store.start(KEY, NEW, 10);
      const held = await store.acquire(KEY, { ...LEASE, nowMs: 10 });
      equal(
        held?.inbox.map(({ eventId }) => eventId),
        ['early'],
      );
      equal(await store.append(KEY, signal('early'), KEEP), 'known');
    },
  },
  {
    title: 'what comes after the end is not kept',
    run: async (store) => {
      const held = await begun(store);
      await store.write(KEY, writeOf(held, { change: { status: 'failed', error: { name: 'E', message: 'm' } } }));
      equal(await store.append(KEY, signal('late'), KEEP), 'ended');
      equal((await store.read(KEY))?.inbox, []);
    },
  },
];

const WRITE_CASES: readonly WorkflowStoreCase[] = [
  {
    title: 'a write adds to the journal, takes from the inbox, queues messages and changes the state, all at once',
    run: async (store) => {
      const held = await begun(store);
      await store.append(KEY, signal('e1'), KEEP);
      const [event] = await store.inbox(KEY, 0);
      const waits = [{ command: 'sleep', name: 'nap', untilMs: 9 }] as const;
      const message = { topic: 'persistent://a/b/c', payload: 'AA==', properties: {} };
      const answer = await store.write(
        KEY,
        writeOf(held, {
          entries: [entry(0)],
          consumed: [event?.seq ?? 0],
          outgoing: [{ messageId: 'm1', message }],
          change: { status: 'running', waits },
        }),
      );
      expectThat(!answer.released, 'the lease is kept');
      const snapshot = await store.read(KEY);
      equal(snapshot?.journal, [entry(0)]);
      equal(snapshot?.inbox, []);
      equal(snapshot?.record.waits, waits);
      equal(await store.takeOutgoing({ ...LEASE, limit: 9 }), [{ key: KEY, messageId: 'm1', message }]);
    },
  },
  {
    title: 'the same write twice is done once and answered alike',
    run: async (store) => {
      const held = await begun(store);
      const write = writeOf(held, { entries: [entry(0)] });
      const answer = await store.write(KEY, write);
      equal(await store.write(KEY, write), answer);
      equal((await store.read(KEY))?.journal, [entry(0)]);
    },
  },
  {
    title: 'a repeat of the write that ended a workflow is answered, any other write to it is refused',
    run: async (store) => {
      const held = await begun(store);
      const end = writeOf(held, { change: { status: 'completed', result: { ok: true } } });
      const answer = await store.write(KEY, end);
      equal(answer.released, true);
      equal(await store.write(KEY, end), answer);
      const after = { epoch: held.epoch, writeVersion: answer.writeVersion };
      await rejectsWith('WORKFLOW_LEASE_LOST', store.write(KEY, writeOf(after)));
      equal((await store.get(KEY))?.result, { ok: true });
      equal(await store.acquire(KEY, { ...LEASE, nowMs: 99_999 }), undefined);
    },
  },
  {
    title: 'a write that expects another version is refused and changes nothing',
    run: async (store) => {
      const held = await begun(store);
      const later = { ...held, writeVersion: held.writeVersion + 1 };
      await rejectsWith('WORKFLOW_LEASE_LOST', store.write(KEY, writeOf(later, { entries: [entry(0)] })));
      equal((await store.read(KEY))?.journal, []);
    },
  },
  {
    title: 'what continues as new has an empty journal, the next run, its new input and its old inbox',
    run: async (store) => {
      const held = await begun(store);
      await store.append(KEY, signal('kept'), KEEP);
      const change = { status: 'continued', input: 'next', seed: 's2', version: 2 } as const;
      await store.write(KEY, writeOf(held, { nowMs: 50, entries: [entry(0)], change }));
      const snapshot = await store.read(KEY);
      equal(snapshot?.journal, []);
      equal(snapshot?.inbox.length, 1);
      const { run, input, seed, version, status, runStartedMs, createdMs } = snapshot?.record ?? {};
      equal(
        { run, input, seed, version, status, runStartedMs, createdMs },
        { run: 2, input: 'next', seed: 's2', version: 2, status: 'running', runStartedMs: 50, createdMs: 0 },
      );
    },
  },
  {
    title:
      'what continues as new forgets the ids of consumed events but for the newest 1,000; no other write forgets any',
    run: async (store) => {
      const held = await begun(store);
      const ids = Array.from({ length: CONSUMED_IDS_KEPT + 3 }, (_, n) => `e${n}`);
      await Promise.all(ids.map((id) => store.append(KEY, signal(id), KEEP)));
      const [oldest, second, third, ...others] = await store.inbox(KEY, 0);
      const unread = others.at(-1);
      const seqs = [second, third, ...others.slice(0, -1)].map((event) => event?.seq ?? 0);
      const answer = await store.write(KEY, writeOf(held, { consumed: seqs }));
      equal(await store.append(KEY, signal(second?.eventId ?? ''), KEEP), 'known');
      const change = { status: 'continued', seed: 's2', version: 1 } as const;
      await store.write(KEY, writeOf({ ...held, ...answer }, { consumed: [oldest?.seq ?? 0], change }));
      const again = async (event: typeof oldest) => store.append(KEY, signal(event?.eventId ?? ''), KEEP);
      equal([await again(third), await again(others[0]), await again(unread)], ['known', 'known', 'known']);
      equal([await again(oldest), await again(second)], ['added', 'added']);
      const left = (await store.inbox(KEY, 0)).map(({ eventId }) => eventId);
      equal(
        left,
        [unread, oldest, second].map((event) => event?.eventId),
      );
    },
  },
  {
    title: 'what a reader does to what it got changes nothing',
    run: async (store) => {
      const held = await begun(store);
      (held.record.input as { order: string }).order = 'changed';
      (held.journal as JournalEntry[]).push(entry(7));
      const snapshot = await store.read(KEY);
      equal(snapshot?.record.input, NEW.input);
      equal(snapshot?.journal, []);
    },
  },
];

export const workflowStoreCases: readonly WorkflowStoreCase[] = [
  ...INBOX_CASES,
  ...WRITE_CASES,
  ...LEASE_CASES,
  ...READING_CASES,
];
