// The limits of the idempotency store in memory.
import { memoryIdempotencyStore } from 'pulsework';
import type { MemoryIdempotencyStore, RecordedOutcome } from 'pulsework';
import { expect, it } from 'vitest';

const LEASE = { leaseMs: 1_000 };
const skipped: RecordedOutcome = { version: 1, kind: 'skip', reason: 'done' };

function success(payloadBytes: number): RecordedOutcome {
  const payload = 'A'.repeat(payloadBytes);
  return { version: 1, kind: 'success', messages: [{ topic: 't', payload, properties: {} }] };
}

async function recordAt(store: MemoryIdempotencyStore, key: string, nowMs: number, outcome = skipped): Promise<void> {
  await store.claim(key, key, { nowMs, ...LEASE });
  await store.record(key, key, outcome, { nowMs, ttlMs: 10_000 });
}

async function knows(store: MemoryIdempotencyStore, key: string, nowMs: number): Promise<boolean> {
  const { kind } = await store.claim(key, 'asks', { nowMs, ...LEASE });
  await store.release(key, 'asks');
  return kind === 'recorded';
}

it('forgets the outcome recorded first beyond maxEntries, and counts it', async () => {
  const store = memoryIdempotencyStore({ maxEntries: 3 });
  for (const key of ['a', 'b', 'c', 'd']) await recordAt(store, key, 0);

  expect(store.size).toBe(3);
  expect(store.forgotten).toBe(1);
  expect(await knows(store, 'd', 1)).toBe(true);
  expect(await knows(store, 'a', 1)).toBe(false);
});

it('forgets what is expired first, which does not count', async () => {
  const store = memoryIdempotencyStore({ maxEntries: 3 });
  for (const key of ['a', 'b', 'c']) await recordAt(store, key, 0);
  await recordAt(store, 'd', 10_000);

  expect(store.size).toBe(1);
  expect(store.forgotten).toBe(0);
});

it('never gives up a claim that holds: there is no room then', async () => {
  const store = memoryIdempotencyStore({ maxEntries: 2 });
  await store.claim('a', 'one', { nowMs: 0, ...LEASE });
  await store.claim('b', 'two', { nowMs: 500, ...LEASE });

  await expect(store.claim('c', 'three', { nowMs: 999, ...LEASE })).rejects.toMatchObject({
    code: 'STORE_FULL',
    message: expect.stringContaining('maxEntries') as string,
  });
  expect(await store.claim('c', 'three', { nowMs: 1_000, ...LEASE })).toEqual({ kind: 'claimed' });
  expect(await store.renew('a', 'one', { nowMs: 1_001, ...LEASE })).toBe(false);
});

it('forgets the outcomes recorded first beyond maxBytes', async () => {
  const store = memoryIdempotencyStore({ maxBytes: 25_000 });
  for (const key of ['a', 'b', 'c', 'd']) await recordAt(store, key, 0, success(10_000));

  expect(store.forgotten).toBe(2);
  expect(await knows(store, 'c', 1)).toBe(true);
  expect(await knows(store, 'b', 1)).toBe(false);
});

it('refuses an outcome that is larger than maxBytes, and keeps the claim', async () => {
  const store = memoryIdempotencyStore({ maxBytes: 5_000 });
  await store.claim('a', 'one', { nowMs: 0, ...LEASE });

  await expect(store.record('a', 'one', success(10_000), { nowMs: 0, ttlMs: 10_000 })).rejects.toMatchObject({
    code: 'STORE_FULL',
  });
  expect(await store.renew('a', 'one', { nowMs: 1, ...LEASE })).toBe(true);
});

it('checks its options', () => {
  expect(() => memoryIdempotencyStore({ maxEntries: 0, maxByte: 1 } as never)).toThrow(
    expect.objectContaining({
      problems: [
        'memoryIdempotencyStore: unknown option "maxByte", did you mean "maxBytes"?',
        'memoryIdempotencyStore: "maxEntries" must be a positive integer, got 0',
      ],
    }) as Error,
  );
});
