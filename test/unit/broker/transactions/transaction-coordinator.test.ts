// How transactions begin and end, by the rules T-01 to T-06, T-30, T-35, T-36 and T-47; on each metadata store.
import type { MetadataStore } from 'pulsework/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TransactionCoordinator } from '../../../../src/broker/transactions/transaction-coordinator.js';
import { transactionKey } from '../../../../src/core/transaction-id.js';
import { TransactionNumbers } from '../../../../src/broker/transactions/transaction-numbers.js';
import type { MetadataPlace } from '../../../support/metadata-places.js';
import { metadataPlaces } from '../../../support/metadata-places.js';
import type { World } from './transaction-kit.js';
import { SEGMENT, WRITE, ackOn, faultyStore, worldOf } from './transaction-kit.js';

const TIMEOUT = { timeoutMs: 60_000 };

describe.each(Object.entries(metadataPlaces))('a transaction coordinator (%s)', (_name, newPlace) => {
  let place: MetadataPlace;
  let store: MetadataStore;
  let world: World;
  let coordinator: TransactionCoordinator;

  beforeEach(async () => {
    place = newPlace();
    store = place.newStore();
    await store.open();
    world = worldOf(store);
    coordinator = world.coordinator();
  });

  afterEach(async () => {
    await coordinator.close();
    await store.close();
    place.end();
  });

  const headerOf = async (id: Parameters<typeof transactionKey>[0]) =>
    (await world.records.readHeader(transactionKey(id)))?.header;

  /** Paths of the events of all participants, without their numbers. */
  async function events(): Promise<readonly string[]> {
    const found = await world.records.eventsUntil(Number.MAX_SAFE_INTEGER - 1, 1_000);
    return found.map((path) => path.slice('/txn/'.length, path.lastIndexOf('-')));
  }

  it('T-30, T-34: a new transaction is OPEN, with its timeout, the time and its owner', async () => {
    const id = await coordinator.newTransaction({ timeoutMs: 30_000, owner: 'anna' });

    expect(await headerOf(id)).toEqual({
      state: 'OPEN',
      timeoutMs: 30_000,
      createdAtMs: 1_000_000,
      finalizedAtMs: null,
      owner: 'anna',
    });
  });

  it('T-06, T-35: ids are the number of the coordinator and one that it counts, from 0', async () => {
    const third = world.coordinator({ coordinator: 3 });

    const ids = [await coordinator.newTransaction(TIMEOUT), await coordinator.newTransaction(TIMEOUT)];
    expect(ids.map(transactionKey)).toEqual(['0_0', '0_1']);
    expect(transactionKey(await third.newTransaction(TIMEOUT))).toBe('3_0');
    await third.close();
  });

  it('T-35: no id is given twice, by how many coordinators of one number ever, nor after a restart', async () => {
    const others = [world.coordinator(), world.coordinator()];
    const first = await Promise.all(
      [coordinator, ...others].flatMap((one) => Array.from({ length: 100 }, () => one.newTransaction(TIMEOUT))),
    );
    const restarted = world.coordinator();
    const later = await restarted.newTransaction(TIMEOUT);
    await Promise.all([...others, restarted].map((one) => one.close()));

    const keys = [...first, later].map(transactionKey);
    expect(new Set(keys).size).toBe(301);
    expect(later.leastBits).toBeGreaterThan(
      first.reduce((max, { leastBits }) => (leastBits > max ? leastBits : max), 0n),
    );
  });

  it('T-35: numbers are taken by compare-and-set, so that none is given twice, not even one whose header is gone', async () => {
    let isLost = false;
    const losing = faultyStore(store, (_call, name) => {
      if (name !== 'put' || isLost) return undefined;
      isLost = true;
      return { kind: 'lose-answer' };
    });
    const counters = [store, store, losing].map((each) => new TransactionNumbers(worldOf(each).records, 0));
    await expect(counters[2]?.next()).rejects.toMatchObject({ code: 'STORE_FAILED' });
    const given = await Promise.all(counters.flatMap((each) => Array.from({ length: 150 }, () => each.next())));

    expect(new Set(given).size).toBe(450);
  });

  it('T-35: a number whose header is there already, because the count was lost, is passed over', async () => {
    await coordinator.newTransaction(TIMEOUT);
    await store.delete('/txn/tc-seq/0');

    expect(transactionKey(await world.coordinator().newTransaction(TIMEOUT))).toBe('0_1');
  });

  it('T-35: participants need not be registered: their operations are what names them', async () => {
    const id = await coordinator.newTransaction(TIMEOUT);
    await world.records.appendOp(transactionKey(id), ackOn('billing'));
    await coordinator.end(id, 'commit');

    expect(await events()).toHaveLength(1);
  });

  it.each([
    ['commit', 'COMMITTED'],
    ['abort', 'ABORTED'],
  ] as const)('T-30, T-34: %s makes it %s, with the time, in one write of the header', async (action, state) => {
    const puts: string[] = [];
    const watched = worldOf(
      faultyStore(store, (_call, name) => {
        if (name === 'put') puts.push(name);
        return undefined;
      }),
      world.clock,
    ).coordinator();
    const id = await coordinator.newTransaction(TIMEOUT);
    await world.clock.advanceBy(250);
    await watched.end(id, action);
    await watched.close();

    expect(puts).toHaveLength(1);
    expect(await headerOf(id)).toMatchObject({ state, createdAtMs: 1_000_000, finalizedAtMs: 1_000_250 });
  });

  it('T-01, T-30: there is nothing between OPEN and its end, and an end never changes', async () => {
    const [first, second] = [await coordinator.newTransaction(TIMEOUT), await coordinator.newTransaction(TIMEOUT)];
    await coordinator.end(first, 'commit');
    await coordinator.end(second, 'abort');
    const before = [await headerOf(first), await headerOf(second)];
    await world.clock.advanceBy(10);
    await coordinator.end(first, 'commit');
    await coordinator.end(second, 'abort');

    await expect(coordinator.end(first, 'abort')).rejects.toThrow();
    await expect(coordinator.end(second, 'commit')).rejects.toThrow();
    expect([await headerOf(first), await headerOf(second)]).toEqual(before);
  });

  it('T-36: an end otherwise than it ended is InvalidTxnStatus', async () => {
    const [first, second] = [await coordinator.newTransaction(TIMEOUT), await coordinator.newTransaction(TIMEOUT)];
    await coordinator.end(first, 'commit');
    await coordinator.end(second, 'abort');

    await expect(coordinator.end(first, 'abort')).rejects.toMatchObject({
      code: 'TRANSACTION_ENDED',
      message: 'Transaction (0,0) is COMMITTED, cannot transition to ABORTED',
      state: 'COMMITTED',
      retriable: false,
    });
    await expect(coordinator.end(second, 'commit')).rejects.toMatchObject({
      code: 'TRANSACTION_ENDED',
      message: 'Transaction (0,1) is ABORTED, cannot transition to COMMITTED',
      state: 'ABORTED',
      retriable: false,
    });
  });

  it('T-36: one that is not known is TransactionNotFound', async () => {
    await expect(coordinator.end({ mostBits: 2n, leastBits: 41n }, 'commit')).rejects.toMatchObject({
      code: 'TRANSACTION_ENDED',
      message: 'Transaction not found: (2,41)',
      retriable: false,
    });
  });

  it('T-36: an action that is none is refused before anything is looked at', async () => {
    const unknown = { mostBits: 2n, leastBits: 41n };

    for (const action of ['COMMIT', 'constructor', 2]) {
      await expect(coordinator.end(unknown, action as 'commit')).rejects.toMatchObject({
        code: 'NOT_SUPPORTED',
        message: `Transaction \`(2,41)\` receive unsupported txnAction ${action}`,
      });
    }
  });

  it('T-36: an end publishes one event for each segment written to and one for each subscription', async () => {
    const id = await coordinator.newTransaction(TIMEOUT);
    const other = 'segment://shop/eu/orders/8000-ffff-4';
    for (const op of [
      WRITE,
      { ...WRITE, segment: other },
      WRITE,
      ackOn('billing', 1),
      ackOn('billing', 2),
      ackOn('audit'),
      { ...ackOn('billing'), segment: other },
    ])
      await world.records.appendOp(transactionKey(id), op);
    await coordinator.end(id, 'commit');

    const names = [SEGMENT, other].map(encodeURIComponent);
    expect([...(await events())].sort()).toEqual([
      `segment-events/${names[0]}`,
      `segment-events/${names[1]}`,
      `subscription-events/${names[0]}:audit`,
      `subscription-events/${names[0]}:billing`,
      `subscription-events/${names[1]}:billing`,
    ]);
  });

  it('T-04, T-36: the same end again succeeds and publishes again, as long as it is remembered', async () => {
    const id = await coordinator.newTransaction(TIMEOUT);
    await world.records.appendOp(transactionKey(id), ackOn('billing'));
    await coordinator.end(id, 'abort');
    await world.coordinator().end(id, 'abort');

    expect(await events()).toHaveLength(2);
  });

  it('T-36: of a commit and an abort at the same moment one wins, and the other is told which', async () => {
    const others = [world.coordinator(), world.coordinator()];
    for (let round = 0; round < 20; round++) {
      const id = await coordinator.newTransaction(TIMEOUT);
      const outcomes = await Promise.allSettled([
        others[round % 2]!.end(id, 'commit'),
        others[(round + 1) % 2]!.end(id, 'abort'),
      ]);

      const state = (await headerOf(id))?.state;
      expect(outcomes.map(({ status }) => status)).toEqual(
        state === 'COMMITTED' ? ['fulfilled', 'rejected'] : ['rejected', 'fulfilled'],
      );
      const lost = outcomes.find((outcome) => outcome.status === 'rejected');
      expect(lost?.reason).toMatchObject({
        code: 'TRANSACTION_ENDED',
        message: expect.stringContaining(` is ${state},`) as string,
      });
    }
  });

  it('T-36: two commits at the same moment both succeed', async () => {
    const id = await coordinator.newTransaction(TIMEOUT);

    await Promise.all([coordinator.end(id, 'commit'), world.coordinator().end(id, 'commit')]);
    expect(await headerOf(id)).toMatchObject({ state: 'COMMITTED' });
  });

  it.each(['refuse', 'lose-answer'] as const)(
    'T-36: after an end whose store call failed (%s) it is asked for again, and everybody is told',
    async (kind) => {
      const id = await coordinator.newTransaction(TIMEOUT);
      await world.records.appendOp(transactionKey(id), ackOn('billing'));
      for (const failing of ['get', 'put', 'scanIndex', 'append']) {
        let isOver = false;
        const faulty = faultyStore(store, (_call, name) => {
          if (name !== failing || isOver) return undefined;
          isOver = true;
          return { kind };
        });
        const ending = worldOf(faulty, world.clock).coordinator();
        // Of the later ones some need no write any more.
        await ending.end(id, 'commit').catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'BROKER_ERROR', retriable: true, cause: { code: 'STORE_FAILED' } });
        });
        await ending.end(id, 'commit');
        await ending.close();
      }

      expect(await headerOf(id)).toMatchObject({ state: 'COMMITTED' });
      expect((await events()).length).toBeGreaterThanOrEqual(4);
    },
  );

  it('T-05, T-37: a transaction can be committed after its timeout, until a sweep has aborted it', async () => {
    const [late, tooLate] = [
      await coordinator.newTransaction({ timeoutMs: 100 }),
      await coordinator.newTransaction({ timeoutMs: 100 }),
    ];
    await world.clock.advanceBy(5_000);
    await coordinator.end(late, 'commit');
    await coordinator.abortOverdue();

    await expect(coordinator.end(tooLate, 'commit')).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    expect([(await headerOf(late))?.state, (await headerOf(tooLate))?.state]).toEqual(['COMMITTED', 'ABORTED']);
  });

  it('T-47: one without an owner is ended by anyone, another by its owner only', async () => {
    const [anyones, annas] = [
      await coordinator.newTransaction(TIMEOUT),
      await coordinator.newTransaction({ ...TIMEOUT, owner: 'anna' }),
    ];
    await coordinator.end(anyones, 'commit', 'bob');

    await expect(coordinator.end(annas, 'commit', 'bob')).rejects.toMatchObject({
      code: 'NOT_ALLOWED',
      message: 'client "bob" is not the owner of transaction (0,1)',
    });
    await expect(coordinator.end(annas, 'abort')).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
    expect(await headerOf(annas)).toMatchObject({ state: 'OPEN' });
    await coordinator.end(annas, 'commit', 'anna');
    await expect(coordinator.end(annas, 'commit', 'bob')).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
  });

  it('T-06: with as many open as maxActiveTransactions it begins no more until one has ended', async () => {
    const limited = world.coordinator({ options: { maxActiveTransactions: 2 } });
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => limited.newTransaction(TIMEOUT)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect((outcomes[2] as PromiseRejectedResult).reason).toMatchObject({
      code: 'BROKER_ERROR',
      retriable: true,
      message: expect.stringContaining('transaction coordinator 0 has 2 open transactions') as string,
    });

    await limited.end((outcomes[0] as PromiseFulfilledResult<{ mostBits: bigint; leastBits: bigint }>).value, 'abort');
    const next = await limited.newTransaction(TIMEOUT);
    // Ended by somebody else.
    await coordinator.end(next, 'commit');
    await limited.newTransaction(TIMEOUT);
    await expect(limited.newTransaction(TIMEOUT)).rejects.toMatchObject({ code: 'BROKER_ERROR' });
    await limited.close();
  });

  it('T-06: those of an earlier process count, those of another coordinator do not', async () => {
    await coordinator.newTransaction(TIMEOUT);
    await world.coordinator({ coordinator: 7 }).newTransaction(TIMEOUT);
    const restarted = world.coordinator({ options: { maxActiveTransactions: 2 } });
    await restarted.start();
    await restarted.newTransaction(TIMEOUT);

    await expect(restarted.newTransaction(TIMEOUT)).rejects.toMatchObject({ code: 'BROKER_ERROR' });
    await restarted.close();
  });

  it('refuses options and timeouts that are none, all at once', async () => {
    const wrong = { sweepIntervalMs: 0, retentionMs: -1, maxActiveTransactions: 1.5, retention: 1 };

    expect(() => world.coordinator({ options: wrong })).toThrow(
      expect.objectContaining({
        code: 'CONFIGURATION_INVALID',
        problems: expect.objectContaining({ length: 4 }) as unknown,
      }) as Error,
    );
    for (const timeoutMs of [0, -1, NaN, undefined as unknown as number]) {
      await expect(coordinator.newTransaction({ timeoutMs })).rejects.toMatchObject({ code: 'CONFIGURATION_INVALID' });
    }
    expect(await world.records.open()).toEqual([]);
  });

  it('refuses calls once it is closed, and leaves open what is open', async () => {
    const id = await coordinator.newTransaction(TIMEOUT);
    await coordinator.close();
    await coordinator.close();

    for (const call of [coordinator.newTransaction(TIMEOUT), coordinator.end(id, 'abort'), coordinator.collect()]) {
      await expect(call).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
    }
    expect(await headerOf(id)).toMatchObject({ state: 'OPEN' });
  });

  it('waits at its close for what is under way', async () => {
    const id = await coordinator.newTransaction(TIMEOUT);
    const ending = coordinator.end(id, 'commit');
    await coordinator.close();

    expect(await headerOf(id)).toMatchObject({ state: 'COMMITTED' });
    await ending;
  });
});
