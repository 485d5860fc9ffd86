import { describe, expect, it, vi } from 'vitest';
import { exponentialBackoff } from '../../../src/core/backoff.js';
import { NegativeAckTracker } from '../../../src/redelivery/negative-ack-tracker.js';
import { FakeClock, settlePromises } from '../../../src/testing/fake-clock.js';
import { TrackerBench, idOf, pending, raise, refused, withResolvers } from './held-ids.js';

const random = (): number => 0.5;

describe('the timer', () => {
  it('is not set while nothing is held (N-19)', async () => {
    const bench = new TrackerBench();
    expect(bench.clock.pendingTimers).toEqual([]);
    bench.holdUntil(100, idOf(1));
    await bench.clock.advanceBy(100);
    expect(bench.clock.pendingTimers).toEqual([]);
  });

  it('is one for all entries and wakes at the earliest due time', () => {
    const bench = new TrackerBench();
    for (const afterMs of [300, 100, 200]) bench.holdUntil(afterMs, idOf(afterMs));
    expect(bench.clock.pendingTimers).toEqual([100]);
  });

  it('moves earlier when a shorter wait comes after a longer one (N-18)', async () => {
    const bench = new TrackerBench({ backoff: exponentialBackoff(), random });
    bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount: 10 });
    bench.tracker.negativeAcknowledge({ id: idOf(2), redeliveryCount: 0 });
    await bench.clock.advanceBy(1_000);
    expect(bench.requests).toEqual([{ afterMs: 1_000, ids: ['1:2:-1'] }]);
  });

  it('goes on to the next due time after each request', async () => {
    const bench = new TrackerBench();
    for (const afterMs of [50, 700, 701]) bench.holdUntil(afterMs, idOf(afterMs));
    await bench.clock.advanceBy(1_000);
    expect(bench.requests.map((request) => request.afterMs)).toEqual([50, 700, 701]);
  });

  it('is cancelled when the last entry is', () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1));
    bench.tracker.acknowledge(idOf(1));
    expect(bench.clock.pendingTimers).toEqual([]);
  });

  it('is not postponed by a stream of negative acknowledgements (N-20)', async () => {
    const bench = new TrackerBench({ delayMs: 60_000 });
    for (let entry = 0; entry < 120; entry++) {
      bench.tracker.negativeAcknowledgeId(idOf(entry));
      await bench.clock.advanceBy(1_000);
    }
    expect(bench.requests).toHaveLength(61);
    expect(bench.requests[0]).toEqual({ afterMs: 60_000, ids: ['1:0:-1'] });
  });

  it('never asks early: a timer that fires before its time is set again (N-17)', async () => {
    const clock = new FakeClock();
    const redeliver = vi.fn(() => Promise.resolve());
    const hasty = { now: () => clock.now(), setTimer: (ms: number, run: () => void) => clock.setTimer(ms / 2, run) };
    const tracker = new NegativeAckTracker({ clock: hasty, redeliver });
    tracker.add(idOf(1), clock.now() + 1_000);
    await clock.advanceBy(999);
    expect(redeliver).not.toHaveBeenCalled();
    await clock.advanceBy(1);
    expect(redeliver).toHaveBeenCalledOnce();
  });

  it('takes a due time thousands of years away', () => {
    const bench = new TrackerBench();
    bench.tracker.add(idOf(1), Number.MAX_VALUE);
    expect(bench.clock.pendingTimers[0]).toBeLessThanOrEqual(2 ** 53);
  });

  it('asks at once for what was due before it was added', async () => {
    const bench = new TrackerBench();
    bench.holdUntil(-5_000, idOf(1));
    await bench.clock.advanceBy(0);
    expect(bench.requests).toEqual([{ afterMs: 0, ids: ['1:1:-1'] }]);
  });

  it('refuses a due time that is not a number, because it would never come', () => {
    const bench = new TrackerBench();
    expect(() => bench.tracker.add(idOf(1), NaN)).toThrow(/dueMs must be epoch milliseconds, got NaN/);
  });
});

