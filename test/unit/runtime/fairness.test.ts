// The shares of keys by themselves: who has its turn, what is remembered of a key, and that no timer outlives its need.
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FairnessOptions } from '../../../src/core/fairness.js';
import { checkFairness } from '../../../src/core/fairness.js';
import { OptionChecker } from '../../../src/core/options.js';
import { DeliveryRecord } from '../../../src/runtime/delivery-record.js';
import { NO_FAILURES } from '../../../src/runtime/failure-histories.js';
import { Fairness } from '../../../src/runtime/fairness.js';
import { FakeClock } from '../../../src/testing.js';

let clock: FakeClock;
let turns: string[];
let byTime: number;
let errors: string[];
beforeEach(() => {
  clock = new FakeClock();
  turns = [];
  byTime = 0;
  errors = [];
});

function fairness(options: FairnessOptions, maxLaneMessages = 1_000): Fairness {
  const silent = (): void => undefined;
  return new Fairness({
    plan: { name: 'h', fairness: options, maxLaneMessages },
    clock,
    logger: { debug: silent, info: silent, warn: silent, error: (line) => void errors.push(line) },
    onTurn: (record) => void turns.push(nameOf(record)),
    onTime: () => void byTime++,
  });
}

let entries = 0;
/** Its name is its payload; `key` undefined: without one. */
function record(name: string, key: string | undefined): DeliveryRecord {
  const id = { ledgerId: 1, entryId: entries++, partition: -1, batchIndex: -1, batchSize: 0, topic: 'orders' };
  const payload = Buffer.from(name);
  const rest = { properties: { tenant: `of-${name}` }, publishTimeMs: 0, redeliveryCount: 0, connection: 1 };
  return new DeliveryRecord({ id, payload, key, ...rest }, NO_FAILURES);
}
const nameOf = ({ message }: DeliveryRecord): string => Buffer.from(message.payload ?? []).toString();

describe('runs of a key at a time', () => {
  it('are as many as may; what is beyond waits in its order, and other keys pass', () => {
    const shares = fairness({ maxConcurrent: 2 });
    const [a1, a2, a3, a4, b1] = ['a1', 'a2', 'a3', 'a4', 'b1'].map((name) => record(name, name[0]));
    for (const one of [a1, a2, a3, a4, b1, record('free', undefined)]) shares.enter(one as DeliveryRecord);
    expect(turns).toEqual(['a1', 'a2', 'b1', 'free']);
    expect([shares.waiting, shares.waitingBytes]).toEqual([2, 4]);
    shares.started(a1 as DeliveryRecord);
    expect(turns).toHaveLength(4);
    shares.ended(a1 as DeliveryRecord);
    shares.withdrawn(a2 as DeliveryRecord);
    expect(turns.slice(4)).toEqual(['a3', 'a4']);
    expect([shares.waiting, shares.waitingBytes, clock.pendingTimers]).toEqual([0, 0, []]);
  });

  it('a key with nothing here is forgotten', () => {
    const shares = fairness({ maxConcurrent: 1 });
    for (let i = 0; i < 100; i++) {
      const one = record('x', `key-${i}`);
      shares.enter(one);
      shares.started(one);
      expect(shares.size).toBe(1);
      shares.ended(one);
    }
    expect(shares.size).toBe(0);
  });

  it('what is taken before its turn counts, and those that wait go on waiting for all of them', () => {
    const shares = fairness({ maxConcurrent: 1 });
    const [a1, a2, a3] = ['a1', 'a2', 'a3'].map((name) => record(name, 'a')) as [
      DeliveryRecord,
      DeliveryRecord,
      DeliveryRecord,
    ];
    for (const one of [a1, a2, a3]) shares.enter(one);
    expect(shares.takeWaiting((one) => one === a3)).toBe(a3);
    expect(shares.takeWaiting((one) => one === a3)).toBe(undefined);
    shares.started(a3);
    shares.ended(a3);
    expect(turns).toEqual(['a1']);
    shares.started(a1);
    shares.ended(a1);
    expect(turns).toEqual(['a1', 'a2']);
  });

  it('a key is full from as many waiting as may until it has come to nine tenths of them', () => {
    const shares = fairness({ maxConcurrent: 1 }, 10);
    const all = Array.from({ length: 11 }, () => record('x', 'noisy'));
    for (const one of all.slice(0, 10)) shares.enter(one);
    expect(shares.fullKey).toBe(undefined);
    shares.enter(all[10] as DeliveryRecord);
    const full: unknown[] = [];
    for (const one of all.slice(0, 3)) {
      full.push(shares.fullKey);
      shares.started(one);
      shares.ended(one);
    }
    expect(full).toEqual(['noisy', 'noisy', undefined]);
    expect(shares.removeWaiting(() => true)).toHaveLength(7);
    expect([shares.waiting, shares.waitingBytes]).toEqual([0, 0]);
  });
});

