// What becomes of transactions that nobody ends, and of records that nobody needs, by the rules T-05, T-37 and T-38.
import type { MetadataStore } from 'pulsework/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../../../src/core/options.js';
import { SweepTimer } from '../../../../src/broker/transactions/sweep-timer.js';
import type { TransactionCoordinator } from '../../../../src/broker/transactions/transaction-coordinator.js';
import type { TransactionId } from '../../../../src/core/transaction-id.js';
import { transactionKey } from '../../../../src/core/transaction-id.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import { memoryMetadataStore } from '../../../../src/stores/memory/memory-metadata-store.js';
import type { World } from './transaction-kit.js';
import { Participant, WRITE, ackOn, faultyStore, worldOf } from './transaction-kit.js';

const HOUR = { timeoutMs: minutes(60) };

let store: MetadataStore;
let world: World;
let coordinator: TransactionCoordinator;

beforeEach(async () => {
  store = memoryMetadataStore();
  await store.open();
  world = worldOf(store);
  coordinator = world.coordinator();
});

afterEach(() => coordinator.close());

async function stateOf(id: TransactionId): Promise<string | undefined> {
  return (await world.records.readHeader(transactionKey(id)))?.header.state;
}

async function eventCount(): Promise<number> {
  return (await world.records.eventsUntil(world.clock.now(), 10_000)).length;
}

/** Everything but the counters, which stay. */
async function recordPaths(): Promise<readonly string[]> {
  return (await store.scan({})).map(({ path }) => path).filter((path) => !path.startsWith('/txn/tc-seq/'));
}

describe('the timeout sweep', () => {
  it('T-37: each minute aborts what is open at its deadline or past it, and tells its participants', async () => {
    const [early, exact, late] = [
      await coordinator.newTransaction({ timeoutMs: 1 }),
      await coordinator.newTransaction({ timeoutMs: minutes(1) }),
      await coordinator.newTransaction({ timeoutMs: minutes(1) + 1 }),
    ];
    const participant = await new Participant(world.records, 'billing').start();
    await participant.acknowledge(transactionKey(early));
    await world.clock.advanceBy(minutes(1) - 1);
    expect(await Promise.all([early, exact, late].map(stateOf))).toEqual(['OPEN', 'OPEN', 'OPEN']);

    await world.clock.advanceBy(1);
    expect(await Promise.all([early, exact, late].map(stateOf))).toEqual(['ABORTED', 'ABORTED', 'OPEN']);
    expect([...participant.applied]).toEqual([[transactionKey(early), 'ABORTED']]);

    await world.clock.advanceBy(minutes(1));
    expect(await stateOf(late)).toBe('ABORTED');
  });

  it('T-05, T-37: a commit at the same moment wins or loses, without harm to the sweep', async () => {
    for (let turns = 0; turns < 12; turns++) {
      const id = await coordinator.newTransaction({ timeoutMs: 1 });
      await world.clock.advanceBy(2);
      const committing = coordinator.end(id, 'commit');
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      const [committed, swept] = await Promise.allSettled([committing, world.coordinator().abortOverdue()]);

      expect(swept.status).toBe('fulfilled');
      expect(await stateOf(id)).toBe(committed.status === 'fulfilled' ? 'COMMITTED' : 'ABORTED');
    }
  });

  it('T-37: takes any number, also with others at the same work', async () => {
    await Promise.all(Array.from({ length: 603 }, () => coordinator.newTransaction({ timeoutMs: 1 })));
    await world.clock.advanceBy(5);
    await Promise.all([coordinator.abortOverdue(), world.coordinator().abortOverdue()]);

    expect(await world.records.open()).toEqual([]);
    expect(await world.records.ended({ state: 'ABORTED', untilMs: world.clock.now(), limit: 2_000 })).toHaveLength(603);
  });

  it('T-05: what an earlier process left is aborted at the start, if its time is over', async () => {
    const [over, open] = [await coordinator.newTransaction({ timeoutMs: 10 }), await coordinator.newTransaction(HOUR)];
    await coordinator.close();
    await world.clock.advanceBy(20);
    const restarted = world.coordinator();
    await restarted.start();

    expect(await Promise.all([over, open].map(stateOf))).toEqual(['ABORTED', 'OPEN']);
    expect(world.clock.pendingTimers).toEqual([minutes(1)]);
    await restarted.close();
  });
});

