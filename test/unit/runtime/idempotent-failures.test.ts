// idempotent() where things go wrong: a lease that ends too early, and a store that fails at each call.
import type { Outcome } from 'pulsework';
import { idempotent, memoryIdempotencyStore, retry, skip, success } from 'pulsework';
import { settlePromises } from 'pulsework/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { PortCalls } from '../../../src/runtime/port-calls.js';
import { IdempotencyWorld, LEASE_MS, TTL_MS, brokenStore, slowRun } from './idempotent-kit.js';

let world: IdempotencyWorld;

beforeEach(() => {
  world = new IdempotencyWorld();
});

const down = (): Promise<never> => Promise.reject(new Error('the database is down'));

describe('a lease that was lost', () => {
  /** Runs while another takes the key over, then ends with `outcome`. */
  async function outlived(other: (claimKey: string) => Promise<void>, outcome: Outcome = success()): Promise<Outcome> {
    const slow = slowRun();
    const first = world.run(slow.next);
    await settlePromises();
    // This process stands still: it renews nothing while its lease ends.
    const later = { nowMs: world.clock.now() + LEASE_MS, leaseMs: LEASE_MS };
    const claimKey = 'billing/Billing.charge\torder-1';
    expect((await world.store.claim(claimKey, 'other', later)).kind).toBe('claimed');
    await other(claimKey);
    slow.end(outcome);
    return first;
  }

  it('gives way to what the other has recorded', async () => {
    const recorded = { version: 1, kind: 'skip', reason: 'by the other' } as const;
    const outcome = await outlived(async (key) => {
      await world.store.record(key, 'other', recorded, { nowMs: world.clock.now(), ttlMs: TTL_MS });
    });

    expect(outcome).toEqual(skip('by the other'));
    expect(await world.run(() => expect.unreachable('it must not run again'))).toEqual(skip('by the other'));
  });

  it('waits for the other while it works: no success, and nothing of the other is overwritten', async () => {
    expect((await outlived(async () => undefined)).kind).toBe('defer');

    expect((await world.run(() => success())).kind).toBe('defer');
  });

  it('records what was done where the other gave up', async () => {
    const outcome = await outlived((key) => world.store.release(key, 'other'));

    expect(outcome.kind).toBe('success');
    expect(await world.run(() => expect.unreachable('it must not run again'))).toEqual(success());
  });

  it('is reported while the run goes on, and the run is not aborted', async () => {
    const slow = slowRun();
    const first = world.run(slow.next);
    await settlePromises();
    await world.store.release('billing/Billing.charge\torder-1', 'nobody');
    world.store.renew = async () => false;
    await world.clock.advanceBy(LEASE_MS);

    expect(world.logged).toMatchObject([{ level: 'warn', fields: { handler: 'Billing.charge', messageId: '1:2:-1' } }]);
    expect(world.clock.pendingTimers).toEqual([]);
    slow.end(success());
    expect((await first).kind).toBe('success');
  });

  it('twice is a failed run', async () => {
    world.store.record = async () => false;
    world.store.claim = async () => ({ kind: 'claimed' });

    await expect(world.run(() => success())).rejects.toMatchObject({ code: 'IDEMPOTENCY_LEASE_LOST' });
  });
});

describe('a store that fails', () => {
  const failures = (): unknown[] => world.logged.filter(({ level }) => level === 'error').map(({ message }) => message);

  it('at the claim: the handler does not run, the run fails, and it is world.logged at error', async () => {
    world.store = brokenStore('claim', down);

    await expect(world.run(() => expect.unreachable('it must not run'))).rejects.toMatchObject({
      code: 'STORE_FAILED',
      cause: { message: 'the database is down' },
    });
    expect(failures()).toEqual(['claiming an idempotency key failed']);
  });

  it('by never answering: the run fails when the time for calls is over', async () => {
    world.store = brokenStore('claim', () => new Promise(() => undefined));
    const idempotency = idempotent({ key: () => 'order-1', store: world.store, ttlMs: TTL_MS });
    const limited = { ...world.context(), calls: new PortCalls(world.clock, 30_000) };
    const result = idempotency.around(world.deliveryOf('x'), () => success(), limited).catch((error: unknown) => error);
    await world.clock.advanceBy(30_000);

    expect(await result).toMatchObject({ code: 'STORE_FAILED', cause: { code: 'CALL_TIMED_OUT' } });
  });

  it('at the record: no success, the key is freed, and it is world.logged at error', async () => {
    let runs = 0;
    world.store = brokenStore('record', down);
    const work = (): Outcome => {
      runs += 1;
      return success();
    };

    await expect(world.run(work)).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await expect(world.run(work)).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(runs).toBe(2);
    expect(failures()).toEqual(['recording an idempotency key failed', 'recording an idempotency key failed']);
  });

  it('after it has recorded: the repeat gets what was recorded', async () => {
    const inner = memoryIdempotencyStore();
    world.store = {
      ...brokenStore('record', down),
      claim: (...args) => inner.claim(...args),
      release: (...args) => inner.release(...args),
      record: async (...args) => {
        await inner.record(...args);
        throw new Error('the answer was lost');
      },
    };

    await expect(world.run(() => skip('done'))).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(await world.run(() => expect.unreachable('it must not run again'))).toEqual(skip('done'));
  });

  it('at a renewal: the run goes on, and it is renewed at the next time', async () => {
    const inner = memoryIdempotencyStore();
    let renewals = 0;
    world.store = {
      ...brokenStore('renew', down),
      claim: (...args) => inner.claim(...args),
      record: (...args) => inner.record(...args),
      renew: (...args) => {
        renewals += 1;
        return renewals === 1 ? down() : inner.renew(...args);
      },
    };
    const slow = slowRun();
    const first = world.run(slow.next);
    await world.clock.advanceBy(LEASE_MS * 3);
    expect((await world.run(() => success())).kind).toBe('defer');
    slow.end(success());

    expect((await first).kind).toBe('success');
    expect(failures()).toEqual(['renewing an idempotency key failed']);
  });

  it('at a release: the outcome of the run stays, and the key is free when its lease ends', async () => {
    world.store = brokenStore('release', down);

    expect(await world.run(() => retry('later'))).toMatchObject({ kind: 'retry' });
    expect((await world.run(() => success())).kind).toBe('defer');
    await world.clock.advanceBy(LEASE_MS);
    expect((await world.run(() => success())).kind).toBe('success');
  });

  it('because it is full says so with its own code', async () => {
    world.store = memoryIdempotencyStore({ maxEntries: 1 });
    void world.run(slowRun().next, { key: 'a' });
    await settlePromises();

    await expect(world.run(() => success(), { key: 'b' })).rejects.toMatchObject({ code: 'STORE_FULL' });
    world.aborts.abort();
    await world.clock.advanceBy(LEASE_MS);
  });
});