describe('runs of a key per second', () => {
  it('one second of them may start at once, then as time goes; one timer, and only while one waits for time', async () => {
    const shares = fairness({ ratePerSecond: 4 });
    const all = Array.from({ length: 7 }, (_, i) => record(`a${i}`, 'a'));
    for (const one of all) shares.enter(one);
    expect(turns).toHaveLength(4);
    expect(clock.pendingTimers).toEqual([]); // what had its turn and has no slot yet takes tokens first
    for (const one of all.slice(0, 4)) shares.started(one);
    expect(clock.pendingTimers).toEqual([250]);
    await clock.advanceBy(249);
    expect([turns.length, byTime]).toEqual([4, 0]);
    await clock.advanceBy(1);
    expect([turns.length, byTime, clock.pendingTimers]).toEqual([5, 1, []]);
    shares.started(all[4] as DeliveryRecord);
    expect(shares.removeWaiting(() => true)).toHaveLength(2);
    expect(clock.pendingTimers).toEqual([]);
  });

  it('no timer while it waits for a run to end, too', () => {
    const shares = fairness({ ratePerSecond: 1, maxConcurrent: 1 });
    const [a1, a2] = [record('a1', 'a'), record('a2', 'a')];
    shares.enter(a1);
    shares.started(a1);
    shares.enter(a2);
    expect(clock.pendingTimers).toEqual([]);
    shares.ended(a1);
    expect(clock.pendingTimers).toEqual([1_000]);
  });

  it('less than one a second starts one at once', async () => {
    const shares = fairness({ ratePerSecond: 0.5 });
    for (let i = 0; i < 3; i++) shares.enter(record(`a${i}`, 'a'));
    expect(turns).toEqual(['a0']);
    await clock.advanceBy(10_000);
    expect(turns).toEqual(['a0']); // it has not started: its token is still there for it
  });

  it('never more than a second of them and the rate, whatever the starts and ends between (seeded)', async () => {
    const steps = fc.array(fc.record({ wait: fc.nat(400), come: fc.nat(6), slots: fc.nat(6) }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(0.7, 1, 3, 10), steps, async (ratePerSecond, program) => {
        clock = new FakeClock();
        turns = [];
        const shares = fairness({ ratePerSecond, maxConcurrent: 4 });
        const known = new Map<string, DeliveryRecord>();
        const starts: number[] = [];
        let running: DeliveryRecord[] = [];
        for (const { wait, come, slots } of program) {
          for (let i = 0; i < come; i++) {
            const name = `m${known.size}`;
            known.set(name, record(name, 'a'));
            shares.enter(known.get(name) as DeliveryRecord);
          }
          for (const one of running.splice(0, slots)) shares.ended(one);
          for (let i = 0; i < slots && turns.length > 0; i++) {
            const one = known.get(turns.shift() as string) as DeliveryRecord;
            shares.started(one);
            starts.push(clock.now());
            running = [...running, one];
          }
          expect(running.length + turns.length).toBeLessThanOrEqual(4);
          await clock.advanceBy(wait);
        }
        const burst = Math.max(1, ratePerSecond);
        for (const [from, first] of starts.entries())
          for (const [to, last] of starts.entries())
            if (to >= from)
              expect(to - from + 1).toBeLessThanOrEqual(burst + ((last - first) / 1_000) * ratePerSecond + 1e-6);
      }),
      { numRuns: 60, seed: 9 },
    );
  });

  it('keys are forgotten once their buckets are full again: what is remembered is bounded', async () => {
    const shares = fairness({ ratePerSecond: 10 });
    for (let i = 0; i < 20_000; i++) {
      const one = record('x', `key-${i}`);
      shares.enter(one);
      shares.started(one);
      shares.ended(one);
      if (i % 10 === 9) await clock.advanceBy(1);
    }
    expect(shares.size).toBeLessThanOrEqual(3_000);
    expect(clock.pendingTimers).toEqual([]);
  });
});

describe('by', () => {
  it('gets topic, key and properties, and says whose share it is; undefined has no limit', () => {
    const seen: unknown[] = [];
    const shares = fairness({ maxConcurrent: 1, by: (message) => (seen.push(message), message.properties['tenant']) });
    shares.enter(record('a', 'k'));
    shares.enter(record('b', 'k'));
    const free = fairness({ maxConcurrent: 1, by: () => undefined });
    free.enter(record('c', 'k'));
    free.enter(record('d', 'k'));
    expect(turns).toEqual(['a', 'b', 'c', 'd']);
    expect(seen[0]).toEqual({ topic: 'orders', key: 'k', orderingKey: undefined, properties: { tenant: 'of-a' } });
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('boom');
      },
    ],
    ['gives a number', () => 7 as never],
    // Nobody awaits it: unless its rejection is contained it ends the process, and this test.
    ['gives a promise that rejects', (() => Promise.reject(new Error('no database'))) as never],
  ])('that %s is told at error, and the order key decides', (_, by) => {
    const shares = fairness({ maxConcurrent: 1, by });
    shares.enter(record('a1', 'a'));
    shares.enter(record('a2', 'a'));
    shares.enter(record('b1', 'b'));
    expect(turns).toEqual(['a1', 'b1']);
    expect(errors).toEqual(Array(3).fill('"fairness.by" failed; the message takes the share of its order key'));
  });
});

it('all problems of the option are named at once', () => {
  const check = new OptionChecker();
  checkFairness({ by: 'tenant', maxConcurrent: 0, ratePerSecond: -1, ratePerSeconds: 3 }, check);
  checkFairness({ by: () => 'x' }, check);
  checkFairness(4, check);
  expect(check.problems).toEqual([
    'unknown option "fairness.ratePerSeconds", did you mean "ratePerSecond"?',
    '"fairness.by" must be a function such as ({ properties }) => properties.tenant, got "tenant"',
    '"fairness.maxConcurrent" must be a positive integer, got 0',
    '"fairness.ratePerSecond" must be a finite number above 0, got -1',
    '"fairness" limits nothing; give "maxConcurrent", "ratePerSecond" or both',
    '"fairness" must be an object such as { maxConcurrent: 4 }, got 4',
  ]);
});