describe('the collection', () => {
  it('T-37: 15 minutes after its end the header of a transaction goes, at the next of every 5 minutes', async () => {
    await coordinator.newTransaction(HOUR);
    const [committed, aborted] = [await coordinator.newTransaction(HOUR), await coordinator.newTransaction(HOUR)];
    await world.clock.advanceBy(seconds(1));
    await coordinator.end(committed, 'commit');
    await coordinator.end(aborted, 'abort');
    await world.clock.advanceBy(minutes(15) - seconds(1));
    expect(await Promise.all([committed, aborted].map(stateOf))).toEqual(['COMMITTED', 'ABORTED']);

    await world.clock.advanceBy(minutes(5) - 1);
    expect(await Promise.all([committed, aborted].map(stateOf))).toEqual(['COMMITTED', 'ABORTED']);
    await world.clock.advanceBy(1);
    expect(await Promise.all([committed, aborted].map(stateOf))).toEqual([undefined, undefined]);
    await expect(coordinator.end(committed, 'commit')).rejects.toThrow('Transaction not found: (0,1)');
  });

  it('T-37: the retention counts from the end, to the millisecond', async () => {
    const id = await coordinator.newTransaction(HOUR);
    await world.clock.advanceBy(minutes(3));
    await coordinator.end(id, 'commit');
    await world.clock.advanceBy(minutes(15) - 1);
    await coordinator.collect();
    expect(await stateOf(id)).toBe('COMMITTED');

    await world.clock.advanceBy(1);
    await coordinator.collect();
    expect(await stateOf(id)).toBeUndefined();
  });

  it('T-37: with operations left the events are published again and the header stays, for as long as it takes', async () => {
    const id = await coordinator.newTransaction(HOUR);
    const key = transactionKey(id);
    await world.records.appendOp(key, ackOn('billing'));
    await world.records.appendOp(key, WRITE);
    await coordinator.end(id, 'commit');
    for (let round = 0; round < 3; round++) {
      await world.clock.advanceBy(minutes(60));
      // Of the collections after 50, 55 and 60 minutes; earlier events are older than the retention.
      expect(await eventCount()).toBe(6);
      await coordinator.collect();
      expect(await eventCount()).toBe(8);
      expect(await stateOf(id)).toBe('COMMITTED');
    }
    for (const { path } of await world.records.opsOf(key)) await world.records.deleteOp(path);
    await coordinator.collect();

    expect(await stateOf(id)).toBeUndefined();
  });

  it('T-38: a participant that missed every event learns the outcome from it', async () => {
    const id = await coordinator.newTransaction(HOUR);
    const participant = new Participant(world.records, 'billing');
    await participant.acknowledge(transactionKey(id));
    await coordinator.end(id, 'commit');
    await participant.start();
    await settlePromises();
    expect(participant.applied.size).toBe(0);

    await world.clock.advanceBy(minutes(5));
    expect([...participant.applied]).toEqual([[transactionKey(id), 'COMMITTED']]);
  });

  it('T-38: an operation that came when the header was gone is told of as ABORTED', async () => {
    const participant = await new Participant(world.records, 'billing').start();
    await participant.acknowledge('0_99');
    await coordinator.collect();
    await settlePromises();

    expect([...participant.applied]).toEqual([['0_99', 'ABORTED']]);
    expect(await world.records.hasOps('0_99')).toBe(false);
  });

  it('leaves open transactions and their operations alone', async () => {
    const id = await coordinator.newTransaction({ timeoutMs: minutes(600) });
    await world.records.appendOp(transactionKey(id), ackOn('billing'));
    await world.clock.advanceBy(minutes(300));

    expect(await stateOf(id)).toBe('OPEN');
    expect(await eventCount()).toBe(0);
    expect(await world.records.hasOps(transactionKey(id))).toBe(true);
  });

  it('leaves no record behind but the counter, of however many transactions', async () => {
    const participant = await new Participant(world.records, 'billing').start();
    for (let at = 0; at < 1_050; at++) {
      const id = await coordinator.newTransaction(HOUR);
      await participant.acknowledge(transactionKey(id));
      await coordinator.end(id, at % 2 === 0 ? 'commit' : 'abort');
    }
    await participant.reconcile();
    expect((await recordPaths()).length).toBe(2_100);
    await world.clock.advanceBy(minutes(15));
    await Promise.all([coordinator.collect(), world.coordinator().collect()]);

    expect(await recordPaths()).toEqual([]);
  });
});

