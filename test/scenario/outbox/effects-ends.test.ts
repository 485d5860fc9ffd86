// The ends of a run with effects that are hard to tell: a commit whose answer is lost, a database that is down, a success that
// comes after its time. In virtual time, each on the last attempt: a wrong step would be a dead letter.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Delivery, EffectStore, HandlerOptions, Outcome } from 'pulsework';
import { PulseworkError, defineHandler, effects, fixedBackoff, on, poison, success, topic } from 'pulsework';
import { memoryOutbox } from 'pulsework/testing';
import type { FakeClock, MemoryOutboxTransaction } from 'pulsework/testing';
import { World } from '../../support/runtime-world.js';

interface Order {
  readonly id: number;
}

type Store = EffectStore<MemoryOutboxTransaction>;
type Transaction = Parameters<Parameters<typeof commitsBy>[0]>[0];

const orders = topic<Order>('orders');

function unreachable(): PulseworkError {
  return new PulseworkError('STORE_UNREACHABLE', 'store "memory": its server is gone, played');
}

function unknownCommit(): PulseworkError {
  return new PulseworkError('STORE_COMMIT_UNKNOWN', 'store "memory": the connection was lost, played');
}

/** A store whose commits do what `commit` does with the real one. */
function commitsBy(commit: (transaction: { readonly commit: () => Promise<void> }) => Promise<void>) {
  return (inner: Store): Store => ({
    name: 'memory',
    open: () => inner.open(),
    begin: async (...args) => {
      const answer = await inner.begin(...args);
      if (answer.kind !== 'begun') return answer;
      const { transaction } = answer;
      return {
        kind: 'begun',
        transaction: {
          tx: transaction.tx,
          commit: (outcome) => commit({ commit: () => transaction.commit(outcome) }),
          rollback: () => transaction.rollback(),
        },
      };
    },
  });
}

/** The first commit does what `commit` does, the others what they do. */
function firstCommitBy(commit: (transaction: Transaction) => Promise<void>): (inner: Store) => Store {
  let commits = 0;
  return commitsBy((transaction) => (++commits === 1 ? commit(transaction) : transaction.commit()));
}

interface Setting {
  readonly store?: (inner: Store, clock: FakeClock) => Store;
  readonly handle?: (clock: FakeClock) => Outcome | Promise<Outcome>;
  readonly more?: Partial<HandlerOptions>;
}

/** One order, which may be delivered once: whatever spends an attempt makes it a dead letter. */
async function ordered({ store = (inner) => inner, handle = () => success(), more = {} }: Setting) {
  const world = new World();
  onTestFinished(() => world.end());
  const written: number[] = [];
  let runs = 0;
  const inner = memoryOutbox({ clock: world.clock }).effects();
  const billing = effects<MemoryOutboxTransaction, Order>({ store: store(inner, world.clock), ttlMs: 3_600_000 });
  const handler = defineHandler({
    ...{ name: 'Billing.charge', source: orders, subscription: 'billing', effects: billing },
    redelivery: { maxDeliveries: 1, backoff: fixedBackoff(1_000) },
    ...more,
    handle: (order: Delivery<Order>) => {
      runs += 1;
      billing.transaction(order).onCommit(() => written.push(order.payload.id));
      return handle(world.clock);
    },
  });
  const runtime = await world.start({ handlers: [handler], callTimeoutMs: 30_000 });
  await world.publish('orders', { id: 1 });
  return {
    ...{ world, runtime, written, inner },
    runs: () => runs,
    facts: async () => ({
      written,
      runs,
      deadLetters: (await world.deadLetters('orders', 'billing')).length,
      backlog: world.backlog('orders', 'billing'),
    }),
  };
}

const never = (): Promise<never> => new Promise(() => undefined);

const lostAnswers: readonly (readonly [string, (transaction: Transaction) => Promise<void>])[] = [
  [
    'is lost',
    async (transaction) => {
      await transaction.commit();
      throw unknownCommit();
    },
  ],
  [
    'never comes',
    async (transaction) => {
      await transaction.commit();
      return never();
    },
  ],
  [
    'is an error without a code',
    async (transaction) => {
      await transaction.commit();
      throw new Error('socket hang up');
    },
  ],
];

describe('a commit whose answer', () => {
  it.each(lostAnswers)('%s counts when it was done: the message comes again and finds it so', async (_name, commit) => {
    const { world, facts } = await ordered({ store: firstCommitBy(commit) });
    await world.clock.advanceBy(120_000);
    expect(await facts()).toEqual({ written: [1], runs: 1, deadLetters: 0, backlog: 0 });
    expect(world.reports.map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ['defer', 1],
      ['success', 1],
    ]);
    expect(world.log).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: expect.stringContaining('whether its effects were committed'),
      }),
    );
  });

  it('is lost when it was not done: the handler runs again, and nothing was spent', async () => {
    const { world, facts } = await ordered({ store: firstCommitBy(() => Promise.reject(unknownCommit())) });
    await world.clock.advanceBy(10_000);
    expect(await facts()).toEqual({ written: [1], runs: 2, deadLetters: 0, backlog: 0 });
  });

  it('says that nothing was done spends the attempt', async () => {
    const full = new PulseworkError('STORE_FULL', 'store "memory": no room, played');
    const { world, facts } = await ordered({ store: firstCommitBy(() => Promise.reject(full)) });
    await world.clock.advanceBy(10_000);
    expect(await facts()).toEqual({ written: [], runs: 1, deadLetters: 1, backlog: 0 });
  });
});

