// What every EffectStore must do, as data: the contract of ports/effect-store.ts.
import { expect } from 'vitest';
import type { EffectAnswer, EffectStore, EffectTransaction, RecordedOutcome } from '../../src/index.js';

export interface EffectPlace {
  /** Opened. */
  readonly store: EffectStore<object>;
  /** Writes a line in a table of the user's. */
  readonly write: (tx: object, line: string) => Promise<void>;
  /** All lines that are committed. */
  readonly read: () => Promise<readonly string[]>;
}

export interface EffectStoreCase {
  readonly name: string;
  readonly run: (place: EffectPlace) => Promise<void>;
}

const SKIPPED: RecordedOutcome = { version: 1, kind: 'skip', reason: 'done' };
const TIMES = { ttlMs: 60_000, waitMs: 5_000 };

function begun(answer: EffectAnswer<object>): EffectTransaction<object> {
  if (answer.kind !== 'begun') throw new Error(`expected a transaction, got ${answer.kind}`);
  return answer.transaction;
}

export const EFFECT_STORE_CASES: readonly EffectStoreCase[] = [
  {
    name: 'commits what was written together with the record, which a repeat finds',
    run: async ({ store, write, read }) => {
      const transaction = begun(await store.begin('k', TIMES));
      await write(transaction.tx, 'a');
      await transaction.commit(SKIPPED);
      await transaction.rollback();
      expect(await read()).toEqual(['a']);
      expect(await store.begin('k', TIMES)).toEqual({ kind: 'recorded', outcome: SKIPPED });
    },
  },
  {
    name: 'leaves nothing of what was rolled back, and the key is free at once',
    run: async ({ store, write, read }) => {
      const first = begun(await store.begin('k', TIMES));
      await write(first.tx, 'a');
      await first.rollback();
      await first.rollback();
      expect(await read()).toEqual([]);
      const second = begun(await store.begin('k', TIMES));
      await write(second.tx, 'b');
      await second.commit(SKIPPED);
      expect(await read()).toEqual(['b']);
    },
  },
  {
    name: 'of two transactions for one key one does the work, the other finds it done',
    run: async ({ store, write, read }) => {
      const first = begun(await store.begin('k', TIMES));
      const second = store.begin('k', TIMES);
      await write(first.tx, 'a');
      await first.commit(SKIPPED);
      expect(await second).toEqual({ kind: 'recorded', outcome: SKIPPED });
      expect(await read()).toEqual(['a']);
    },
  },
  {
    name: 'of two transactions for one key the second begins when the first is rolled back',
    run: async ({ store, write, read }) => {
      const first = begun(await store.begin('k', TIMES));
      const waiting = store.begin('k', TIMES);
      await write(first.tx, 'a');
      await first.rollback();
      const second = begun(await waiting);
      await write(second.tx, 'b');
      await second.commit(SKIPPED);
      expect(await read()).toEqual(['b']);
    },
  },
  {
    name: 'waits for another transaction as long as it is told, then says busy and leaves that one alone',
    run: async ({ store, write, read }) => {
      const first = begun(await store.begin('k', TIMES));
      await write(first.tx, 'a');
      const startedMs = performance.now();
      expect(await store.begin('k', { ...TIMES, waitMs: 60 })).toEqual({ kind: 'busy', remainingMs: 60 });
      const waitedMs = performance.now() - startedMs;
      // A timer of Node may come a millisecond early.
      expect(waitedMs).toBeGreaterThan(58);
      expect(waitedMs).toBeLessThan(TIMES.waitMs);
      await first.commit(SKIPPED);
      expect(await read()).toEqual(['a']);
    },
  },
  {
    name: "what waited in vain is in nobody's way",
    run: async ({ store }) => {
      const first = begun(await store.begin('k', TIMES));
      const impatient = [1, 2, 3].map((waitMs) => store.begin('k', { ...TIMES, waitMs }));
      const patient = store.begin('k', TIMES);
      expect((await Promise.all(impatient)).map(({ kind }) => kind)).toEqual(['busy', 'busy', 'busy']);
      await first.rollback();
      await begun(await patient).rollback();
      await begun(await store.begin('k', TIMES)).rollback();
    },
  },
  {
    name: 'keeps keys apart, whatever is in them',
    run: async ({ store }) => {
      for (const key of ['k', 'K', 'k\u0000', 'x'.repeat(1_024), '\ud800']) {
        await begun(await store.begin(key, TIMES)).commit(SKIPPED);
        expect((await store.begin(key, TIMES)).kind).toBe('recorded');
      }
    },
  },
  {
    name: 'opens again without a word',
    run: async ({ store }) => {
      await Promise.all([store.open(), store.open()]);
    },
  },
];
