// From samples to the figures that are reported: the median with its spread, and the ratio to a baseline.

export interface Summary {
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
}

/** The value below which `share` (0 to 1) of the samples lie, interpolated between neighbours. NaN without samples. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)] ?? NaN;
  const above = sorted[Math.ceil(at)] ?? NaN;
  return below + (above - below) * (at - Math.floor(at));
}

export function summarize(samples: readonly number[]): Summary {
  return { median: quantile(samples, 0.5), p10: quantile(samples, 0.1), p90: quantile(samples, 0.9) };
}

/**
 * The ratios round by round, as a median with its spread: both samples of a round were taken within a second, so what else
 * runs on the machine weighs on both.
 */
export function pairedRatios(samples: readonly number[], baseline: readonly number[]): Summary {
  if (samples.length !== baseline.length) {
    throw new RangeError(`paired samples must be equally many, got ${samples.length} and ${baseline.length}`);
  }
  return summarize(samples.map((sample, round) => sample / (baseline[round] ?? NaN)));
}
