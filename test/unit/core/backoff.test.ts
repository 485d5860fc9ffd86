import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExponentialBackoffOptions } from '../../../src/core/backoff.js';
import { DEFAULT_BACKOFF, exponentialBackoff, fixedBackoff, steppedBackoff } from '../../../src/core/backoff.js';
import { ConfigurationError } from '../../../src/core/errors.js';
import { minutes, seconds } from '../../../src/core/options.js';

const half = (): number => 0.5;
const MOST = 2 ** 32 - 1;

describe('the exponential backoff', () => {
  // The vectors that the Java, Go and Rust clients are tested with (N-08): redeliveries to milliseconds.
  const vectors: readonly (readonly [string, ExponentialBackoffOptions, readonly (readonly [number, number])[]])[] = [
    [
      'the defaults: 1 s, 10 min, 2, as the Go client has them (N-04)',
      {},
      [
        ...[1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map((s, count) => [count, s * 1_000] as const),
        [10, 600_000],
        [MOST, 600_000],
      ],
    ],
    [
      'the defaults of the Java client: 10 s, 10 min, 2 (N-02)',
      { minMs: seconds(10), maxMs: minutes(10) },
      [
        [-1, 10_000],
        [0, 10_000],
        [1, 20_000],
        [2, 40_000],
        [3, 80_000],
        [4, 160_000],
        [5, 320_000],
        [6, 600_000],
        [100, 600_000],
      ],
    ],
    [
      '2 s, 100 min, 5',
      { minMs: 2_000, maxMs: 6_000_000, multiplier: 5 },
      [2_000, 10_000, 50_000, 250_000, 1_250_000, 6_000_000].map((ms, count) => [count, ms] as const),
    ],
    [
      '2 s, 30 s, 3',
      { minMs: 2_000, maxMs: 30_000, multiplier: 3 },
      [2_000, 6_000, 18_000, 30_000].map((ms, count) => [count, ms] as const),
    ],
    [
      '1 s, 30 s, 2',
      { minMs: 1_000, maxMs: 30_000 },
      [
        [4, 16_000],
        [5, 30_000],
      ],
    ],
    [
      'a minimum of 0 stays 0, whatever the maximum and the multiplier',
      { minMs: 0, maxMs: 5_000, multiplier: 7 },
      [
        [-1, 0],
        [0, 0],
        [3, 0],
        [MOST, 0],
      ],
    ],
    [
      'a minimum that is the maximum',
      { minMs: 1_000, maxMs: 1_000 },
      [
        [0, 1_000],
        [1, 1_000],
        [MOST, 1_000],
      ],
    ],
    [
      'a minimum of 0 stays 0 (N-06)',
      { minMs: 0 },
      [
        [0, 0],
        [1, 0],
        [MOST, 0],
      ],
    ],
    [
      'a multiplier that makes fractions: cut, not rounded (N-01)',
      { minMs: 100, maxMs: 1_000, multiplier: 1.5 },
      [100, 150, 225, 337, 506, 759, 1_000].map((ms, count) => [count, ms] as const),
    ],
  ];
  const cases = vectors.flatMap(([name, options, waits]) =>
    waits.map(([redeliveries, ms]) => [name, redeliveries, ms, options] as const),
  );
  it.each(cases)('%s: redelivery %i waits %i ms (N-08)', (_, redeliveries, ms, options) => {
    expect(exponentialBackoff(options)(redeliveries, half)).toBe(ms);
  });

  it.each([34, 36, 63, 64, 1_000_000_000, Number.MAX_SAFE_INTEGER])(
    'does not overflow on redelivery %i (N-05)',
    (redeliveries) => {
      expect(exponentialBackoff()(redeliveries, half)).toBe(DEFAULT_BACKOFF.maxMs);
    },
  );

  it('never shrinks and stays within its limits', () => {
    const options = fc.record({
      minMs: fc.nat(100_000),
      maxMs: fc.integer({ min: 100_000, max: 2 ** 40 }),
      multiplier: fc.double({ min: 1.01, max: 1_000, noNaN: true }),
    });
    fc.assert(
      fc.property(options, fc.nat(5_000), (limits, redeliveries) => {
        const backoff = exponentialBackoff(limits);
        const ms = backoff(redeliveries, half);
        expect(Number.isInteger(ms) && ms >= limits.minMs && ms <= limits.maxMs).toBe(true);
        expect(backoff(redeliveries + 1, half)).toBeGreaterThanOrEqual(ms);
      }),
      { seed: 3 },
    );
  });
});

describe('the formulas of other clients', () => {
  interface Limits {
    readonly minMs: number;
    readonly maxMs: number;
    readonly multiplier: number;
  }
  // Both compare the count with a logarithm before they multiply; here the product alone decides.
  const asJava = ({ minMs, maxMs, multiplier }: Limits, count: number): number => {
    if (count <= 0 || minMs <= 0) return minMs;
    if (count > Math.trunc(Math.log(maxMs / minMs) / Math.log(multiplier)) + 1) return maxMs;
    return Math.min(Math.trunc(minMs * multiplier ** count), maxMs);
  };
  const asRust = ({ minMs, maxMs, multiplier }: Limits, count: number): number => {
    if (minMs === 0 || count === 0) return minMs;
    if (minMs >= maxMs || count >= Math.log(maxMs / minMs) / Math.log(multiplier)) return maxMs;
    return Math.min(Math.trunc(minMs * multiplier ** count), maxMs);
  };
  const limits = fc.record({
    minMs: fc.nat(100_000),
    maxMs: fc.integer({ min: 100_000, max: 2 ** 40 }),
    multiplier: fc.double({ min: 1.01, max: 1_000, noNaN: true }),
  });

  it.each([
    ['MultiplierRedeliveryBackoff of Java (N-01)', asJava],
    ['MultiplierRedeliveryBackoff of Rust (N-06)', asRust],
  ])('%s gives the same, but for the rounding of its logarithm', (_, theirs) => {
    fc.assert(
      fc.property(limits, fc.nat(5_000), (options, count) => {
        const difference = exponentialBackoff(options)(count, half) - theirs(options, count);
        expect(Math.abs(difference)).toBeLessThanOrEqual(1);
      }),
      { seed: 8, numRuns: 1_000 },
    );
  });
});

describe('jitter', () => {
  it.each([
    ['full', 0, 0],
    ['full', 0.5, 2_000],
    ['full', 0.999_999, 3_999],
    ['equal', 0, 2_000],
    ['equal', 0.5, 3_000],
    ['equal', 0.999_999, 3_999],
    ['none', 0.999_999, 4_000],
  ] as const)('%s with a random number of %f makes 4,000 ms into %i', (jitter, random, ms) => {
    expect(exponentialBackoff({ jitter })(2, () => random)).toBe(ms);
  });

  it('takes one random number per wait', () => {
    let taken = 0;
    exponentialBackoff({ jitter: 'equal' })(3, () => (taken++, 0.5));
    expect(taken).toBe(1);
  });
});

describe('the fixed backoff', () => {
  it('waits the same every time', () => {
    const backoff = fixedBackoff(250);
    expect([0, 1, 1_000].map((redeliveries) => backoff(redeliveries, half))).toEqual([250, 250, 250]);
  });

  it('takes 0: at once', () => {
    expect(fixedBackoff(0)(3, half)).toBe(0);
  });

  it.each([-1, NaN, Infinity, '5'])('refuses %s', (delayMs) => {
    expect(() => fixedBackoff(delayMs as number)).toThrow(/"delayMs" must be a duration of 0 ms or more/);
  });
});

describe('the stepped backoff', () => {
  it('waits as listed, then the last delay again and again', () => {
    const backoff = steppedBackoff([1_000, 5_000, 30_000]);
    expect([-1, 0, 1, 2, 3, MOST].map((redeliveries) => backoff(redeliveries, half))).toEqual([
      1_000, 1_000, 5_000, 30_000, 30_000, 30_000,
    ]);
  });

  it('takes delays that shrink, and 0', () => {
    const backoff = steppedBackoff([500, 0]);
    expect([0, 1, 2].map((redeliveries) => backoff(redeliveries, half))).toEqual([500, 0, 0]);
  });

  it('is not changed by a later change of the list', () => {
    const delaysMs = [1_000];
    const backoff = steppedBackoff(delaysMs);
    delaysMs[0] = 5;
    expect(backoff(0, half)).toBe(1_000);
  });

  it.each<[unknown, string]>([
    [[], '"delaysMs" must be a list of at least one delay, got an array of 0'],
    [5, '"delaysMs" must be a list of at least one delay, got 5'],
    [[1, -1], '"delaysMs[1]" must be a duration of 0 ms or more (in milliseconds), got -1'],
    [[NaN, 1], '"delaysMs[0]" must be a duration of 0 ms or more (in milliseconds), got NaN'],
    // oxlint-disable-next-line no-sparse-arrays -- a hole in the list is a delay that is missing
    [[1, , 3], '"delaysMs[1]" is missing; it must be a duration in milliseconds'],
  ])('refuses %j', (delaysMs, problem) => {
    expect(() => steppedBackoff(delaysMs as number[])).toThrow(`steppedBackoff: ${problem}`);
  });

  it('reports every wrong delay at once', () => {
    expect(() => steppedBackoff([-1, 1, Infinity])).toThrow(/^2 configuration problems/);
  });
});

it.each([
  ['fixed', fixedBackoff(1.9)],
  ['stepped', steppedBackoff([1.9])],
  ['exponential', exponentialBackoff({ minMs: 1.9, maxMs: 1.95 })],
])('the %s backoff waits whole milliseconds', (_, backoff) => {
  expect([0, 5].map((redeliveries) => backoff(redeliveries, half))).toEqual([1, 1]);
});

describe('validation names the constraint that failed and the value (N-03, N-07)', () => {
  it.each<[ExponentialBackoffOptions, string]>([
    [{ minMs: -1 }, '"minMs" must be a duration of 0 ms or more (in milliseconds), got -1'],
    [{ minMs: NaN }, '"minMs" must be a duration of 0 ms or more (in milliseconds), got NaN'],
    [{ maxMs: Infinity }, '"maxMs" must be a duration of 0 ms or more (in milliseconds), got Infinity'],
    [{ minMs: 10, maxMs: 5 }, '"maxMs" must be at least "minMs", got minMs 10 and maxMs 5'],
    [{ multiplier: 1 }, '"multiplier" must be greater than 1, got 1'],
    [{ multiplier: 0.5 }, '"multiplier" must be greater than 1, got 0.5'],
    // Finite is checked first (N-07): NaN is not "too small".
    [{ multiplier: NaN }, '"multiplier" must be finite, got NaN'],
    [{ multiplier: -Infinity }, '"multiplier" must be finite, got -Infinity'],
    [{ jitter: 'some' as never }, '"jitter" must be one of none, full, equal, got "some"'],
    [{ maximum: 5 } as never, 'unknown option "maximum", known options are minMs, maxMs, multiplier, jitter'],
    [{ maxMS: 5 } as never, 'unknown option "maxMS", did you mean "maxMs"?'],
  ])('%j', (options, problem) => {
    expect(() => exponentialBackoff(options)).toThrow(`exponentialBackoff: ${problem}`);
  });

  it('reports all problems at once', () => {
    const make = () => exponentialBackoff({ minMs: -1, maxMs: NaN, multiplier: 0 });
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(/^3 configuration problems/);
  });
});
