// Workflows in PostgreSQL: the cases of all stores, and what only several processes on one server can show. Each store here has
// connections of its own, as each process has.
import { postgresWorkflowStore } from 'pulsework/postgres';
import { workflowStoreCases } from 'pulsework/testing';
import type { AcquiredWorkflow, NewWorkflow, WorkflowStore, WorkflowWrite } from 'pulsework/workflow';
import type pg from 'pg';
import { describe, expect } from 'vitest';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { MortalProcess } from '../support/postgres/mortal-processes.js';
import { test } from '../support/postgres/postgres-test.js';

const KEY = { name: 'fulfil', id: 'A-1' };
const NEW: NewWorkflow = { version: 1, input: null, seed: 's', attributes: {} };
const TIMES = { nowMs: 0, keepMs: 1_000 };
const LEASE = { owner: 'one', nowMs: 0, leaseMs: 1_000 };
const RUNNING = { status: 'running', waits: [] } as const;
const ENTRY = { kind: 'command', at: 0, command: 'step', name: 'charge', atMs: 0 } as const;
const MESSAGE = { topic: 'persistent://a/b/c', payload: null, properties: {} };

async function storeOf(place: PostgresPlace, options: pg.PoolConfig = {}): Promise<WorkflowStore> {
  const store = postgresWorkflowStore({ pool: place.newPool(options), schema: place.schema });
  await store.open();
  return store;
}

async function begunIn(store: WorkflowStore, key = KEY): Promise<AcquiredWorkflow> {
  await store.start(key, NEW, 0);
  const acquired = await store.acquire(key, LEASE);
  if (acquired === undefined) throw new Error('it could not be acquired');
  return acquired;
}

function writeOf({ epoch, writeVersion }: AcquiredWorkflow, parts: Partial<WorkflowWrite> = {}): WorkflowWrite {
  const nothing = { nowMs: 0, entries: [], consumed: [], outgoing: [] };
  return { epoch, expectedVersion: writeVersion, ...nothing, change: RUNNING, ...parts };
}

function signal(eventId: string) {
  return { eventId, kind: 'signal', name: 'packed' } as const;
}

/** Holds the rows of all workflows until it is called: what comes meanwhile waits in the order in which it came. */
async function holdRows({ pool, schema }: PostgresPlace): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query(`BEGIN; SELECT 1 FROM ${schema}.workflow FOR UPDATE`);
  return async () => {
    await client.query('COMMIT');
    client.release();
  };
}

describe('a workflow store (postgres)', () => {
  for (const { title, run } of workflowStoreCases)
    test(title, async ({ postgres }) => {
      const store = await storeOf(postgres);
      await run(store);
      await store.close();
    });

  test('refuses to be used before it is open and after its last close', async ({ postgres }) => {
    const store = postgresWorkflowStore({ pool: postgres.pool, schema: postgres.schema });

    await expect(store.get(KEY)).rejects.toMatchObject({ code: 'ILLEGAL_STATE' });
    await store.open();
    await store.open();
    await store.close();
    expect(await store.get(KEY)).toBeUndefined();
    await store.close();
    await expect(store.get(KEY)).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
  });
});

test('an event that came while a release waited for its turn keeps the lease with its owner', async ({ postgres }) => {
  const [one, other] = [await storeOf(postgres), await storeOf(postgres)];
  const held = await begunIn(one);
  const goOn = await holdRows(postgres);
  const appended = other.append(KEY, signal('e'), TIMES);
  await postgres.waiting(1);
  const written = one.write(KEY, writeOf(held, { release: { seen: 0, wakeMs: 5_000 } }));
  await postgres.waiting(2);
  await goOn();

  expect(await appended).toBe('added');
  expect(await written).toEqual({ writeVersion: 1, released: false });
  expect(await other.due({ names: ['fulfil'], beforeMs: 4_999, limit: 9 })).toHaveLength(1);
});

test('an event that came while a renewal waited for its turn is told of', async ({ postgres }) => {
  const [one, other] = [await storeOf(postgres), await storeOf(postgres)];
  const held = await begunIn(one);
  const goOn = await holdRows(postgres);
  const appended = other.append(KEY, signal('e'), TIMES);
  await postgres.waiting(1);
  const renewed = one.renew(KEY, held.epoch, LEASE);
  await postgres.waiting(2);
  await goOn();
  await appended;

  const [event] = await one.inbox(KEY, 0);
  expect(await renewed).toEqual({ inboxSeq: event?.seq });
});

