import { describe, expect, it, vi } from 'vitest';
import { exponentialBackoff } from '../../../src/core/backoff.js';
import { ConfigurationError } from '../../../src/core/errors.js';
import type { MessageId } from '../../../src/core/message-id.js';
import { formatMessageId } from '../../../src/core/message-id.js';
import { AckTimeoutTracker } from '../../../src/redelivery/ack-timeout-tracker.js';
import type { AckTimeoutTrackerOptions } from '../../../src/redelivery/ack-timeout-tracker.js';
import { FakeClock } from '../../../src/testing/fake-clock.js';
import { idOf, raise, refused } from './held-ids.js';

const random = (): number => 0.5;
const batch = (entryId: number, batchIndex: number): MessageId => idOf(entryId, { batchIndex, batchSize: 4 });

/** A tracker of 10 s on a FakeClock; `requests` holds what was asked for, and how long after the start. */
function bench(options: Partial<AckTimeoutTrackerOptions> = {}) {
  const clock = new FakeClock();
  const startMs = clock.now();
  const requests: (readonly [number, ...string[]])[] = [];
  const redeliver = (ids: readonly MessageId[]): Promise<void> => {
    requests.push([clock.now() - startMs, ...ids.map(formatMessageId)]);
    return Promise.resolve();
  };
  const tracker = new AckTimeoutTracker({ clock, redeliver, timeoutMs: 10_000, ...options });
  return { clock, requests, tracker };
}

describe('the time limit', () => {
  it('asks for a message back that is not settled in time, once, and forgets it (A-05)', async () => {
    const { clock, requests, tracker } = bench();
    tracker.add({ id: idOf(1) });
    await clock.advanceBy(100_000);
    expect(requests).toEqual([[10_000, '1:1:-1']]);
    expect([tracker.size, clock.pendingTimers]).toEqual([0, []]);
  });

  it('is kept to the millisecond: never early, and not late by a tick (A-02)', async () => {
    const { clock, requests, tracker } = bench({ timeoutMs: 1_234 });
    await clock.advanceBy(777);
    tracker.add({ id: idOf(1) });
    await clock.advanceBy(1_233);
    expect(requests).toEqual([]);
    await clock.advanceBy(1);
    expect(requests).toEqual([[777 + 1_234, '1:1:-1']]);
  });

  it('runs from the call, which the owner makes when it hands the message on (A-03)', async () => {
    const { clock, requests, tracker } = bench();
    await clock.advanceBy(60_000);
    expect(requests).toEqual([]);
    tracker.add({ id: idOf(1) });
    await clock.advanceBy(10_000);
    expect(requests).toEqual([[70_000, '1:1:-1']]);
  });

  it('is not extended for a message that is tracked (A-04)', async () => {
    const { clock, requests, tracker } = bench();
    tracker.add({ id: idOf(1) });
    await clock.advanceBy(9_000);
    tracker.add({ id: idOf(1) });
    await clock.advanceBy(100_000);
    expect(requests).toEqual([[10_000, '1:1:-1']]);
  });

  it('is one for the messages of a batch: it runs from the first (A-04)', async () => {
    const { clock, requests, tracker } = bench();
    tracker.add({ id: batch(1, 0) });
    await clock.advanceBy(4_000);
    tracker.add({ id: batch(1, 1) });
    await clock.advanceBy(100_000);
    expect(requests).toEqual([[10_000, '1:1:-1']]);
  });

  it('runs anew for a copy that comes after the request', async () => {
    const { clock, requests, tracker } = bench();
    for (const waitMs of [10_500, 100_000]) {
      tracker.add({ id: idOf(1) });
      await clock.advanceBy(waitMs);
    }
    expect(requests).toEqual([
      [10_000, '1:1:-1'],
      [20_500, '1:1:-1'],
    ]);
  });

  it('has one timer for all entries, and none while nothing is tracked', () => {
    const { clock, tracker } = bench();
    expect(clock.pendingTimers).toEqual([]);
    for (const entry of [1, 2, 3]) tracker.add({ id: idOf(entry) });
    expect(clock.pendingTimers).toEqual([10_000]);
    for (const entry of [1, 2, 3]) tracker.remove(idOf(entry));
    expect(clock.pendingTimers).toEqual([]);
  });

  it('asks again after 500 ms when the request fails', async () => {
    const redeliver = vi.fn(() => Promise.resolve()).mockImplementationOnce(refused);
    const onRequestFailed = vi.fn();
    const { clock, tracker } = bench({ redeliver, onRequestFailed });
    tracker.add({ id: idOf(1) });
    await clock.advanceBy(10_499);
    expect(redeliver).toHaveBeenCalledOnce();
    await clock.advanceBy(1);
    expect(redeliver).toHaveBeenCalledTimes(2);
    expect(onRequestFailed).toHaveBeenCalledExactlyOnceWith(new Error('no connection'), [idOf(1)]);
  });
});

