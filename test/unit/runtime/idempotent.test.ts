// idempotent(): one piece of work per key, whoever comes and whatever dies on the way.
import { getEventListeners } from 'node:events';
import type { Outcome } from 'pulsework';
import {
  PulseworkError,
  defer,
  dependencyDown,
  fatal,
  idempotent,
  memoryIdempotencyStore,
  poison,
  retry,
  retryAfter,
  skip,
  success,
  topic,
} from 'pulsework';
import { settlePromises } from 'pulsework/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Order } from './idempotent-kit.js';
import { IdempotencyWorld, LEASE_MS, TTL_MS, messagesOf, slowRun } from './idempotent-kit.js';

const receipts = topic('receipts');

let world: IdempotencyWorld;

beforeEach(() => {
  world = new IdempotencyWorld();
});

describe('a key that was worked on', () => {
  it('is answered with the recorded outcome, its messages the very same, ids included', async () => {
    const first = await world.run(() => success(receipts.message({ n: 1 }), receipts.message({ n: 2 })));
    // The process dies between the record and the settlement; the message comes again to another one.
    const repeat = await world.run(() => expect.unreachable('it must not run again'), { process: 'host/2' });

    expect(repeat.kind).toBe('success');
    expect(messagesOf(first)).toHaveLength(2);
    expect(messagesOf(repeat)).toEqual(messagesOf(first));
    expect((messagesOf(repeat)[1] as { properties: unknown }).properties).toEqual({
      'pulsework-message-id': '1:2:-1/host/1/1',
    });
  });

  it.each([
    ['skip', skip('not for us')],
    ['poison', poison('never')],
    ['a success without messages', success()],
  ])('%s is recorded too', async (_title, outcome) => {
    expect(await world.run(() => outcome)).toEqual(outcome);

    expect(await world.run(() => expect.unreachable('it must not run again'))).toEqual(outcome);
  });

  it('is worked on again once its time is over', async () => {
    await world.run(() => success());
    await world.clock.advanceBy(TTL_MS);

    expect(await world.run(() => skip('again'))).toMatchObject({ kind: 'skip' });
  });

  it('of another handler is another key', async () => {
    await world.run(() => success(), { handler: 'Billing.charge' });

    expect(await world.run(() => skip('ran'), { handler: 'Billing.refund' })).toMatchObject({ kind: 'skip' });
  });

  it('is the same key under the same scope, whatever the handler is called', async () => {
    const scoped = idempotent<Order>({
      key: ({ payload }) => payload.id,
      store: world.store,
      ttlMs: TTL_MS,
      scope: 'billing',
    });
    await scoped.around(world.deliveryOf('a', 'old'), () => success(), world.context());

    expect(await scoped.around(world.deliveryOf('a', 'new'), () => skip('ran'), world.context())).toEqual(success());
  });
});

