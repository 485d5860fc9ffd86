// What every AttemptStore must hold to, as data. A death is played: what the store had handed over by then is what the next
// process finds.
import type { AttemptStore } from 'pulsework';
import { expect } from 'vitest';
import { attemptKey } from '../../src/core/attempt-records.js';

/** What outlives processes, of which one lives at a time. */
export interface AttemptMachine {
  /** The store of the process that lives now, not yet open. */
  newStore(maxRecords?: number): AttemptStore;
  /** That process dies without another word. */
  processDies(): void | Promise<void>;
  end(): Promise<void>;
}

export interface AttemptCaseKit {
  readonly machine: AttemptMachine;
  readonly opened: (maxRecords?: number) => Promise<AttemptStore>;
  /** The store of the next process, open. */
  readonly afterDeath: () => Promise<AttemptStore>;
}

export interface AttemptStoreCase {
  readonly title: string;
  readonly run: (kit: AttemptCaseKit) => Promise<void>;
}

export const A = attemptKey('persistent://public/default/orders', 'billing', '1:2:-1');
export const B = attemptKey('persistent://public/default/orders', 'billing', '1:3:-1:0');
const NOTHING_KNOWN = undefined;

export async function runAttemptStoreCase(newMachine: () => AttemptMachine, { run }: AttemptStoreCase): Promise<void> {
  const machine = newMachine();
  const opened = async (maxRecords?: number): Promise<AttemptStore> => {
    const store = machine.newStore(maxRecords);
    await store.open();
    return store;
  };
  const afterDeath = async (): Promise<AttemptStore> => {
    await machine.processDies();
    return opened();
  };
  try {
    await run({ machine, opened, afterDeath });
  } finally {
    await machine.end();
  }
}

async function known(store: AttemptStore): Promise<readonly string[]> {
  const keys = ['runs', 'one', 'two', 'three', 'four'];
  const found = await Promise.all(keys.map(async (key) => (await store.find(key)) !== undefined));
  return keys.filter((_key, at) => found[at]);
}