test('whoever takes it over sees all that was written until then, also what was written while he waited', async ({
  postgres,
}) => {
  const [one, other] = [await storeOf(postgres), await storeOf(postgres)];
  const held = await begunIn(one);
  const goOn = await holdRows(postgres);
  const written = one.write(KEY, writeOf(held, { entries: [ENTRY], release: { seen: 0 } }));
  await postgres.waiting(1);
  const taken = other.acquire(KEY, { owner: 'other', nowMs: 1_000, leaseMs: 1_000 });
  await postgres.waiting(2);
  await goOn();

  expect(await written).toMatchObject({ released: true });
  expect(await taken).toMatchObject({ journal: [ENTRY], writeVersion: 1, epoch: held.epoch + 1 });
});

test('a write that waited behind a take-over is refused whole', async ({ postgres }) => {
  const [one, other] = [await storeOf(postgres), await storeOf(postgres)];
  const held = await begunIn(one);
  const goOn = await holdRows(postgres);
  const taken = other.acquire(KEY, { owner: 'other', nowMs: 1_000, leaseMs: 1_000 });
  await postgres.waiting(1);
  const outgoing = [{ messageId: 'm', message: MESSAGE }];
  const written = one.write(KEY, writeOf(held, { entries: [ENTRY], outgoing }));
  await postgres.waiting(2);
  const refused = expect(written).rejects.toMatchObject({ code: 'WORKFLOW_LEASE_LOST' });
  await goOn();

  expect((await taken)?.epoch).toBe(held.epoch + 1);
  await refused;
  expect((await one.read(KEY))?.journal).toEqual([]);
  expect(await one.takeOutgoing({ ...LEASE, limit: 9 })).toEqual([]);
});

test('a write that is repeated while the first one still waits is done once', async ({ postgres }) => {
  const store = await storeOf(postgres);
  const write = writeOf(await begunIn(store), { entries: [ENTRY] });
  const goOn = await holdRows(postgres);
  const both = [store.write(KEY, write), store.write(KEY, write)];
  await postgres.waiting(2);
  await goOn();

  expect(await Promise.all(both)).toEqual([1, 2].map(() => ({ writeVersion: 1, released: false })));
  expect((await store.read(KEY))?.journal).toEqual([ENTRY]);
});