describe('requests', () => {
  it('asks for everything that is due in one request (N-21)', async () => {
    const bench = new TrackerBench();
    for (const entry of [1, 2, 3]) bench.holdUntil(100, idOf(entry));
    await bench.clock.advanceBy(100);
    expect(bench.requests).toEqual([{ afterMs: 100, ids: ['1:1:-1', '1:2:-1', '1:3:-1'] }]);
  });

  it('handles at most 1,000 ids in one turn and goes on at once in the next', async () => {
    const bench = new TrackerBench();
    for (let entry = 0; entry < 2_500; entry++) bench.holdUntil(100, idOf(entry));
    await bench.clock.advanceToNextTimer();
    // advanceToNextTimer runs what is due at that moment, the timers of 0 ms included: so the turns show as requests.
    expect(bench.requests.map(({ afterMs, ids }) => [afterMs, ids.length])).toEqual([
      [100, 1_000],
      [100, 1_000],
      [100, 500],
    ]);
    expect(new Set(bench.requests.flatMap(({ ids }) => ids)).size).toBe(2_500);
  });

  it('leaves the turn after 1,000 ids, whatever the size of a request', async () => {
    const turns: (() => void)[] = [];
    const redeliver = vi.fn(() => Promise.resolve());
    const clock = { now: () => 100, setTimer: (_: number, run: () => void) => (turns.push(run), { cancel: vi.fn() }) };
    const tracker = new NegativeAckTracker({ clock, redeliver, maxIdsPerRequest: 300 });
    for (let entry = 0; entry < 1_500; entry++) tracker.add(idOf(entry), 100);
    turns.shift()?.();
    expect(redeliver.mock.calls.map(([ids]: unknown[]) => (ids as unknown[]).length)).toEqual([300, 300, 300, 100]);
    expect(turns).toHaveLength(1);
    turns.shift()?.();
    await settlePromises();
    expect(redeliver).toHaveBeenCalledTimes(6);
  });

  it('splits what is due into requests of at most `maxIdsPerRequest` ids', async () => {
    const bench = new TrackerBench({ maxIdsPerRequest: 2 });
    for (let entry = 0; entry < 5; entry++) bench.holdUntil(100, idOf(entry));
    await bench.clock.advanceBy(100);
    expect(bench.requests.map(({ ids }) => ids.length)).toEqual([2, 2, 1]);
  });

  it('asks for the earliest due first', async () => {
    const bench = new TrackerBench({ maxIdsPerRequest: 1 });
    // All are overdue when the timer runs: the process was busy.
    for (const entry of [3, 1, 2]) bench.holdUntil(entry - 10, idOf(entry));
    await bench.clock.advanceBy(0);
    expect(bench.requests.map(({ ids }) => ids[0])).toEqual(['1:1:-1', '1:2:-1', '1:3:-1']);
  });

  it('gives topic and batch size of what it was given, and nothing else of it', async () => {
    const redeliver = vi.fn(() => Promise.resolve());
    const bench = new TrackerBench({ redeliver, delayMs: 0 });
    const given = { ...idOf(1, { batchIndex: 2, batchSize: 4, partition: 3 }), payload: new Uint8Array(9) };
    bench.tracker.negativeAcknowledgeId(given);
    await bench.clock.advanceBy(0);
    expect(redeliver).toHaveBeenCalledExactlyOnceWith([idOf(1, { batchIndex: 2, batchSize: 4, partition: 3 })]);
  });
});

