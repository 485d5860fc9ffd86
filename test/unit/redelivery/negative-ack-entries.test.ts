import { describe, expect, it, vi } from 'vitest';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TrackerBench, idOf, pending, withResolvers } from './held-ids.js';

describe('entries', () => {
  it('keeps the earlier due time of an entry that already waits, with one request (N-23)', async () => {
    const bench = new TrackerBench();
    for (const afterMs of [500, 200, 900]) bench.holdUntil(afterMs, idOf(1));
    await bench.clock.advanceBy(1_000);
    expect(bench.requests).toEqual([{ afterMs: 200, ids: ['1:1:-1'] }]);
  });

  it('asks once for a batch of which several messages wait (N-22)', async () => {
    const bench = new TrackerBench();
    bench.holdUntil(200, idOf(1, { batchIndex: 3 }));
    bench.holdUntil(100, idOf(1, { batchIndex: 0 }));
    await bench.clock.advanceBy(1_000);
    expect(bench.requests).toEqual([{ afterMs: 100, ids: ['1:1:-1'] }]);
  });

  it('tells entries of different ledgers and partitions apart', () => {
    const bench = new TrackerBench();
    const ids = [idOf(1), idOf(1, { ledgerId: 2 }), idOf(1, { partition: 0 }), idOf(1, { partition: 1 })];
    for (const id of ids) bench.holdUntil(100, id);
    bench.tracker.acknowledge(ids[2]!);
    expect(ids.map((id) => bench.tracker.has(id))).toEqual([true, true, false, true]);
  });

  it('forgets everything on clear, answers of older requests included (N-29)', async () => {
    const bench = new TrackerBench();
    const made = withResolvers();
    bench.answers.push(() => made.promise);
    bench.holdUntil(100, idOf(1));
    bench.holdUntil(200, idOf(2));
    await bench.clock.advanceBy(100);
    bench.tracker.clear();
    made.reject(new Error('no connection'));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests).toHaveLength(1);
    expect([bench.tracker.size, bench.clock.pendingTimers]).toEqual([0, []]);
  });

  it('forgets what is of one topic, in flight too, and goes on with the others (N-29)', async () => {
    const bench = new TrackerBench();
    const made = withResolvers();
    const other = 'persistent://a/b/other';
    bench.answers.push(() => made.promise);
    for (const [entry, topic] of [other, other, idOf(0).topic].entries()) {
      bench.holdUntil(100 * (entry + 1), idOf(entry, { topic }));
    }
    await bench.clock.advanceBy(100);
    bench.tracker.clear(other);
    made.reject(new Error('no connection'));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests.map(({ afterMs, ids }) => [afterMs, ...ids])).toEqual([
      [100, '1:0:-1'],
      [300, '1:2:-1'],
    ]);
    expect([bench.tracker.size, bench.clock.pendingTimers]).toEqual([0, []]);
  });

  it('has no timer once all that it held was of a topic that is forgotten (N-19)', () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1));
    bench.tracker.clear(idOf(1).topic);
    expect([bench.tracker.size, bench.clock.pendingTimers]).toEqual([0, []]);
  });

  it('holds again after clear', async () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1));
    bench.tracker.clear();
    bench.holdUntil(200, idOf(1));
    await bench.clock.advanceBy(1_000);
    expect(bench.requests).toEqual([{ afterMs: 200, ids: ['1:1:-1'] }]);
  });

  it('gives back what was pending, without what is in flight, and forgets both', async () => {
    const bench = new TrackerBench();
    bench.answers.push(pending);
    bench.holdUntil(100, idOf(1));
    bench.holdUntil(200, idOf(2, { batchIndex: 0, batchSize: 1 }));
    await bench.clock.advanceBy(100);
    const taken = bench.tracker.takeAll();
    expect(taken).toEqual([{ id: idOf(2, { batchIndex: 0, batchSize: 1 }), dueMs: bench.startMs + 200 }]);
    expect(bench.tracker.size).toBe(0);
  });

  it('holds nothing and asks for nothing once closed (N-29)', async () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1));
    bench.tracker.close();
    bench.tracker.negativeAcknowledgeId(idOf(2));
    expect([bench.tracker.size, bench.clock.pendingTimers]).toEqual([0, []]);
    await bench.clock.advanceBy(100_000);
    expect(bench.requests).toEqual([]);
  });

  it('says nothing of a request that fails after close', async () => {
    const onRequestFailed = vi.fn();
    const bench = new TrackerBench({ onRequestFailed });
    const made = withResolvers();
    bench.answers.push(() => made.promise);
    bench.holdUntil(0, idOf(1));
    await bench.clock.advanceBy(0);
    bench.tracker.close();
    made.reject(new Error('closed'));
    await settlePromises();
    expect(onRequestFailed).not.toHaveBeenCalled();
  });
});

