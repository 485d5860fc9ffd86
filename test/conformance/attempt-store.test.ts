// What every AttemptStore must hold to, on the store in memory and on the one in a file. A death is played: what the store
// had handed over by then is what the next process finds. test/unit/stores/file-attempt-store-kill.test.ts kills for real.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttemptStore } from 'pulsework';
import { fileAttemptStore } from 'pulsework/file';
import { AttemptMemory, memoryAttemptStore } from 'pulsework/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { attemptKey } from '../../src/core/attempt-records.js';

interface Machine {
  /** The store of the process that lives now, not yet open. */
  newStore(maxRecords?: number): AttemptStore;
  /** That process dies without another word. */
  processDies(): void;
  end(): Promise<void>;
}

function memoryMachine(): Machine {
  const memory = new AttemptMemory();
  return {
    newStore: (maxRecords) => memoryAttemptStore({ memory, maxRecords }),
    processDies: () => memory.processDied(),
    end: async () => undefined,
  };
}

function fileMachine(): Machine {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-attempts-'));
  const stores: AttemptStore[] = [];
  let process = 0;
  const path = (): string => join(folder, `process-${process}.log`);
  return {
    newStore: (maxRecords) => {
      const store = fileAttemptStore({ path: path(), maxRecords });
      stores.push(store);
      return store;
    },
    // This process cannot die here, so the next one goes on with what the file holds at this moment.
    processDies: () => {
      const left = path();
      process += 1;
      copyFileSync(left, path());
    },
    end: async () => {
      for (const store of stores) await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const A = attemptKey('persistent://public/default/orders', 'billing', '1:2:-1');
const B = attemptKey('persistent://public/default/orders', 'billing', '1:3:-1:0');
const NOTHING_KNOWN = undefined;

const machines = { memory: memoryMachine, file: fileMachine };

describe.each(Object.entries(machines))('an attempt store (%s)', (_name, newMachine) => {
  let machine: Machine;
  const opened = async (maxRecords?: number): Promise<AttemptStore> => {
    const store = machine.newStore(maxRecords);
    await store.open();
    return store;
  };
  const afterDeath = (): Promise<AttemptStore> => {
    machine.processDies();
    return opened();
  };

  afterEach(() => machine.end());
  const check = (title: string, test: () => Promise<void>): void => {
    it(title, async () => {
      machine = newMachine();
      await test();
    });
  };

  check('knows nothing of a message that never ran', async () => {
    const store = await opened();

    expect(await store.find(A)).toBe(NOTHING_KNOWN);
  });

  check('keeps attempts and the time before which it must not run', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 3, alone: false });
    await store.end(A, { attempts: 3, notBeforeMs: 1_700_000_000_000 });

    const known = { attempts: 3, notBeforeMs: 1_700_000_000_000, suspect: false, deaths: 0 };
    expect(await store.find(A)).toEqual(known);
    expect(await (await afterDeath()).find(A)).toEqual(known);
  });

  check('keeps what was spent before a run that was not counted', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 3, alone: false });
    await store.end(A, { attempts: 2 });

    expect(await (await afterDeath()).find(A)).toEqual({
      attempts: 2,
      notBeforeMs: undefined,
      suspect: false,
      deaths: 0,
    });
  });

  check('an end never lowers what was spent', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 5, alone: false });
    await store.end(A, { attempts: 1 });

    expect((await store.find(A))?.attempts).toBe(4);
  });

  check('a run waits no longer for the time it was put off to', async () => {
    const store = await opened();
    await store.end(A, { attempts: 1, notBeforeMs: 1_700_000_000_000 });
    await store.begin(A, { attempt: 2, alone: false });

    expect((await store.find(A))?.notBeforeMs).toBeUndefined();
  });

  check('forgets a message once it is acknowledged or a dead letter', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 1, alone: false });
    await store.delete(A);

    expect(await store.find(A)).toBe(NOTHING_KNOWN);
    expect(await (await afterDeath()).find(A)).toBe(NOTHING_KNOWN);
  });

  check('deleting what it does not know is no error', async () => {
    const store = await opened();

    await expect(store.delete(A)).resolves.toBeUndefined();
  });

  check('what runs in this process is no suspect', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 1, alone: false });

    expect((await store.find(A))?.suspect).toBe(false);
  });

  check('a death beside others makes suspects and spends nothing', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 3, alone: false });
    await store.begin(B, { attempt: 1, alone: false });
    const next = await afterDeath();

    expect(await next.find(A)).toEqual({ attempts: 2, notBeforeMs: undefined, suspect: true, deaths: 0 });
    expect(await next.find(B)).toEqual({ attempts: 0, notBeforeMs: undefined, suspect: true, deaths: 0 });
  });

  check('a death alone spends that attempt, and each further one does', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 3, alone: true });
    const second = await afterDeath();
    expect(await second.find(A)).toEqual({ attempts: 3, notBeforeMs: undefined, suspect: true, deaths: 1 });

    await second.begin(A, { attempt: 4, alone: true });
    expect(await (await afterDeath()).find(A)).toMatchObject({ attempts: 4, suspect: true, deaths: 2 });
  });

  check('a suspect stays one through deaths while it does not run', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 1, alone: true });
    machine.processDies();
    await opened();

    expect(await (await afterDeath()).find(A)).toMatchObject({ attempts: 1, suspect: true, deaths: 1 });
  });

  check('a suspect whose run ended by itself is none any more, its attempts stay', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 1, alone: true });
    const next = await afterDeath();
    await next.begin(A, { attempt: 2, alone: true });
    await next.end(A, { attempts: 2 });

    expect(await next.find(A)).toEqual({ attempts: 2, notBeforeMs: undefined, suspect: false, deaths: 0 });
  });

  check('says at opening how much it holds and how many are suspects', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 1, alone: false });
    await store.end(B, { attempts: 1 });
    machine.processDies();

    expect(await machine.newStore().open()).toEqual({ records: 2, suspects: 1 });
  });

  check('a process that closes it leaves no suspects', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 2, alone: false });
    await store.begin(B, { attempt: 1, alone: true });
    await store.close();
    const next = await opened();

    expect(await next.find(A)).toEqual({ attempts: 1, notBeforeMs: undefined, suspect: false, deaths: 0 });
    expect(await next.find(B)).toMatchObject({ attempts: 0, suspect: false });
  });

  check('steps of one key take effect in their order without being awaited', async () => {
    const store = await opened();
    const steps = [
      store.begin(A, { attempt: 1, alone: false }),
      store.end(A, { attempts: 1 }),
      store.begin(A, { attempt: 2, alone: false }),
      store.delete(A),
      store.begin(A, { attempt: 7, alone: false }),
      store.end(A, { attempts: 7 }),
    ];
    await Promise.all(steps);

    expect(await (await afterDeath()).find(A)).toMatchObject({ attempts: 7, suspect: false });
  });

  check('keeps keys apart that differ only in odd characters', async () => {
    const store = await opened();
    const keys = ['a b', 'a\nb', 'a"b', 'a\\nb', 'Ω', '\ud800', '', 'deleted "a b"', '__proto__'];
    await Promise.all(keys.map((key, at) => store.end(key, { attempts: at + 1 })));
    const next = await afterDeath();

    const found = await Promise.all(keys.map(async (key) => (await next.find(key))?.attempts));
    expect(found).toEqual(keys.map((_key, at) => at + 1));
  });

  check('is locked while another process has it open', async () => {
    const store = await opened();
    await expect(machine.newStore().open()).rejects.toMatchObject({ code: 'STORE_LOCKED' });

    await store.close();
    await expect(machine.newStore().open()).resolves.toBeDefined();
  });

  check('runtimes that share it each open and close it; the last one lets go', async () => {
    const store = await opened();
    await store.begin(A, { attempt: 1, alone: false });
    expect(await store.open()).toMatchObject({ suspects: 0 });
    await store.close();
    expect((await store.find(A))?.suspect).toBe(false);
    await expect(machine.newStore().open()).rejects.toMatchObject({ code: 'STORE_LOCKED' });

    await store.close();
    await store.close();
    await expect(machine.newStore().open()).resolves.toBeDefined();
  });

  check('refuses to be used before it is open and after it was closed', async () => {
    const store = machine.newStore();
    await expect(store.begin(A, { attempt: 1, alone: false })).rejects.toMatchObject({ code: 'ILLEGAL_STATE' });
    await store.open();
    await store.close();

    await expect(store.begin(A, { attempt: 1, alone: false })).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
    await expect(store.end(A, { attempts: 1 })).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
    await expect(store.delete(A)).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
    expect(() => store.find(A)).toThrow(expect.objectContaining({ code: 'ALREADY_CLOSED' }) as Error);
  });

  check('forgets the longest untouched beyond its limit, never what runs', async () => {
    const store = await opened(3);
    await store.begin('runs', { attempt: 1, alone: false });
    for (const key of ['one', 'two', 'three', 'four']) await store.end(key, { attempts: 1 });
    await store.end('three', { attempts: 2 });

    const known = ['runs', 'one', 'two', 'three', 'four'].filter((key) => store.find(key) !== undefined);
    expect(known).toEqual(['runs', 'three', 'four']);
    expect(store.forgotten).toBe(2);
    const next = await afterDeath();
    expect(['one', 'two'].map((key) => next.find(key))).toEqual([undefined, undefined]);
    expect(await next.find('three')).toMatchObject({ attempts: 2 });
  });
});