test('a write whose connection breaks may be repeated, and is done once', async ({ postgres }) => {
  const process = new MortalProcess(postgres, 'one');
  const store = postgresWorkflowStore({ pool: process.pool, schema: postgres.schema });
  await store.open();
  const write = writeOf(await begunIn(store), { entries: [ENTRY], outgoing: [{ messageId: 'm', message: MESSAGE }] });
  const goOn = await holdRows(postgres);
  const broken = expect(store.write(KEY, write)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
  await postgres.waiting(1, process.name);
  await process.cutOff();
  await broken;
  await goOn();

  expect(await store.write(KEY, write)).toEqual({ writeVersion: 1, released: false });
  expect(await store.write(KEY, write)).toEqual({ writeVersion: 1, released: false });
  expect((await store.read(KEY))?.journal).toEqual([ENTRY]);
  expect(await store.takeOutgoing({ ...LEASE, limit: 9 })).toHaveLength(1);
});

test('an end that waited while an event came leaves an empty inbox', async ({ postgres }) => {
  const store = await storeOf(postgres);
  const held = await begunIn(store);
  const goOn = await holdRows(postgres);
  const appended = store.append(KEY, signal('e'), TIMES);
  await postgres.waiting(1);
  const written = store.write(KEY, writeOf(held, { change: { status: 'completed' } }));
  await postgres.waiting(2);
  await goOn();
  await Promise.all([appended, written]);

  expect((await store.read(KEY))?.inbox).toEqual([]);
  expect(await store.inbox(KEY, 0)).toEqual([]);
});

/** Whatever the server's or the user's settings say of transactions. */
describe.each(['read committed', 'repeatable read', 'serializable'])('two processes at once (%s)', (isolation) => {
  const options = { options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`, max: 4 };
  const keys = Array.from({ length: 12 }, (_, n) => ({ name: 'fulfil', id: String(n) }));

  test('race for leases: each workflow goes to one, under an epoch of its own', async ({ postgres }) => {
    const stores = [await storeOf(postgres, options), await storeOf(postgres, options)] as const;
    await Promise.all(keys.map((key) => stores[0].start(key, NEW, 0)));
    for (let round = 1; round <= 3; round++) {
      const lease = { nowMs: round * 1_000, leaseMs: 1_000 };
      const taken = await Promise.all(
        keys.flatMap((key) => stores.map((store, n) => store.acquire(key, { owner: `p${n}`, ...lease }))),
      );
      const epochs = taken.flatMap((held) => (held === undefined ? [] : `${held.record.id} ${held.epoch}`));
      expect(epochs.sort()).toEqual(keys.map(({ id }) => `${id} ${round}`).sort());
    }
  });

  test('a signal and the start that it is meant for: it is never lost, and comes once', async ({ postgres }) => {
    const stores = [await storeOf(postgres, options), await storeOf(postgres, options)] as const;
    const answers = await Promise.all(
      keys.flatMap((key) => [
        stores[0].append(key, signal('e'), TIMES),
        stores[1].start(key, NEW, 0),
        stores[1].append(key, signal('e'), TIMES),
        stores[0].start(key, NEW, 0),
      ]),
    );
    const inboxes = await Promise.all(keys.map(async (key) => (await stores[0].acquire(key, LEASE))?.inbox));

    expect(inboxes.map((inbox) => inbox?.map(({ eventId }) => eventId))).toEqual(keys.map(() => ['e']));
    for (const answer of ['added', 'known', true, false])
      expect(answers.filter((each) => each === answer)).toHaveLength(keys.length);
  });

  test('relays that take messages at once: none overtakes another one of its workflow', async ({ postgres }) => {
    const stores = [await storeOf(postgres, options), await storeOf(postgres, options)] as const;
    for (const key of keys.slice(0, 6)) {
      const held = await begunIn(stores[0], key);
      const outgoing = [1, 2, 3].map((n) => ({ messageId: `${key.id}/${n}`, message: MESSAGE }));
      await stores[0].write(key, writeOf(held, { outgoing }));
    }
    const sent: string[] = [];
    for (let round = 0; round < 18 && sent.length < 18; round++) {
      const taken = await Promise.all(
        stores.flatMap((store, n) =>
          [1, 2].map((more) => store.takeOutgoing({ owner: `p${n}-${more}`, nowMs: round, leaseMs: 1, limit: 2 })),
        ),
      );
      for (const own of taken) for (const { messageId } of own.slice(0, 1)) sent.push(messageId);
      const owners = taken.map((own) => new Set(own.map(({ key }) => key.id)));
      for (const { id } of keys) expect(owners.filter((own) => own.has(id)).length).toBeLessThanOrEqual(1);
      await stores[0].sent(sent);
    }

    for (const { id } of keys.slice(0, 6))
      expect(sent.filter((each) => each.startsWith(`${id}/`))).toEqual([`${id}/1`, `${id}/2`, `${id}/3`]);
  });
});

test('ids of any length have their place', async ({ postgres }) => {
  const store = await storeOf(postgres);
  const key = { name: 'fulfil', id: 'x'.repeat(9_000) };
  await store.start(key, { ...NEW, attributes: { customer: 'y'.repeat(9_000) } }, 0);

  expect((await store.list({ limit: 9, attributes: { customer: 'y'.repeat(9_000) } }))[0]?.id).toBe(key.id);
  expect(await store.append(key, signal('z'.repeat(9_000)), TIMES)).toBe('added');
  expect((await store.get({ ...key, id: `${key.id}x` }))?.id).toBeUndefined();
});

test('who may read and write in the schema, and nothing more, can use it', async ({ postgres }) => {
  const { pool, schema } = postgres;
  await storeOf(postgres);
  const { role, url } = await postgres.newRole();
  await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`);
  const store = await storeOf(postgres, { connectionString: url });
  await store.append(KEY, signal('early'), TIMES);
  const held = await begunIn(store);
  const outgoing = [{ messageId: 'm', message: MESSAGE }];
  await store.write(KEY, writeOf(held, { entries: [ENTRY], outgoing, change: { status: 'completed' } }));

  expect(await store.takeOutgoing({ ...LEASE, limit: 9 })).toHaveLength(1);
  expect(await store.purge({ nowMs: 0, endedBeforeMs: 1, limit: 9 })).toBe(1);
  const { rows } = await pool.query<{ count: number }>(`SELECT count(*)::integer FROM ${schema}.workflow_entry`);
  expect(rows).toEqual([{ count: 0 }]);
});