describe('a key that is claimed', () => {
  it('puts others off until its lease ends, and never answers success', async () => {
    const slow = slowRun();
    const first = world.run(slow.next);
    await world.clock.advanceBy(400);
    const second = await world.run(() => expect.unreachable('it must not run beside the first'), { process: 'host/2' });
    slow.end(success());
    await first;

    expect(second).toMatchObject({ kind: 'defer', until: LEASE_MS - 400 });
  });

  it('of two that come at once one runs', async () => {
    let runs = 0;
    const work = async (): Promise<Outcome> => {
      runs += 1;
      await settlePromises();
      return success();
    };
    const outcomes = await Promise.all([world.run(work), world.run(work, { process: 'host/2' })]);

    expect(runs).toBe(1);
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['defer', 'success']);
  });

  it('stays claimed for a run much longer than its lease', async () => {
    const slow = slowRun();
    const first = world.run(slow.next);
    for (let n = 0; n < 20; n++) {
      await world.clock.advanceBy(LEASE_MS - 1);
      expect((await world.run(() => success(), { process: 'host/2' })).kind).toBe('defer');
    }
    expect(getEventListeners(world.aborts.signal, 'abort').length).toBe(1);
    slow.end(success());

    expect((await first).kind).toBe('success');
    expect(world.clock.pendingTimers).toEqual([]);
    expect(getEventListeners(world.aborts.signal, 'abort').length).toBe(0);
  });

  it('is no longer renewed once the run was told to end, so that a handler that hangs does not keep it', async () => {
    void world.run(slowRun().next);
    await world.clock.advanceBy(LEASE_MS * 2);
    world.aborts.abort();
    await world.clock.advanceBy(LEASE_MS);
    world.aborts = new AbortController();

    expect((await world.run(() => skip('ran'), { process: 'host/2' })).kind).toBe('skip');
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('of a process that died is free when the lease ends', async () => {
    await world.store.claim('billing/Billing.charge\torder-1', 'dead', { nowMs: world.clock.now(), leaseMs: LEASE_MS });
    expect(await world.run(() => success())).toMatchObject({ kind: 'defer', until: LEASE_MS });
    await world.clock.advanceBy(LEASE_MS);

    expect((await world.run(() => success())).kind).toBe('success');
  });
});

describe('a run that fails', () => {
  it.each([
    ['retry', retry('later')],
    ['retry-after', retryAfter(5)],
    ['defer', defer(5)],
    ['dependency-down', dependencyDown('gateway')],
    ['fatal', fatal('stop')],
  ])('with %s frees its key at once', async (_kind, outcome) => {
    expect(await world.run(() => outcome)).toBe(outcome);

    expect((await world.run(() => skip('ran'))).kind).toBe('skip');
  });

  it('by throwing frees its key at once, and the error stays what it was', async () => {
    const error = new Error('from the handler');
    await expect(world.run(() => Promise.reject(error))).rejects.toBe(error);
    await expect(
      world.run(() => {
        throw error;
      }),
    ).rejects.toBe(error);

    expect((await world.run(() => skip('ran'))).kind).toBe('skip');
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('by returning what is no outcome gives that back, and frees its key', async () => {
    expect(await world.run(() => undefined as never)).toBeUndefined();

    expect((await world.run(() => skip('ran'))).kind).toBe('skip');
  });

  it('because a message can never be published is a failed run with that cause, and frees its key', async () => {
    const refused = new PulseworkError('PUBLISH_REFUSED', 'too large');
    const idempotency = idempotent({ key: () => 'order-1', store: world.store, ttlMs: TTL_MS });
    const refusing = { ...world.context(), prepare: () => Promise.reject(refused) };
    const outcome = await idempotency.around(world.deliveryOf('x'), () => success(receipts.message(1)), refusing);

    expect(outcome).toMatchObject({ kind: 'retry', cause: 'publish-refused', failure: { error: refused } });
    expect((await world.run(() => skip('ran'))).kind).toBe('skip');
  });
});

describe('the options', () => {
  it('are all checked at once', () => {
    expect(() => idempotent({ kee: 1, store: {}, ttlMs: 0, leaseMs: 5, scope: '' } as never)).toThrow(
      expect.objectContaining({
        problems: [
          'idempotent: "key" is missing; it must be a function from a delivery to a text',
          'idempotent: unknown option "kee", did you mean "key"?',
          'idempotent: "store" must have the methods claim, renew, record, release (e.g. memoryIdempotencyStore()), got an object',
          'idempotent: "ttlMs" must be a duration of at least 1 ms (in milliseconds), got 0',
          'idempotent: "leaseMs" must be a duration of at least 100 ms (in milliseconds), got 5',
          'idempotent: "scope" must be a text that is not empty, got ""',
        ],
      }) as Error,
    );
  });

  it('that are missing are named, and a first argument that is no topic', () => {
    expect(() => idempotent({} as never)).toThrow(
      expect.objectContaining({
        problems: [
          'idempotent: "key" is missing; it must be a function from a delivery to a text',
          'idempotent: "store" is missing; it must be an idempotency store such as memoryIdempotencyStore()',
          'idempotent: "ttlMs" is missing; it must be a duration in milliseconds',
        ],
      }) as Error,
    );
    const { key, store, ttlMs } = { key: () => 'a', store: memoryIdempotencyStore(), ttlMs: 1 };
    expect(() => idempotent('orders' as never, { key, store, ttlMs })).toThrow(
      'idempotent: it takes a topic or a list of topics before the options, got "orders"',
    );
    expect(() => idempotent(topic('orders'), undefined as never)).toThrow('"options" must be an object such as');
  });

  it.each([
    ['throws', () => expect.unreachable('no id')],
    ['gives nothing', () => undefined as never],
    ['gives an empty text', () => ''],
    ['gives a text without end', () => 'x'.repeat(1_025)],
  ])('a key that %s fails the run before the handler', async (_title, key) => {
    const idempotency = idempotent({ key, store: world.store, ttlMs: TTL_MS });
    const next = (): Outcome => expect.unreachable('it must not run');

    await expect(idempotency.around(world.deliveryOf('x'), next, world.context())).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_INVALID',
    });
  });
});