/** A database that cannot be reached from `down.on` to `down.off`. */
function reachable(down: { is: boolean }): (inner: Store) => Store {
  return (inner) => ({
    name: 'memory',
    open: () => inner.open(),
    begin: (...args) => (down.is ? Promise.reject(unreachable()) : inner.begin(...args)),
  });
}

describe('a database that is down', () => {
  it('pauses the subscription, spends nothing and is tried until it is back', async () => {
    const down = { is: true };
    const { world, runtime, facts } = await ordered({ store: reachable(down) });
    await world.clock.advanceBy(600_000);
    expect(runtime.health()[0]).toMatchObject({ dependenciesDown: ['memory'], pausedBy: ['outage'] });
    expect(await facts()).toMatchObject({ runs: 0, deadLetters: 0, backlog: 1 });
    down.is = false;
    await world.clock.advanceBy(120_000);
    expect(await facts()).toEqual({ written: [1], runs: 1, deadLetters: 0, backlog: 0 });
    expect(runtime.health()[0]).toMatchObject({ dependenciesDown: [], pausedBy: [] });
  });

  it('makes no dead letter of what was committed when it went down', async () => {
    const down = { is: false };
    const commitsAndGoesDown = firstCommitBy(async (transaction) => {
      await transaction.commit();
      down.is = true;
      throw unknownCommit();
    });
    const { world, facts } = await ordered({ store: (inner) => reachable(down)(commitsAndGoesDown(inner)) });
    await world.clock.advanceBy(600_000);
    down.is = false;
    await world.clock.advanceBy(120_000);
    expect(await facts()).toEqual({ written: [1], runs: 1, deadLetters: 0, backlog: 0 });
  });

  it('that holds what a newer version wrote makes no dead letter of what is done', async () => {
    const recorded = { version: 2, kind: 'success', messages: [] } as never;
    const { world, runtime, facts } = await ordered({
      store: (inner) => ({
        ...{ name: 'memory', open: () => inner.open() },
        begin: () => Promise.resolve({ kind: 'recorded', outcome: recorded }),
      }),
    });
    await world.clock.advanceBy(600_000);
    expect(runtime.health()[0]).toMatchObject({ dependenciesDown: ['memory'] });
    expect(await facts()).toMatchObject({ runs: 0, deadLetters: 0, backlog: 1 });
  });

  it.each([
    ['onError', { onError: [on(PulseworkError, (error) => poison(error))] }, 1, []],
    ['outage', { outage: [{ dependency: 'billing database', errors: [PulseworkError] }] }, 0, ['billing database']],
  ])('is what the rules of the handler make of it: %s', async (_rule, more, deadLetters, dependenciesDown) => {
    const { world, runtime, facts } = await ordered({ store: reachable({ is: true }), more });
    await world.clock.advanceBy(10_000);
    expect(await facts()).toMatchObject({ runs: 0, deadLetters });
    expect(runtime.health()[0]).toMatchObject({ dependenciesDown });
  });
});

describe('with a time limit', () => {
  const after = (clock: FakeClock, ms: number): Promise<void> =>
    new Promise((resolve) => void clock.setTimer(ms, resolve));

  it.each([
    ['before it is given up', 1_500],
    ['after it was given up', 10_000],
  ])('a success that comes too late, %s, is rolled back: the attempt has failed', async (_name, handleMs) => {
    let key = '';
    const { world, inner, facts } = await ordered({
      store: (real) => ({
        ...{ name: 'memory', open: () => real.open() },
        begin: (asked, times) => real.begin((key = asked), times),
      }),
      handle: async (clock) => {
        await after(clock, handleMs);
        return success();
      },
      more: { timeoutMs: 1_000 },
    });
    await world.clock.advanceBy(60_000);
    expect(await facts()).toEqual({ written: [], runs: 1, deadLetters: 1, backlog: 0 });
    expect(world.reports[0]?.failure?.error).toMatchObject({ code: 'HANDLER_TIMED_OUT' });
    expect(await inner.begin(key, { ttlMs: 1, waitMs: 1 })).toMatchObject({ kind: 'begun' });
  });

  it('a commit may take longer: what was asked for in time counts', async () => {
    const store = (inner: Store, clock: FakeClock): Store =>
      commitsBy(async (transaction) => {
        await after(clock, 20_000);
        await transaction.commit();
      })(inner);
    const { world, facts } = await ordered({ store, more: { timeoutMs: 1_000 } });
    await world.clock.advanceBy(60_000);
    expect(await facts()).toEqual({ written: [1], runs: 1, deadLetters: 0, backlog: 0 });
  });

  it('the wait for a transaction is not the time of the handler', async () => {
    const store = (inner: Store, clock: FakeClock): Store => ({
      name: 'memory',
      open: () => inner.open(),
      begin: async (...args) => {
        await after(clock, 20_000);
        return inner.begin(...args);
      },
    });
    const { world, facts } = await ordered({
      store,
      handle: async (clock) => {
        await after(clock, 900);
        return success();
      },
      more: { timeoutMs: 1_000 },
    });
    await world.clock.advanceBy(60_000);
    expect(await facts()).toEqual({ written: [1], runs: 1, deadLetters: 0, backlog: 0 });
  });
});
