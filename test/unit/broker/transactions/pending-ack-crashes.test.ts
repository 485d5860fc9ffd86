// A process that ends at each single call to its stores in turn, and next ones that end as well: of every transaction all
// acknowledgements count or none, and no record stays (T-13, T-40, T-41).
import { describe, expect, it } from 'vitest';
import type { TransactionState } from '../../../../src/broker/transactions/txn-records.js';
import { LoggedPendingAckStore } from '../../../../src/broker/transactions/logged-pending-ack-store.js';
import { memoryPendingAckLogs } from '../../../../src/broker/transactions/pending-ack-log.js';
import { settlePromises } from '../../../../src/testing/fake-clock.js';
import type { Crash } from './crash-point.js';
import { CrashPoint } from './crash-point.js';
import type { PendingWorld } from './pending-ack-kit.js';
import { A, B, C, pendingAcksOf, places, SEGMENT, TestSubscription } from './pending-ack-kit.js';
import { SegmentWorld } from './segment-world.js';

const UP_TO = '1_4';
const TRANSACTIONS = [A, B, C, UP_TO];
const ENTRIES = { batches: { 7: 2, 9: 3 } };

type End = Exclude<TransactionState, 'OPEN'>;

/** Where acknowledgements are kept, and who ends transactions. */
interface Home {
  participant(subscription: TestSubscription, point: CrashPoint): PendingWorld;
  /** It is decided; a participant that lives is told. */
  decide(world: PendingWorld, transaction: string, end: End): Promise<void>;
  /** A participant that starts is told what it may have missed. */
  tellAgain(world: PendingWorld, ends: ReadonlyMap<string, End>): Promise<void>;
  recordsLeft(): Promise<number>;
}

async function segmentHome(told: boolean): Promise<Home> {
  const world = await SegmentWorld.with(...TRANSACTIONS);
  return {
    participant: (subscription, point) => world.participant(subscription, point.metadata(world.metadata, told)),
    decide: (_, transaction, end) => world.end(transaction, end),
    tellAgain: async ({ acks }) => acks.used(),
    recordsLeft: async () => (await world.recorded()).length,
  };
}

async function loggedHome(): Promise<Home> {
  const logs = memoryPendingAckLogs();
  const owner = { topic: SEGMENT, subscription: 's' };
  const decide: Home['decide'] = async ({ acks }, transaction, end) =>
    end === 'COMMITTED' ? acks.commit(transaction) : acks.abort(transaction);
  return {
    participant: (subscription, point) =>
      pendingAcksOf(subscription, {
        open: async () => new LoggedPendingAckStore(point.log(await logs.open(owner))),
      }),
    decide,
    tellAgain: async (world, ends) => {
      for (const [transaction, end] of ends) await decide(world, transaction, end);
    },
    recordsLeft: async () => (await (await logs.open(owner)).read()).length,
  };
}

class Run {
  readonly #home: Home;
  readonly #answered = new Set<string>();
  readonly #ends = new Map<string, End>();
  #subscription = new TestSubscription(SEGMENT, ENTRIES);

  constructor(home: Home) {
    this.#home = home;
  }

  /** @returns whether it ended at a call. */
  async first(crash: Crash): Promise<boolean> {
    const point = new CrashPoint(crash);
    const world = this.#start(point);
    const { acks } = world;
    await settlePromises();
    this.#whenAnswered(
      A,
      acks.acknowledge(A, places(5, 6)).then(() => acks.acknowledge(A, places('7/0', '7/1'))),
    );
    this.#whenAnswered(B, acks.acknowledge(B, places(8)));
    this.#whenAnswered(C, acks.acknowledge(C, places('9/0', '9/1')));
    this.#whenAnswered(UP_TO, acks.acknowledgeUpTo(UP_TO, places(1)));
    await settlePromises();
    // Who got no answer aborts.
    for (const transaction of [A, UP_TO])
      this.#ends.set(transaction, this.#answered.has(transaction) ? 'COMMITTED' : 'ABORTED');
    this.#ends.set(B, 'ABORTED');
    for (const [transaction, end] of this.#ends) void this.#home.decide(world, transaction, end);
    await settlePromises();
    await this.#hearAgain(world);
    return point.hasCrashed;
  }

