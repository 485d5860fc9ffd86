import { describe, expect, it } from 'vitest';
import { MAX_BACKOFF_MS, exponentialBackoff, fixedBackoff } from '../../../src/core/backoff.js';
import { PulseworkError } from '../../../src/core/errors.js';
import { OptionChecker } from '../../../src/core/options.js';
import {
  DEFAULT_REDELIVERY_POLICY,
  checkRedeliveryPolicy,
  redeliveryDelayMs,
  resolveRedeliveryPolicy,
} from '../../../src/core/redelivery-policy.js';

const half = (): number => 0.5;
const delayOf = (backoff: () => unknown): number =>
  redeliveryDelayMs({ maxDeliveries: 3, backoff: backoff as () => number }, 1, half);

describe('resolving', () => {
  it('is 10 deliveries and 1 s to 10 min where nothing is said', () => {
    const policy = resolveRedeliveryPolicy(undefined);
    expect(policy.maxDeliveries).toBe(10);
    expect([1, 2, 10, 20].map((attempt) => redeliveryDelayMs(policy, attempt, half))).toEqual([
      1_000, 2_000, 512_000, 600_000,
    ]);
  });

  it('takes absent fields from the base', () => {
    const base = { maxDeliveries: 3, backoff: fixedBackoff(5) };
    expect(resolveRedeliveryPolicy({ maxDeliveries: 7, backoff: undefined }, base)).toEqual({
      maxDeliveries: 7,
      backoff: base.backoff,
    });
  });

  it('takes absent fields of a partial policy from the defaults', () => {
    const backoff = fixedBackoff(5);
    expect(resolveRedeliveryPolicy({ backoff })).toEqual({ ...DEFAULT_REDELIVERY_POLICY, backoff });
  });
});

describe('the delay', () => {
  it('asks the backoff for the number of redeliveries so far: attempt less one (N-09)', () => {
    const asked: number[] = [];
    const policy = { maxDeliveries: 9, backoff: (redeliveries: number) => (asked.push(redeliveries), 1) };
    for (const attempt of [1, 2, 3]) redeliveryDelayMs(policy, attempt, half);
    expect(asked).toEqual([0, 1, 2]);
  });

  it('hands the random source to the backoff', () => {
    const policy = { maxDeliveries: 9, backoff: exponentialBackoff({ jitter: 'full' }) };
    expect(redeliveryDelayMs(policy, 1, () => 0.25)).toBe(250);
  });

  it('is cut to whole milliseconds', () => {
    expect(delayOf(() => 1.9)).toBe(1);
  });

  it.each([Infinity, 1e300, MAX_BACKOFF_MS + 1])('is a year at most, for %s', (ms) => {
    expect(delayOf(() => ms)).toBe(MAX_BACKOFF_MS);
  });

  it.each([NaN, -1, -Infinity, '5', undefined, null, 5n])('refuses %s as POLICY_FAILED', (value) => {
    expect(() => delayOf(() => value)).toThrow(
      expect.objectContaining({ code: 'POLICY_FAILED', message: expect.stringContaining('got ') as string }),
    );
  });

  it('keeps what the backoff threw as the cause', () => {
    const bug = new TypeError('bug');
    const run = () =>
      delayOf(() => {
        throw bug;
      });
    expect(run).toThrow(PulseworkError);
    expect(run).toThrow(expect.objectContaining({ code: 'POLICY_FAILED', cause: bug }));
  });
});

describe('checking', () => {
  const problemsOf = (options: unknown): readonly string[] => {
    const check = new OptionChecker();
    checkRedeliveryPolicy(options, check);
    return check.problems;
  };

  it.each([undefined, {}, { maxDeliveries: 1 }, { backoff: fixedBackoff(1) }, { maxDeliveries: undefined }])(
    'takes %j',
    (options) => {
      expect(problemsOf(options)).toEqual([]);
    },
  );

  it.each([
    [5, '"redelivery" must be an object such as { maxDeliveries, backoff }, got 5'],
    [{ maxDeliveries: 0 }, '"redelivery.maxDeliveries" must be a positive integer, got 0'],
    [{ maxDeliveries: Infinity }, '"redelivery.maxDeliveries" must be a positive integer, got Infinity'],
    [{ backoff: 5 }, '"redelivery.backoff" must be a function such as fixedBackoff(5), got 5'],
    [{ maxDeliverys: 5 }, 'unknown option "redelivery.maxDeliverys", did you mean "maxDeliveries"?'],
  ])('%j: %s', (options, problem) => {
    expect(problemsOf(options)).toEqual([problem]);
  });
});