describe('the timer', () => {
  it('is not there before the first transaction, nor a second after the last one was ended everywhere', async () => {
    await coordinator.start();
    expect(world.clock.pendingTimers).toEqual([]);
    const participant = await new Participant(world.records, 'billing').start();
    const id = await coordinator.newTransaction(HOUR);
    expect(world.clock.pendingTimers).toEqual([minutes(1)]);
    await participant.acknowledge(transactionKey(id));
    await world.clock.advanceBy(minutes(30));
    await coordinator.end(id, 'commit');
    expect(world.clock.pendingTimers).toEqual([seconds(1)]);
    await world.clock.advanceBy(seconds(1));

    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('stays while an outcome is not applied everywhere', async () => {
    const participant = new Participant(world.records, 'billing');
    const id = await coordinator.newTransaction(HOUR);
    await participant.acknowledge(transactionKey(id));
    await coordinator.end(id, 'commit');
    await world.clock.advanceBy(minutes(30));
    expect(world.clock.pendingTimers).toHaveLength(1);
    await participant.reconcile();
    await world.clock.advanceBy(minutes(1));

    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('makes up for a collection that was due meanwhile, with the next transaction', async () => {
    const first = await coordinator.newTransaction(HOUR);
    await coordinator.end(first, 'commit');
    await world.clock.advanceBy(minutes(60));
    expect(await stateOf(first)).toBe('COMMITTED');
    await coordinator.end(await coordinator.newTransaction(HOUR), 'commit');
    await world.clock.advanceBy(seconds(1));

    expect(await stateOf(first)).toBeUndefined();
    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('is there for a transaction whose making failed: it may be there', async () => {
    const faulty = faultyStore(store, (call) => (call === 3 ? { kind: 'lose-answer' } : undefined));
    const failing = worldOf(faulty, world.clock).coordinator();
    await expect(failing.newTransaction({ timeoutMs: 10 })).rejects.toMatchObject({ code: 'BROKER_ERROR' });
    expect(await world.records.open()).toHaveLength(1);
    await world.clock.advanceBy(minutes(1));

    expect(await world.records.open()).toEqual([]);
    await failing.close();
  });

  it('is there for a transaction whose header was being written when the last look found nothing', async () => {
    let goOn: () => void = () => undefined;
    const until = new Promise<void>((resolve) => (goOn = resolve));
    let isWaiting = false;
    const faulty = faultyStore(store, (_call, name) =>
      isWaiting && name === 'put' ? { kind: 'wait', until } : undefined,
    );
    const slow = worldOf(faulty, world.clock).coordinator();
    await slow.end(await slow.newTransaction(HOUR), 'commit');
    isWaiting = true;
    const making = slow.newTransaction(HOUR);
    await world.clock.advanceBy(seconds(2));
    goOn();
    await making;

    expect(world.clock.pendingTimers).toHaveLength(1);
    await slow.close();
  });

  it('is there for a transaction that came while the last look was on its way', async () => {
    const answers: ((isNeeded: boolean) => void)[] = [];
    const timer = new SweepTimer({
      clock: world.clock,
      sweeps: [{ intervalMs: 100, run: () => Promise.resolve() }],
      isNeeded: () => new Promise((resolve) => answers.push(resolve)),
      onFailed: () => undefined,
    });
    timer.arm();
    await world.clock.advanceBy(100);
    timer.arm();
    answers[0]?.(false);
    await settlePromises();
    expect(world.clock.pendingTimers).toEqual([100]);

    await world.clock.advanceBy(100);
    answers[1]?.(false);
    await settlePromises();
    expect(world.clock.pendingTimers).toEqual([]);
    await timer.close();
  });

  it('goes on after a sweep that failed, and says so', async () => {
    const failures: string[] = [];
    let isFailing = false;
    const faulty = faultyStore(store, () => (isFailing ? { kind: 'refuse' } : undefined));
    const failing = worldOf(faulty, world.clock).coordinator({
      onSweepFailed: ({ message }) => failures.push(message),
    });
    const id = await failing.newTransaction({ timeoutMs: 10 });
    isFailing = true;
    await world.clock.advanceBy(minutes(2));
    expect(failures).toHaveLength(2);
    expect(failures[0]).toContain('was refused');
    isFailing = false;
    await world.clock.advanceBy(minutes(1));

    expect(await stateOf(id)).toBe('ABORTED');
    await failing.close();
  });

  it('is gone after close, also when a sweep was running', async () => {
    let goOn: () => void = () => undefined;
    const until = new Promise<void>((resolve) => (goOn = resolve));
    let isWaiting = false;
    const faulty = faultyStore(store, () => (isWaiting ? { kind: 'wait', until } : undefined));
    const slow = worldOf(faulty, world.clock).coordinator();
    await slow.newTransaction(HOUR);
    isWaiting = true;
    await world.clock.advanceBy(minutes(1));
    const closing = slow.close();
    goOn();
    await closing;

    expect(world.clock.pendingTimers).toEqual([]);
  });
});
