import { describe, expect, it, vi } from 'vitest';
import { exponentialBackoff, fixedBackoff } from '../../../src/core/backoff.js';
import { ConfigurationError } from '../../../src/core/errors.js';
import { NegativeAckTracker } from '../../../src/redelivery/negative-ack-tracker.js';
import { TrackerBench, idOf, raise } from './held-ids.js';

const random = (): number => 0.5;

describe('which delay applies', () => {
  it('waits 60 s where nothing else is said (N-10)', async () => {
    const bench = new TrackerBench();
    bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount: 3 });
    await bench.clock.advanceBy(59_999);
    expect(bench.requests).toEqual([]);
    await bench.clock.advanceBy(1);
    expect(bench.requests).toEqual([{ afterMs: 60_000, ids: ['1:1:-1'] }]);
  });

  it('waits the minimum of the backoff on the first negative acknowledgement, whose count is 0 (N-09)', async () => {
    const bench = new TrackerBench({ backoff: exponentialBackoff(), random });
    bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount: 0 });
    await bench.clock.advanceBy(1_000);
    expect(bench.requests).toEqual([{ afterMs: 1_000, ids: ['1:1:-1'] }]);
  });

  it('follows the schedule 1, 2, 4, 8, 16 s over five negative acknowledgements (N-08)', async () => {
    const bench = new TrackerBench({ backoff: exponentialBackoff(), random });
    const waits: number[] = [];
    for (let redeliveryCount = 0; redeliveryCount < 5; redeliveryCount++) {
      const nackedMs = bench.clock.now() - bench.startMs;
      bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount });
      await bench.clock.advanceToNextTimer();
      waits.push((bench.requests.at(-1)?.afterMs ?? NaN) - nackedMs);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000]);
  });

  it('uses the fixed delay for an id, even with a backoff (N-13)', async () => {
    const bench = new TrackerBench({ backoff: fixedBackoff(10), random, delayMs: 5_000 });
    bench.tracker.negativeAcknowledgeId(idOf(1));
    await bench.clock.advanceBy(10_000);
    expect(bench.requests).toEqual([{ afterMs: 5_000, ids: ['1:1:-1'] }]);
  });

  it('takes a backoff and a fixed delay together: one for messages, the other for ids (N-14)', async () => {
    const bench = new TrackerBench({ backoff: fixedBackoff(2_000), random, delayMs: 5_000 });
    bench.tracker.negativeAcknowledgeId(idOf(1));
    bench.tracker.negativeAcknowledge({ id: idOf(2), redeliveryCount: 0 });
    await bench.clock.advanceBy(10_000);
    expect(bench.requests).toEqual([
      { afterMs: 2_000, ids: ['1:2:-1'] },
      { afterMs: 5_000, ids: ['1:1:-1'] },
    ]);
  });

  it('needs nothing of its owner but a request by ids, so that a client without a backoff has one (N-15)', async () => {
    const redeliver = vi.fn(() => Promise.resolve());
    const bench = new TrackerBench({ redeliver, backoff: exponentialBackoff(), random });
    bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount: 3 });
    await bench.clock.advanceBy(7_999);
    expect(redeliver).not.toHaveBeenCalled();
    await bench.clock.advanceBy(1);
    expect(redeliver.mock.calls).toEqual([[[idOf(1)]]]);
  });

  it('uses the fixed delay where the broker sent no count (N-13)', async () => {
    const bench = new TrackerBench({ backoff: fixedBackoff(10), random, delayMs: 5_000 });
    bench.tracker.negativeAcknowledge({ id: idOf(1) });
    await bench.clock.advanceBy(10_000);
    expect(bench.requests[0]?.afterMs).toBe(5_000);
  });

  it('asks at once with a delay of 0, without a lower limit (N-11)', async () => {
    const bench = new TrackerBench({ delayMs: 0 });
    bench.tracker.negativeAcknowledgeId(idOf(1));
    await bench.clock.advanceBy(0);
    expect(bench.requests).toEqual([{ afterMs: 0, ids: ['1:1:-1'] }]);
  });

  it('replaces a longer wait of the same id by a delay of 0, with one request', async () => {
    const bench = new TrackerBench({ delayMs: 0 });
    bench.holdUntil(9_000, idOf(1));
    bench.tracker.negativeAcknowledgeId(idOf(1));
    await bench.clock.advanceBy(20_000);
    expect(bench.requests).toEqual([{ afterMs: 0, ids: ['1:1:-1'] }]);
  });

  it('calls the backoff once per negative acknowledgement, also for an entry that already waits', () => {
    const backoff = vi.fn(() => 1_000);
    const bench = new TrackerBench({ backoff, random });
    bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount: 7 });
    bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount: 7 });
    bench.tracker.negativeAcknowledgeId(idOf(1));
    expect(backoff.mock.calls).toEqual([
      [7, random],
      [7, random],
    ]);
  });

  it.each([
    ['throws', () => raise(new Error('bug'))],
    ['gives NaN', () => NaN],
    ['gives a negative delay (N-05)', () => -1],
    ['gives a delay past the end of time (N-24)', () => Number.MAX_SAFE_INTEGER],
    ['gives Infinity', () => Infinity],
  ])('falls back to the fixed delay and says so when the backoff %s', async (_, backoff) => {
    const onBackoffFailed = vi.fn();
    const bench = new TrackerBench({ backoff, random, delayMs: 5_000, onBackoffFailed });
    bench.tracker.negativeAcknowledge({ id: idOf(1), redeliveryCount: 0 });
    await bench.clock.advanceBy(5_000);
    expect(bench.requests).toEqual([{ afterMs: 5_000, ids: ['1:1:-1'] }]);
    expect(onBackoffFailed).toHaveBeenCalledExactlyOnceWith(expect.any(Error));
  });
});

