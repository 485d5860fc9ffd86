// What every IdempotencyStore must hold to. Times are passed in; a store that goes by a clock of its own lets a test move it.
import type { IdempotencyStore, RecordedOutcome } from 'pulsework';
import { memoryIdempotencyStore } from 'pulsework';
import { describe, expect, it } from 'vitest';

const DONE: RecordedOutcome = {
  version: 1,
  kind: 'success',
  messages: [{ topic: 'persistent://public/default/receipts', payload: 'AAH/', properties: { a: 'b' }, key: 'k' }],
};
const SKIPPED: RecordedOutcome = { version: 1, kind: 'skip', reason: 'not for us' };
const LEASE = { leaseMs: 1_000 };
const TTL = { ttlMs: 60_000 };

const newStores: Readonly<Record<string, () => IdempotencyStore>> = { memory: () => memoryIdempotencyStore() };

describe.each(Object.entries(newStores))('an idempotency store (%s)', (_name, newStore) => {
  it('gives a free key to whoever claims it first, and tells the next how long to wait', async () => {
    const store = newStore();

    expect(await store.claim('k', 'one', { nowMs: 0, ...LEASE })).toEqual({ kind: 'claimed' });
    expect(await store.claim('k', 'two', { nowMs: 400, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 600 });
    expect(await store.claim('other', 'two', { nowMs: 400, ...LEASE })).toEqual({ kind: 'claimed' });
  });

  it('of many claims at once one gets the key', async () => {
    const store = newStore();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => store.claim('k', `owner-${n}`, { nowMs: 0, ...LEASE })),
    );

    expect(answers.filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
    expect(answers.filter(({ kind }) => kind === 'busy')).toHaveLength(49);
  });

  it('keeps a key from its own owner too', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });

    expect(await store.claim('k', 'one', { nowMs: 1, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 999 });
  });

  it('gives a key away once its lease has ended, not a millisecond before', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });

    expect(await store.claim('k', 'two', { nowMs: 999, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 1 });
    expect(await store.claim('k', 'two', { nowMs: 1_000, ...LEASE })).toEqual({ kind: 'claimed' });
  });

  it('a renewed lease counts from the renewal', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });

    expect(await store.renew('k', 'one', { nowMs: 900, ...LEASE })).toBe(true);
    expect(await store.claim('k', 'two', { nowMs: 1_500, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 400 });
  });

  it('a lease that has ended can be renewed while nobody took the key', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });

    expect(await store.renew('k', 'one', { nowMs: 5_000, ...LEASE })).toBe(true);
    expect(await store.claim('k', 'two', { nowMs: 5_001, ...LEASE })).toMatchObject({ kind: 'busy' });
  });

  it('answers with the recorded outcome until its time is over', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });
    expect(await store.record('k', 'one', DONE, { nowMs: 100, ...TTL })).toBe(true);

    expect(await store.claim('k', 'two', { nowMs: 60_099, ...LEASE })).toEqual({ kind: 'recorded', outcome: DONE });
    expect(await store.claim('k', 'two', { nowMs: 60_100, ...LEASE })).toEqual({ kind: 'claimed' });
    await store.release('k', 'two');
    expect(await store.claim('k', 'three', { nowMs: 60_101, ...LEASE })).toEqual({ kind: 'claimed' });
  });

  it('records after the lease has ended while nobody took the key', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });

    expect(await store.record('k', 'one', DONE, { nowMs: 5_000, ...TTL })).toBe(true);
  });

  it('a repeated record of the same owner is no error, and changes nothing', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });
    await store.record('k', 'one', DONE, { nowMs: 0, ...TTL });

    expect(await store.record('k', 'one', SKIPPED, { nowMs: 1, ...TTL })).toBe(true);
    expect(await store.claim('k', 'two', { nowMs: 2, ...LEASE })).toEqual({ kind: 'recorded', outcome: DONE });
  });

  it('whoever lost the claim can neither renew, record nor release', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });
    await store.claim('k', 'two', { nowMs: 1_000, ...LEASE });

    expect(await store.renew('k', 'one', { nowMs: 1_001, ...LEASE })).toBe(false);
    expect(await store.record('k', 'one', SKIPPED, { nowMs: 1_001, ...TTL })).toBe(false);
    await store.release('k', 'one');
    expect(await store.claim('k', 'three', { nowMs: 1_500, ...LEASE })).toEqual({ kind: 'busy', remainingMs: 500 });
    expect(await store.record('k', 'two', DONE, { nowMs: 1_600, ...TTL })).toBe(true);
    expect(await store.record('k', 'one', SKIPPED, { nowMs: 1_700, ...TTL })).toBe(false);
    expect(await store.claim('k', 'three', { nowMs: 1_800, ...LEASE })).toEqual({ kind: 'recorded', outcome: DONE });
  });

  it('a released key is free at once; a recorded one cannot be released', async () => {
    const store = newStore();
    await store.claim('k', 'one', { nowMs: 0, ...LEASE });
    await store.release('k', 'one');
    expect(await store.claim('k', 'two', { nowMs: 1, ...LEASE })).toEqual({ kind: 'claimed' });

    await store.record('k', 'two', DONE, { nowMs: 2, ...TTL });
    await store.release('k', 'two');
    expect(await store.claim('k', 'three', { nowMs: 3, ...LEASE })).toMatchObject({ kind: 'recorded' });
  });

  it('what was never claimed can be neither renewed nor recorded', async () => {
    const store = newStore();

    expect(await store.renew('k', 'one', { nowMs: 0, ...LEASE })).toBe(false);
    expect(await store.record('k', 'one', DONE, { nowMs: 0, ...TTL })).toBe(false);
  });
});