describe('the backoff', () => {
  it('is added to the timeout, by redelivery count: 10+1, 10+2, 10+4 s (A-06)', async () => {
    const { clock, requests, tracker } = bench({ backoff: exponentialBackoff(), random });
    for (const redeliveryCount of [0, 1, 2]) {
      tracker.add({ id: idOf(redeliveryCount), redeliveryCount });
    }
    await clock.advanceBy(100_000);
    expect(requests.map(([afterMs]) => afterMs)).toEqual([11_000, 12_000, 14_000]);
  });

  it('is called once for a message, and not at all where its count is not known', () => {
    const backoff = vi.fn(() => 1_000);
    const { tracker } = bench({ backoff, random });
    for (let times = 0; times < 3; times++) tracker.add({ id: idOf(1), redeliveryCount: 5 });
    tracker.add({ id: idOf(2) });
    expect(backoff.mock.calls).toEqual([[5, random]]);
  });

  it.each([
    ['throws', () => raise(new Error('bug'))],
    ['gives NaN', () => NaN],
    ['gives a delay past the end of time', () => Number.MAX_SAFE_INTEGER],
  ])('adds nothing and is told when it %s', async (_, backoff) => {
    const onBackoffFailed = vi.fn();
    const { clock, requests, tracker } = bench({ backoff, random, onBackoffFailed });
    tracker.add({ id: idOf(1), redeliveryCount: 0 });
    await clock.advanceBy(10_000);
    expect(requests).toEqual([[10_000, '1:1:-1']]);
    expect(onBackoffFailed).toHaveBeenCalledExactlyOnceWith(expect.any(Error));
  });
});

describe('what ends it', () => {
  it('the acknowledgement of the message (A-07), or its negative one (N-25)', async () => {
    const { clock, requests, tracker } = bench();
    tracker.add({ id: idOf(1) });
    tracker.remove(idOf(1));
    await clock.advanceBy(100_000);
    expect(requests).toEqual([]);
  });

  it('one of several messages of a batch does not, the last one does (A-07)', () => {
    const { tracker } = bench();
    for (const index of [0, 1]) tracker.add({ id: batch(1, index) });
    tracker.remove(batch(1, 0));
    const afterOne = tracker.size;
    tracker.remove(batch(1, 1));
    expect([afterOne, tracker.size]).toEqual([1, 0]);
  });

  it('an id without a batch index ends it for the whole entry', () => {
    const { tracker } = bench();
    for (const index of [0, 1]) tracker.add({ id: batch(1, index) });
    tracker.remove(idOf(1));
    expect(tracker.size).toBe(0);
  });

  it('a cumulative acknowledgement ends it for everything up to its id (A-07)', () => {
    const { tracker } = bench();
    for (const entry of [1, 2, 3]) tracker.add({ id: idOf(entry) });
    tracker.removeThrough(idOf(2));
    expect([1, 2, 3].map((entry) => tracker.has(idOf(entry)))).toEqual([false, false, true]);
  });

  it('asking for everything back clears all (A-07), or all of one topic', () => {
    const { clock, tracker } = bench();
    const other = 'persistent://a/b/other';
    tracker.add({ id: idOf(1) });
    tracker.add({ id: idOf(2, { topic: other }) });
    tracker.clear(other);
    const afterOne = tracker.size;
    tracker.clear();
    expect([afterOne, tracker.size, clock.pendingTimers]).toEqual([1, 0, []]);
  });

  it('nothing is tracked once it is closed', () => {
    const { clock, tracker } = bench();
    tracker.add({ id: idOf(1) });
    tracker.close();
    tracker.add({ id: idOf(2) });
    expect([tracker.size, clock.pendingTimers]).toEqual([0, []]);
  });
});

describe('options', () => {
  it('takes a timeout of 1,000 ms (A-01)', () => {
    expect(() => bench({ timeoutMs: 1_000 })).not.toThrow();
  });

  it('refuses to be without a timeout', () => {
    expect(() => bench({ timeoutMs: undefined as never })).toThrow(
      'AckTimeoutTracker: "timeoutMs" is missing; it must be a duration in milliseconds',
    );
  });

  it.each([999, 0, NaN])('refuses a timeout of %s ms (A-01)', (timeoutMs) => {
    expect(() => bench({ timeoutMs })).toThrow(/AckTimeoutTracker: "timeoutMs" must be a duration of at least 1000 ms/);
  });

  it('reports every wrong option at once', () => {
    const make = () => bench({ timeoutMs: 1, backoff: 5, timeoutMS: 3, maxIdsPerRequest: 0 } as never);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(/^5 configuration problems/);
  });
});
