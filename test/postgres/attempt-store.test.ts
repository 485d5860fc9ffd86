// The attempt store in PostgreSQL: the cases of all stores, and what several processes at once make of it.
import type { AttemptStore } from 'pulsework';
import { postgresAttemptStore } from 'pulsework/postgres';
import { describe, expect } from 'vitest';
import type { AttemptMachine } from '../conformance/attempt-store-cases.js';
import { A, attemptStoreCases, B, runAttemptStoreCase } from '../conformance/attempt-store-cases.js';
import { MortalProcess } from '../support/postgres/mortal-processes.js';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { test as base } from '../support/postgres/postgres-test.js';

function machineOn(place: PostgresPlace): AttemptMachine {
  const stores: AttemptStore[] = [];
  let process = new MortalProcess(place, 'process');
  return {
    newStore: (maxRecords) => {
      const store = postgresAttemptStore({ pool: process.pool, schema: place.schema, maxRecords });
      stores.push(store);
      return store;
    },
    processDies: async () => {
      await process.die();
      process = new MortalProcess(place, 'process');
    },
    end: async () => {
      // Those of the dead cannot.
      await Promise.allSettled(stores.map((store) => store.close()));
    },
  };
}

describe('an attempt store (postgres)', () => {
  for (const each of attemptStoreCases)
    base(each.title, async ({ postgres }) => runAttemptStoreCase(() => machineOn(postgres), each));
});

interface Living {
  readonly process: MortalProcess;
  readonly store: AttemptStore;
}

const opened: AttemptStore[] = [];

/** A process that has the store open. */
async function living(place: PostgresPlace, name: string): Promise<Living> {
  const process = new MortalProcess(place, name);
  const store = postgresAttemptStore({ pool: process.pool, schema: place.schema });
  await store.open();
  opened.push(store);
  return { process, store };
}

const test = base.extend<{ readonly live: (name: string) => Promise<Living> }>({
  live: async ({ postgres }, use) => {
    await use((name) => living(postgres, name));
    await Promise.allSettled(opened.splice(0).map((store) => store.close()));
  },
});

describe('an attempt store that processes share', () => {
  test('what runs in a live process is no suspect to another, and its count is known there', async ({ live }) => {
    const [one, other] = [await live('one'), await live('other')];
    await one.store.begin(A, { attempt: 3, alone: true });

    expect(await other.store.find(A)).toEqual({ attempts: 2, notBeforeMs: undefined, suspect: false, deaths: 0 });
    await one.store.end(A, { attempts: 3 });
    expect(await other.store.find(A)).toMatchObject({ attempts: 3 });
  });

  test('what ran in a process that died is a suspect to those that live, at once', async ({ live }) => {
    const [one, other] = [await live('one'), await live('other')];
    await one.store.begin(A, { attempt: 3, alone: true });
    await one.store.begin(B, { attempt: 1, alone: false });
    await other.store.begin('lives', { attempt: 1, alone: true });
    await one.process.die();

    expect(await other.store.find(A)).toMatchObject({ attempts: 3, suspect: true, deaths: 1 });
    expect(await other.store.find(B)).toMatchObject({ attempts: 0, suspect: true, deaths: 0 });
    expect(await (await live('third')).store.find('lives')).toMatchObject({ suspect: false, deaths: 0 });
  });

  test('of several that look at once each sees the verdict, which is passed once', async ({ live }) => {
    const [one, ...others] = await Promise.all(['one', 'two', 'three', 'four'].map(live));
    await one?.store.begin(A, { attempt: 1, alone: true });
    await one?.process.die();
    const found = await Promise.all(others.map(async ({ store }) => store.find(A)));

    const verdict = { attempts: 1, notBeforeMs: undefined, suspect: true, deaths: 1 };
    expect(found).toEqual([verdict, verdict, verdict]);
  });

  test('who looks while another one judges waits for the verdict', async ({ live, postgres: { pool, schema } }) => {
    const [one, other] = [await live('one'), await live('other')];
    await one.store.begin(A, { attempt: 1, alone: true });
    await one.process.die();
    const judging = await pool.connect();
    const lock = `pg_advisory_xact_lock(hashtext('pulsework attempts of ${schema}')`;
    await judging.query(`BEGIN; SELECT ${lock}, 0), ${lock}, process) FROM ${schema}.attempt`);
    const found = other.store.find(A);
    const waits = `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND application_name = $1`;
    await expect.poll(async () => (await pool.query(waits, [other.process.name])).rowCount).toBe(1);
    await judging.query(`UPDATE ${schema}.attempt SET state = 'suspect', attempts = 1, deaths = 1; COMMIT`);
    judging.release();

    expect(await found).toEqual({ attempts: 1, notBeforeMs: undefined, suspect: true, deaths: 1 });
  });

  test('a process that was only cut off goes on, and what was judged of it is taken back', async ({ live }) => {
    const one = await live('one');
    await one.store.begin(A, { attempt: 2, alone: true });
    await one.store.begin(B, { attempt: 2, alone: false });
    await one.process.cutOff();
    // A new process may find it gone, or back already.
    const other = await live('other');
    await one.store.begin('next', { attempt: 1, alone: false });

    for (const key of [A, B])
      expect(await other.store.find(key)).toEqual({ attempts: 1, notBeforeMs: undefined, suspect: false, deaths: 0 });
    await one.store.end(A, { attempts: 2 });
    expect(await other.store.find(A)).toEqual({ attempts: 2, notBeforeMs: undefined, suspect: false, deaths: 0 });
    await one.process.die();
    expect(await other.store.find(B)).toMatchObject({ attempts: 1, suspect: true });
  });

  test('a verdict on a process that was only cut off is taken back also where it was passed', async ({ live }) => {
    const [one, other] = [await live('one'), await live('other')];
    await one.store.begin(A, { attempt: 2, alone: true });
    await one.process.cutOff({ andKeepOff: true });
    expect(await other.store.find(A)).toMatchObject({ attempts: 2, suspect: true, deaths: 1 });
    one.process.letBack();
    await one.store.begin(B, { attempt: 1, alone: false });

    expect(await other.store.find(A)).toEqual({ attempts: 1, notBeforeMs: undefined, suspect: false, deaths: 0 });
  });

  test('a process that closes it leaves no suspects to those that live', async ({ live }) => {
    const [one, other] = [await live('one'), await live('other')];
    await one.store.begin(A, { attempt: 2, alone: true });
    await one.store.close();

    expect(await other.store.find(A)).toEqual({ attempts: 1, notBeforeMs: undefined, suspect: false, deaths: 0 });
  });

  test('connects again by itself, and whoever asks meanwhile is told why not', async ({ live, postgres }) => {
    const one = await live('one');
    await one.process.cutOff({ andKeepOff: true });
    await expect(one.store.begin(A, { attempt: 1, alone: false })).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    one.process.letBack();

    const connections = 'SELECT count(*)::integer FROM pg_stat_activity WHERE application_name = $1';
    await expect
      .poll(
        async () => (await postgres.pool.query<{ count: number }>(connections, [one.process.name])).rows[0]?.count,
        {
          timeout: 5_000,
        },
      )
      .toBe(1);
    await one.store.begin(A, { attempt: 1, alone: false });
    expect(await one.store.find(A)).toMatchObject({ attempts: 0 });
  });

  test('gives its connection up when it is closed', async ({ live, postgres }) => {
    const one = await live('one');
    await one.store.close();

    const locks = `SELECT count(*)::integer FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = $1`;
    await expect
      .poll(async () => (await postgres.pool.query<{ count: number }>(locks, [one.process.name])).rows[0]?.count)
      .toBe(0);
  });
});