  /** The next process. @returns whether it ended at a call. */
  async next(crash?: Crash): Promise<boolean> {
    const point = new CrashPoint(crash);
    await this.#hearAgain(this.#start(point));
    return point.hasCrashed;
  }

  /** A last process, that goes on. */
  async check(): Promise<void> {
    const world = this.#start(new CrashPoint());
    await this.#hearAgain(world);
    const { cursor } = world.subscription;
    const acked = [0, 1, 5, 6, 7, 8].filter((position) => cursor.isAcked(position));
    const committed = (transaction: string): boolean => this.#ends.get(transaction) === 'COMMITTED';
    expect(acked).toEqual([...(committed(UP_TO) ? [0, 1] : []), ...(committed(A) ? [5, 6, 7] : [])]);
    const free = [0, 1, 5, 6, 7, 8].filter((position) => !cursor.isAcked(position));
    expect(free.filter((position) => world.acks.withholds(position))).toEqual([]);
    if (this.#answered.has(C)) expect([0, 1, 2].filter((index) => world.acks.unackedOf(9)?.has(index))).toEqual([2]);

    const end = this.#answered.has(C) ? 'COMMITTED' : 'ABORTED';
    await this.#home.decide(world, C, end);
    await settlePromises();
    await world.clock.advanceBy(1_000);
    await this.#hearAgain(world);
    const unacked = cursor.unackedOf(9);
    expect([0, 1, 2].filter((index) => unacked?.has(index) === false)).toEqual(end === 'COMMITTED' ? [0, 1] : []);
    expect(world.acks.withholds(9)).toBe(false);
    expect(world.acks.transactions).toEqual([]);
    expect(await this.#home.recordsLeft()).toBe(0);
  }

  #start(point: CrashPoint): PendingWorld {
    this.#subscription = this.#subscription.restarted();
    this.#subscription.storing = (store) => point.call(async () => store());
    const world = this.#home.participant(this.#subscription, point);
    void world.acks.open();
    return world;
  }

  async #hearAgain(world: PendingWorld): Promise<void> {
    await settlePromises();
    void this.#home.tellAgain(world, this.#ends);
    await settlePromises();
  }

  #whenAnswered(transaction: string, answer: Promise<void>): void {
    void answer.then(() => this.#answered.add(transaction));
  }
}

/** A crash at each of the calls in turn until there is none to be had; `step` passes over some. @returns how many calls */
async function eachCrash(step: number, program: (crash: Crash) => Promise<boolean>): Promise<number> {
  for (let turn = 0; ; turn += step) {
    const crash = { at: (turn >>> 1) + 1, after: turn % 2 === 1 };
    if (!(await program(crash))) return crash.at - 1;
  }
}

describe.each<[string, () => Promise<Home>]>([
  ['in a metadata store that tells', () => segmentHome(true)],
  ['in a metadata store of which nothing is heard', () => segmentHome(false)],
  ['in a log of their own', () => loggedHome()],
])('pending acknowledgements %s', (_, home) => {
  it('are all there or none after a crash at any call', async () => {
    const calls = await eachCrash(1, async (crash) => {
      const run = new Run(await home());
      const hasCrashed = await run.first(crash);
      await run.check();
      return hasCrashed;
    });
    expect(calls).toBeGreaterThan(15);
  });

  it('are all there or none after a crash, and one of the next process', async () => {
    await eachCrash(7, async (first) => {
      let hasCrashed = false;
      await eachCrash(3, async (second) => {
        const run = new Run(await home());
        hasCrashed = await run.first(first);
        const again = await run.next(second);
        await run.check();
        return again;
      });
      return hasCrashed;
    });
  });
});