describe('what cancels a pending redelivery', () => {
  const batch = (entryId: number, batchIndex: number) => idOf(entryId, { batchIndex, batchSize: 4 });

  it('an acknowledgement of a message that is in no batch cancels it (N-27)', async () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1));
    bench.tracker.acknowledge(idOf(1));
    await bench.clock.advanceBy(1_000);
    expect(bench.requests).toEqual([]);
  });

  it('an acknowledgement of one message of a batch leaves its siblings (N-27)', () => {
    const bench = new TrackerBench();
    for (const index of [0, 1, 2]) bench.holdUntil(100, batch(1, index));
    bench.tracker.acknowledge(batch(1, 1));
    expect([0, 1, 2].map((index) => bench.tracker.has(batch(1, index)))).toEqual([true, false, true]);
  });

  it('the entry goes when its last message was acknowledged (N-27)', () => {
    const bench = new TrackerBench();
    for (const index of [0, 1]) bench.holdUntil(100, batch(1, index));
    for (const index of [0, 1]) bench.tracker.acknowledge(batch(1, index));
    expect([bench.tracker.size, bench.clock.pendingTimers]).toEqual([0, []]);
  });

  it('an acknowledgement without a batch index cancels the whole entry (N-27)', () => {
    const bench = new TrackerBench();
    for (const index of [0, 1]) bench.holdUntil(100, batch(1, index));
    bench.tracker.acknowledge(idOf(1));
    expect(bench.tracker.size).toBe(0);
  });

  it('an entry held as a whole stays when one message of it is acknowledged (N-27)', () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, batch(1, 1));
    bench.holdUntil(100, idOf(1));
    bench.tracker.acknowledge(batch(1, 1));
    expect([bench.tracker.size, bench.tracker.has(batch(1, 1))]).toEqual([1, true]);
  });

  it('an acknowledgement of another message cancels nothing', () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, batch(1, 0));
    bench.tracker.acknowledge(batch(1, 1));
    bench.tracker.acknowledge(idOf(2));
    expect(bench.tracker.size).toBe(1);
  });

  it('a cumulative acknowledgement cancels all that comes before it, and itself (N-28)', () => {
    const bench = new TrackerBench();
    const ids = [idOf(9, { ledgerId: 0 }), idOf(1), idOf(2), idOf(3), idOf(0, { ledgerId: 2 })];
    for (const id of ids) bench.holdUntil(100, id);
    bench.tracker.acknowledgeCumulative(idOf(2));
    expect(ids.map((id) => bench.tracker.has(id))).toEqual([false, false, false, true, true]);
  });

  it('a cumulative acknowledgement within a batch cancels the indexes up to it (N-28)', () => {
    const bench = new TrackerBench();
    for (const index of [0, 1, 2, 3]) bench.holdUntil(100, batch(1, index));
    bench.tracker.acknowledgeCumulative(batch(1, 2));
    expect([0, 1, 2, 3].map((index) => bench.tracker.has(batch(1, index)))).toEqual([false, false, false, true]);
  });

  it('a cumulative acknowledgement without a batch index cancels the whole batch (N-28)', () => {
    const bench = new TrackerBench();
    for (const index of [0, 3]) bench.holdUntil(100, batch(1, index));
    bench.tracker.acknowledgeCumulative(idOf(1));
    expect(bench.tracker.size).toBe(0);
  });

  it('a cumulative acknowledgement leaves other partitions (N-28)', () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1, { partition: 0 }));
    bench.holdUntil(100, idOf(1, { partition: 1 }));
    bench.tracker.acknowledgeCumulative(idOf(9, { partition: 0 }));
    expect(bench.tracker.has(idOf(1, { partition: 1 }))).toBe(true);
    expect(bench.tracker.size).toBe(1);
  });

  it('a cumulative acknowledgement leaves other topics of the subscription', () => {
    const bench = new TrackerBench();
    bench.holdUntil(100, idOf(1, { topic: 'persistent://a/b/other' }));
    bench.tracker.acknowledgeCumulative(idOf(9));
    expect(bench.tracker.size).toBe(1);
  });
});