describe('pending, in flight, gone', () => {
  it('holds nothing once the request was made', async () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1));
    await bench.clock.advanceBy(100);
    expect([bench.tracker.size, bench.tracker.has(idOf(1))]).toEqual([0, false]);
  });

  it('counts an entry in flight as held, but not as pending', async () => {
    const bench = new TrackerBench();
    bench.answers.push(pending);
    bench.holdUntil(100, idOf(1));
    await bench.clock.advanceBy(100);
    expect([bench.tracker.size, bench.tracker.has(idOf(1)), bench.tracker.nextDueMs]).toEqual([1, true, undefined]);
  });

  it('tells what is pending from what is in flight', async () => {
    const bench = new TrackerBench();
    bench.answers.push(pending);
    bench.holdUntil(100, idOf(1));
    bench.holdUntil(200, idOf(2));
    await bench.clock.advanceBy(100);
    expect([bench.tracker.isPending(idOf(1)), bench.tracker.isPending(idOf(2))]).toEqual([false, true]);
  });

  it.each([
    ['rejects', refused],
    ['throws', () => raise(new Error('no connection'))],
  ])('asks again after 500 ms when the request %s (N-24)', async (_, answer) => {
    const bench = new TrackerBench();
    bench.answers.push(answer, answer);
    bench.holdUntil(100, idOf(1));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests.map(({ afterMs }) => afterMs)).toEqual([100, 600, 1_100]);
    expect(bench.tracker.size).toBe(0);
  });

  it('tells of a failed request, with its error and ids', async () => {
    const onRequestFailed = vi.fn();
    const bench = new TrackerBench({ onRequestFailed });
    bench.answers.push(refused);
    bench.holdUntil(0, idOf(1));
    await bench.clock.advanceBy(0);
    expect(onRequestFailed).toHaveBeenCalledExactlyOnceWith(new Error('no connection'), [idOf(1)]);
  });

  it('does not schedule twice for a negative acknowledgement while in flight (N-24)', async () => {
    const bench = new TrackerBench({ delayMs: 100 });
    const made = withResolvers();
    bench.answers.push(() => made.promise);
    bench.tracker.negativeAcknowledgeId(idOf(1));
    await bench.clock.advanceBy(100);
    bench.tracker.negativeAcknowledgeId(idOf(1));
    made.resolve();
    await bench.clock.advanceBy(10_000);
    expect(bench.requests).toHaveLength(1);
    expect(bench.tracker.size).toBe(0);
  });

  it('has one more request, not two, when the one in flight fails after another negative acknowledgement', async () => {
    const bench = new TrackerBench({ delayMs: 100 });
    const made = withResolvers();
    bench.answers.push(() => made.promise);
    bench.tracker.negativeAcknowledgeId(idOf(1, { batchIndex: 0 }));
    await bench.clock.advanceBy(100);
    bench.tracker.negativeAcknowledgeId(idOf(1, { batchIndex: 1 }));
    made.reject(new Error('no connection'));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests.map(({ afterMs, ids }) => [afterMs, ...ids])).toEqual([
      [100, '1:1:-1:0'],
      [600, '1:1:-1'],
    ]);
  });

  it('does not ask again for what was acknowledged while the request that failed was in flight', async () => {
    const bench = new TrackerBench();
    const made = withResolvers();
    bench.answers.push(() => made.promise);
    for (const entry of [1, 2]) bench.holdUntil(100, idOf(entry));
    await bench.clock.advanceBy(100);
    bench.tracker.acknowledge(idOf(1));
    made.reject(new Error('no connection'));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests.at(-1)).toEqual({ afterMs: 600, ids: ['1:2:-1'] });
  });

  it('lets the owner hold an entry on instead of asking for it', async () => {
    const bench = new TrackerBench({
      redeliver: (ids) => {
        for (const id of ids) if (id.entryId === 1) bench.holdUntil(250, id);
        return asked(ids.filter((id) => id.entryId !== 1).map((id) => id.entryId));
      },
    });
    const asked = vi.fn(() => Promise.resolve()) as unknown as (entries: number[]) => Promise<void>;
    for (const entry of [1, 2]) bench.holdUntil(100, idOf(entry));
    await bench.clock.advanceBy(100);
    expect(asked).toHaveBeenCalledExactlyOnceWith([2]);
    expect([bench.tracker.size, bench.tracker.nextDueMs]).toEqual([1, bench.startMs + 250]);
  });

  it('keeps what was added while a request for the same entry was in flight, whatever becomes of the request', async () => {
    const bench = new TrackerBench();
    const made = withResolvers();
    bench.answers.push(() => made.promise);
    bench.holdUntil(100, idOf(1));
    await bench.clock.advanceBy(100);
    bench.holdUntil(3_000, idOf(1));
    made.reject(new Error('no connection'));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests.map(({ afterMs }) => afterMs)).toEqual([100, 3_000]);
  });

  it('is not confused by the late answer of an older request for the same entry', async () => {
    const bench = new TrackerBench();
    const older = withResolvers();
    const newer = withResolvers();
    bench.answers.push(
      () => older.promise,
      () => newer.promise,
    );
    bench.holdUntil(100, idOf(1));
    await bench.clock.advanceBy(100);
    bench.holdUntil(200, idOf(1));
    await bench.clock.advanceBy(100);
    older.resolve();
    await settlePromises();
    newer.reject(new Error('no connection'));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests.map(({ afterMs }) => afterMs)).toEqual([100, 200, 700]);
  });
});
