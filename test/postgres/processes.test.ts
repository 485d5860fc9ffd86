// Real processes on one PostgreSQL: they race for keys, and die by SIGKILL in the middle of their writes.
import { expect } from 'vitest';
import { everyKey, raceForClaims } from '../support/claim-race.js';
import type { PostgresPlace } from '../support/postgres/postgres-test.js';
import { test as base } from '../support/postgres/postgres-test.js';
import { StoreProcesses } from '../support/store-processes.js';
import type { StorePlace } from '../support/store-places.js';
import { attemptStoreAt } from '../support/store-places.js';

const test = base.extend<{ readonly processes: StoreProcesses }>({
  // oxlint-disable-next-line no-empty-pattern -- vitest reads from the parameter what a fixture needs
  processes: async ({}, use) => {
    const processes = new StoreProcesses();
    await use(processes);
    processes.end();
  },
});

function placeIn({ url, schema }: PostgresPlace): StorePlace {
  return { kind: 'postgres', url, schema };
}

test('of two processes that claim the same 400 keys each key goes to one', async ({ postgres, processes }) => {
  const [one = [], other = []] = await raceForClaims(processes, placeIn(postgres));

  expect([...one, ...other].sort((a, b) => a - b)).toEqual(everyKey);
  // Both were at it.
  expect(Math.min(one.length, other.length)).toBeGreaterThan(0);
});

test('what ran in a killed process is known to those that live, and to the next one', async ({
  postgres,
  processes,
}) => {
  const place = placeIn(postgres);
  const lives = attemptStoreAt(place);
  await lives.open();
  const killed = await processes.churning(place, 500);
  expect(await lives.find('held-0')).toMatchObject({ attempts: 2, suspect: false });
  await processes.kill(killed);

  // The server learns from the system that the process is gone.
  await expect.poll(async () => (await lives.find('held-0'))?.suspect).toBe(true);
  const running = [...processes.toldToRun()];
  const next = attemptStoreAt(place);
  await next.open();
  for (const store of [lives, next]) {
    const found = await Promise.all(running.map(async (key) => ({ key, known: await store.find(key) })));
    expect(found.filter(({ known }) => known?.suspect !== true)).toEqual([]);
    expect(found.filter(({ key, known }) => key.startsWith('lane-0') && known?.deaths !== 1)).toEqual([]);
    expect(running.length).toBeGreaterThanOrEqual(8);
    await store.close();
  }
});
