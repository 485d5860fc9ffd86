// What every IdempotencyStore must hold to, as data. Times are passed in; a store that goes by a clock of its own has that moved to
// the time of each call.
import type { IdempotencyStore, RecordedOutcome } from 'pulsework';
import { expect } from 'vitest';

export interface IdempotencyStoreCase {
  readonly title: string;
  /** @param store holds nothing */
  readonly run: (store: IdempotencyStore) => Promise<void>;
}

const DONE: RecordedOutcome = {
  version: 1,
  kind: 'success',
  messages: [{ topic: 'persistent://public/default/receipts', payload: 'AAH/', properties: { a: 'b' }, key: 'k' }],
};
const SKIPPED: RecordedOutcome = { version: 1, kind: 'skip', reason: 'not for us' };
const LEASE = { leaseMs: 1_000 };
const TTL = { ttlMs: 60_000 };

export const idempotencyStoreCases: readonly IdempotencyStoreCase[] = [
  {
    title: 'gives a free key to whoever claims it first, and tells the next how long to wait',
    run: async (store) => {
      expect(await store.claim('k', 'one', { nowMs: 0, ...LEASE })).toEqual({ kind: 'claimed' });
      expect(await store.claim('k', 'two', { nowMs: 400, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 600 });
      expect(await store.claim('other', 'two', { nowMs: 400, ...LEASE })).toEqual({ kind: 'claimed' });
    },
  },
  {
    title: 'of many claims at once one gets the key',
    run: async (store) => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) => store.claim('k', `owner-${n}`, { nowMs: 0, ...LEASE })),
      );

      expect(answers.filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
      expect(answers.filter(({ kind }) => kind === 'busy')).toHaveLength(49);
    },
  },
  {
    title: 'keeps a key from its own owner too',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });

      expect(await store.claim('k', 'one', { nowMs: 1, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 999 });
    },
  },
  {
    title: 'gives a key away once its lease has ended, not a millisecond before',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });

      expect(await store.claim('k', 'two', { nowMs: 999, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 1 });
      expect(await store.claim('k', 'two', { nowMs: 1_000, ...LEASE })).toEqual({ kind: 'claimed' });
    },
  },
  {
    title: 'a renewed lease counts from the renewal',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });

      expect(await store.renew('k', 'one', { nowMs: 900, ...LEASE })).toBe(true);
      expect(await store.claim('k', 'two', { nowMs: 1_500, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 400 });
    },
  },
  {
    title: 'a lease that has ended can be renewed while nobody took the key',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });

      expect(await store.renew('k', 'one', { nowMs: 5_000, ...LEASE })).toBe(true);
      expect(await store.claim('k', 'two', { nowMs: 5_001, ...LEASE })).toMatchObject({ kind: 'busy' });
    },
  },
  {
    title: 'answers with the recorded outcome until its time is over',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });
      expect(await store.record('k', 'one', DONE, { nowMs: 100, ...TTL })).toBe(true);

      expect(await store.claim('k', 'two', { nowMs: 60_099, ...LEASE })).toEqual({ kind: 'recorded', outcome: DONE });
      expect(await store.claim('k', 'two', { nowMs: 60_100, ...LEASE })).toEqual({ kind: 'claimed' });
      await store.release('k', 'two');
      expect(await store.claim('k', 'three', { nowMs: 60_101, ...LEASE })).toEqual({ kind: 'claimed' });
    },
  },
  {
    title: 'records after the lease has ended while nobody took the key',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });

      expect(await store.record('k', 'one', DONE, { nowMs: 5_000, ...TTL })).toBe(true);
    },
  },
  {
    title: 'a repeated record of the same owner is no error, and changes nothing',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });
      await store.record('k', 'one', DONE, { nowMs: 0, ...TTL });

      expect(await store.record('k', 'one', SKIPPED, { nowMs: 1, ...TTL })).toBe(true);
      expect(await store.claim('k', 'two', { nowMs: 2, ...LEASE })).toEqual({ kind: 'recorded', outcome: DONE });
    },
  },
  {
    title: 'whoever lost the claim can neither renew, record nor release',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });
      await store.claim('k', 'two', { nowMs: 1_000, ...LEASE });

      expect(await store.renew('k', 'one', { nowMs: 1_001, ...LEASE })).toBe(false);
      expect(await store.record('k', 'one', SKIPPED, { nowMs: 1_001, ...TTL })).toBe(false);
      await store.release('k', 'one');
      expect(await store.claim('k', 'three', { nowMs: 1_500, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 500 });
      expect(await store.record('k', 'two', DONE, { nowMs: 1_600, ...TTL })).toBe(true);
      expect(await store.record('k', 'one', SKIPPED, { nowMs: 1_700, ...TTL })).toBe(false);
      expect(await store.claim('k', 'three', { nowMs: 1_800, ...LEASE })).toEqual({ kind: 'recorded', outcome: DONE });
    },
  },
  {
    title: 'a released key is free at once; a recorded one cannot be released',
    run: async (store) => {
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });
      await store.release('k', 'one');
      expect(await store.claim('k', 'two', { nowMs: 1, ...LEASE })).toEqual({ kind: 'claimed' });

      await store.record('k', 'two', DONE, { nowMs: 2, ...TTL });
      await store.release('k', 'two');
      expect(await store.claim('k', 'three', { nowMs: 3, ...LEASE })).toMatchObject({ kind: 'recorded' });
    },
  },
  {
    title: 'what was never claimed can be neither renewed nor recorded',
    run: async (store) => {
      expect(await store.renew('k', 'one', { nowMs: 0, ...LEASE })).toBe(false);
      expect(await store.record('k', 'one', DONE, { nowMs: 0, ...TTL })).toBe(false);
    },
  },
  {
    title: 'keeps keys apart that differ only in odd characters or at their end, and gives outcomes back as they were',
    run: async (store) => {
      const long = 'Ω'.repeat(1_500);
      const keys = ['a', 'a ', 'A', 'a\0', 'a\0b', '\ud800', '\udfff', '\ufffd', '"a"', '__proto__', long, `${long}!`];
      for (const key of keys) {
        const reason = `${key} is done`;
        expect(await store.claim(key, 'one', { nowMs: 0, ...LEASE })).toEqual({ kind: 'claimed' });
        expect(await store.record(key, 'one', { version: 1, kind: 'skip', reason }, { nowMs: 0, ...TTL })).toBe(true);
      }

      for (const key of keys) {
        const outcome = { version: 1, kind: 'skip', reason: `${key} is done` };
        expect(await store.claim(key, 'two', { nowMs: 1, ...LEASE })).toEqual({ kind: 'recorded', outcome });
      }
    },
  },
  {
    title: 'gives a text of every kind back as it was',
    run: async (store) => {
      const properties = JSON.parse('{ "__proto__": "\\u0000", "\\ud800": "\\"" }') as Record<string, string>;
      const message = {
        topic: 't',
        payload: null,
        properties,
        key: { base64: 'AA==' },
        eventTimeMs: 1,
        deliverAtMs: 2,
      };
      const outcome: RecordedOutcome = { version: 1, kind: 'success', messages: [message] };
      await store.claim('k', 'one', { nowMs: 0, ...LEASE });
      await store.record('k', 'one', outcome, { nowMs: 0, ...TTL });

      expect(await store.claim('k', 'two', { nowMs: 1, ...LEASE })).toEqual({ kind: 'recorded', outcome });
    },
  },
];
