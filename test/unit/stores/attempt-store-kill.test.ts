// The promise of the stores in a file and in SQLite, against a real process that dies by SIGKILL in the middle of its writes.
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreProcesses } from '../../support/store-processes.js';
import type { StorePlace } from '../../support/store-places.js';
import { attemptStoreAt } from '../../support/store-places.js';

let processes: StoreProcesses;
beforeEach(() => void (processes = new StoreProcesses()));
afterEach(() => processes.end());

describe.each(['file', 'sqlite'] as const)('attempts in a store of kind %s', (kind) => {
  const place = (): StorePlace => ({ kind, path: join(processes.folder, 'attempts') });

  // Different lengths, so that the death comes at different places, also after the file was written anew.
  it.each([20, kind === 'file' ? 30_000 : 3_000])(
    'after %i steps: what ran when the process died is known to the next one',
    async (steps) => {
      await processes.kill(await processes.churning(place(), steps));

      const running = processes.toldToRun();
      const store = attemptStoreAt(place());
      await store.open();
      const found = await Promise.all([...running].map(async (key) => ({ key, known: await store.find(key) })));
      await store.close();

      expect(running.size).toBeGreaterThanOrEqual(8);
      const held = { attempts: 2, notBeforeMs: undefined, suspect: true, deaths: 0 };
      expect(found.filter(({ key }) => key.startsWith('held'))).toEqual(
        Array.from({ length: 8 }, (_, lane) => ({ key: `held-${lane}`, known: held })),
      );
      expect(found.filter(({ known }) => known?.suspect !== true)).toEqual([]);
    },
  );

  it('a process that lives keeps them to itself; once it was killed they are taken over', async () => {
    const holder = await processes.churning(place(), 20);
    await expect(attemptStoreAt(place()).open()).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining(`process ${holder.pid} has it open`) as string,
    });
    await processes.kill(holder);

    const store = attemptStoreAt(place());
    expect((await store.open()).suspects).toBeGreaterThanOrEqual(8);
    await store.close();
  });
});