export const attemptStoreCases: readonly AttemptStoreCase[] = [
  {
    title: 'knows nothing of a message that never ran',
    run: async ({ opened }) => {
      const store = await opened();

      expect(await store.find(A)).toBe(NOTHING_KNOWN);
    },
  },
  {
    title: 'keeps attempts and the time before which it must not run',
    run: async ({ opened, afterDeath }) => {
      const store = await opened();
      await store.begin(A, { attempt: 3, alone: false });
      await store.end(A, { attempts: 3, notBeforeMs: 1_700_000_000_000 });

      const known = { attempts: 3, notBeforeMs: 1_700_000_000_000, suspect: false, deaths: 0 };
      expect(await store.find(A)).toEqual(known);
      expect(await (await afterDeath()).find(A)).toEqual(known);
    },
  },
  {
    title: 'keeps what was spent before a run that was not counted',
    run: async ({ opened, afterDeath }) => {
      const store = await opened();
      await store.begin(A, { attempt: 3, alone: false });
      await store.end(A, { attempts: 2 });

      expect(await (await afterDeath()).find(A)).toEqual({
        attempts: 2,
        notBeforeMs: undefined,
        suspect: false,
        deaths: 0,
      });
    },
  },
  {
    title: 'an end never lowers what was spent',
    run: async ({ opened }) => {
      const store = await opened();
      await store.begin(A, { attempt: 5, alone: false });
      await store.end(A, { attempts: 1 });

      expect((await store.find(A))?.attempts).toBe(4);
    },
  },
  {
    title: 'a run waits no longer for the time it was put off to',
    run: async ({ opened }) => {
      const store = await opened();
      await store.end(A, { attempts: 1, notBeforeMs: 1_700_000_000_000 });
      await store.begin(A, { attempt: 2, alone: false });

      expect((await store.find(A))?.notBeforeMs).toBeUndefined();
    },
  },
  {
    title: 'forgets a message once it is acknowledged or a dead letter',
    run: async ({ opened, afterDeath }) => {
      const store = await opened();
      await store.begin(A, { attempt: 1, alone: false });
      await store.delete(A);

      expect(await store.find(A)).toBe(NOTHING_KNOWN);
      expect(await (await afterDeath()).find(A)).toBe(NOTHING_KNOWN);
    },
  },
  {
    title: 'deleting what it does not know is no error',
    run: async ({ opened }) => {
      const store = await opened();

      await expect(store.delete(A)).resolves.toBeUndefined();
    },
  },
  {
    title: 'what runs in this process is no suspect',
    run: async ({ opened }) => {
      const store = await opened();
      await store.begin(A, { attempt: 1, alone: false });

      expect((await store.find(A))?.suspect).toBe(false);
    },
  },
  {
    title: 'a death beside others makes suspects and spends nothing',
    run: async ({ opened, afterDeath }) => {
      const store = await opened();
      await store.begin(A, { attempt: 3, alone: false });
      await store.begin(B, { attempt: 1, alone: false });
      const next = await afterDeath();

      expect(await next.find(A)).toEqual({ attempts: 2, notBeforeMs: undefined, suspect: true, deaths: 0 });
      expect(await next.find(B)).toEqual({ attempts: 0, notBeforeMs: undefined, suspect: true, deaths: 0 });
    },
  },
  {
    title: 'a death alone spends that attempt, and each further one does',
    run: async ({ opened, afterDeath }) => {
      const store = await opened();
      await store.begin(A, { attempt: 3, alone: true });
      const second = await afterDeath();
      expect(await second.find(A)).toEqual({ attempts: 3, notBeforeMs: undefined, suspect: true, deaths: 1 });

      await second.begin(A, { attempt: 4, alone: true });
      expect(await (await afterDeath()).find(A)).toMatchObject({ attempts: 4, suspect: true, deaths: 2 });
    },
  },
  {
    title: 'a suspect stays one through deaths while it does not run',
    run: async ({ machine, opened, afterDeath }) => {
      const store = await opened();
      await store.begin(A, { attempt: 1, alone: true });
      await machine.processDies();
      await opened();

      expect(await (await afterDeath()).find(A)).toMatchObject({ attempts: 1, suspect: true, deaths: 1 });
    },
  },
  {
    title: 'a suspect whose run ended by itself is none any more, its attempts stay',
    run: async ({ opened, afterDeath }) => {
      const store = await opened();
      await store.begin(A, { attempt: 1, alone: true });
      const next = await afterDeath();
      await next.begin(A, { attempt: 2, alone: true });
      await next.end(A, { attempts: 2 });

      expect(await next.find(A)).toEqual({ attempts: 2, notBeforeMs: undefined, suspect: false, deaths: 0 });
    },
  },
  {
    title: 'says at opening how much it holds and how many are suspects',
    run: async ({ machine, opened }) => {
      const store = await opened();
      await store.begin(A, { attempt: 1, alone: false });
      await store.end(B, { attempts: 1 });
      await machine.processDies();

      expect(await machine.newStore().open()).toEqual({ records: 2, suspects: 1 });
    },
  },
  {
    title: 'a process that closes it leaves no suspects',
    run: async ({ opened }) => {
      const store = await opened();
      await store.begin(A, { attempt: 2, alone: false });
      await store.begin(B, { attempt: 1, alone: true });
      await store.close();
      const next = await opened();

      expect(await next.find(A)).toEqual({ attempts: 1, notBeforeMs: undefined, suspect: false, deaths: 0 });
      expect(await next.find(B)).toMatchObject({ attempts: 0, suspect: false });
    },
  },
  {
    title: 'steps of one key take effect in their order without being awaited',
    run: async ({ opened, afterDeath }) => {
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
    },
  },
  {
    title: 'keeps keys apart that differ only in odd characters',
    run: async ({ opened, afterDeath }) => {
      const store = await opened();
      const keys = ['a b', 'a\nb', 'a"b', 'a\\nb', 'Ω', '\ud800', '', 'deleted "a b"', '__proto__'];
      await Promise.all(keys.map((key, at) => store.end(key, { attempts: at + 1 })));
      const next = await afterDeath();

      const found = await Promise.all(keys.map(async (key) => (await next.find(key))?.attempts));
      expect(found).toEqual(keys.map((_key, at) => at + 1));
    },
  },
  {
    title: 'refuses to be used before it is open and after it was closed',
    run: async ({ machine }) => {
      const store = machine.newStore();
      await expect(store.begin(A, { attempt: 1, alone: false })).rejects.toMatchObject({ code: 'ILLEGAL_STATE' });
      await store.open();
      await store.close();

      await expect(store.begin(A, { attempt: 1, alone: false })).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
      await expect(store.end(A, { attempts: 1 })).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
      await expect(store.delete(A)).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
      await expect(async () => store.find(A)).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
    },
  },
  {
    title: 'forgets the longest untouched beyond its limit, never what runs',
    run: async ({ opened, afterDeath }) => {
      const store = await opened(3);
      await store.begin('runs', { attempt: 1, alone: false });
      for (const key of ['one', 'two', 'three', 'four']) await store.end(key, { attempts: 1 });
      await store.end('three', { attempts: 2 });

      expect(await known(store)).toEqual(['runs', 'three', 'four']);
      expect(store.forgotten).toBe(2);
      const next = await afterDeath();
      expect(await known(next)).toEqual(['runs', 'three', 'four']);
      expect(await next.find('three')).toMatchObject({ attempts: 2 });
    },
  },
];

/** Of stores that one process has for itself. */
export const exclusiveAttemptStoreCases: readonly AttemptStoreCase[] = [
  {
    title: 'is locked while another process has it open',
    run: async ({ machine, opened }) => {
      const store = await opened();
      await expect(machine.newStore().open()).rejects.toMatchObject({ code: 'STORE_LOCKED' });

      await store.close();
      await expect(machine.newStore().open()).resolves.toBeDefined();
    },
  },
  {
    title: 'runtimes that share it each open and close it; the last one lets go',
    run: async ({ machine, opened }) => {
      const store = await opened();
      await store.begin(A, { attempt: 1, alone: false });
      expect(await store.open()).toMatchObject({ suspects: 0 });
      await store.close();
      expect((await store.find(A))?.suspect).toBe(false);
      await expect(machine.newStore().open()).rejects.toMatchObject({ code: 'STORE_LOCKED' });

      await store.close();
      await store.close();
      await expect(machine.newStore().open()).resolves.toBeDefined();
    },
  },
];