describe('options', () => {
  it('reports every wrong option at once, with rule and value', () => {
    const options = { clock: 1, redeliver: 2, delayMs: -1, retryRequestMs: NaN, maxIdsPerRequest: 1_001, backof: 3 };
    const make = () => new NegativeAckTracker(options as never);
    expect(make).toThrow(ConfigurationError);
    expect(problemsOf(make)).toEqual([
      'NegativeAckTracker: unknown option "backof", did you mean "backoff"?',
      'NegativeAckTracker: "clock" must be a Clock, got 1',
      'NegativeAckTracker: "redeliver" must be a function, got 2',
      'NegativeAckTracker: "retryRequestMs" must be a duration of 0 ms or more (in milliseconds), got NaN',
      'NegativeAckTracker: "maxIdsPerRequest" must be at most 1000, got 1001',
      'NegativeAckTracker: "delayMs" must be a duration of 0 ms or more (in milliseconds), got -1',
    ]);
  });

  it('names what must be there and is not', () => {
    expect(problemsOf(() => new NegativeAckTracker({} as never))).toEqual([
      'NegativeAckTracker: "clock" is missing; it must be a Clock',
      'NegativeAckTracker: "redeliver" is missing; it must be a function that asks the broker for redelivery',
    ]);
  });

  it.each([-1, NaN, Infinity, '5'])('refuses a fixed delay of %s, and takes 0 (N-12)', (delayMs) => {
    expect(() => new TrackerBench({ delayMs: delayMs as number })).toThrow(
      /"delayMs" must be a duration of 0 ms or more/,
    );
    expect(() => new TrackerBench({ delayMs: 0 })).not.toThrow();
  });

  it('asks for a random source beside a backoff', () => {
    const make = () => new TrackerBench({ backoff: fixedBackoff(1) });
    expect(problemsOf(make)).toEqual(['NegativeAckTracker: "random" must be given with "backoff", e.g. Math.random']);
  });

  it('takes `undefined` as absent', () => {
    expect(() => new TrackerBench({ delayMs: undefined, backoff: undefined, random: undefined })).not.toThrow();
  });
});

function problemsOf(make: () => unknown): readonly string[] {
  try {
    make();
    return [];
  } catch (error) {
    return (error as ConfigurationError).problems;
  }
}
