// The figures of a benchmark are only as good as their arithmetic.
import { describe, expect, it } from 'vitest';
import { pairedRatios, quantile, summarize } from '../../bench/statistics.js';

describe('quantile', () => {
  it('is the middle of an odd number of samples, in any order', () => {
    expect(quantile([9, 1, 5], 0.5)).toBe(5);
  });

  it('lies between the two in the middle of an even number', () => {
    expect(quantile([1, 2, 4, 100], 0.5)).toBe(3);
  });

  it('interpolates towards the ends', () => {
    expect(quantile([0, 10, 20, 30, 40], 0.1)).toBeCloseTo(4);
  });

  it('compares numbers as numbers', () => {
    expect(quantile([9, 10, 100], 0)).toBe(9);
  });

  it('leaves the samples as they were', () => {
    const samples = [3, 1, 2];

    quantile(samples, 0.5);

    expect(samples).toEqual([3, 1, 2]);
  });

  it('is NaN without samples', () => {
    expect(quantile([], 0.5)).toBeNaN();
  });
});

describe('summarize', () => {
  it('gives the median with the tenth and the ninetieth percentile', () => {
    const samples = Array.from({ length: 101 }, (_, n) => n);

    expect(summarize(samples)).toEqual({ median: 50, p10: 10, p90: 90 });
  });

  it('shows one sample as all three', () => {
    expect(summarize([7])).toEqual({ median: 7, p10: 7, p90: 7 });
  });
});

describe('pairedRatios', () => {
  it('compares each round with the same round of the baseline, so that a slow minute does not count', () => {
    expect(pairedRatios([20, 200, 22], [10, 100, 11])).toEqual({ median: 2, p10: 2, p90: 2 });
  });

  it('is the median of the ratios, not the ratio of the medians', () => {
    expect(pairedRatios([10, 30, 90], [10, 10, 90]).median).toBe(1);
  });

  it('has the spread of the ratios', () => {
    const samples = Array.from({ length: 11 }, (_, n) => 10 * n);
    const baseline = samples.map(() => 10);

    expect(pairedRatios(samples, baseline)).toEqual({ median: 5, p10: 1, p90: 9 });
  });

  it('refuses rounds that have no partner', () => {
    expect(() => pairedRatios([1, 2], [1])).toThrow('equally many, got 2 and 1');
  });
});
