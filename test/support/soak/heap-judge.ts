// Whether memory grows: decided on samples taken after a forced collection while nothing is under way. The slope is the
// median of the slopes between all pairs (Theil and Sen): a few samples that something else disturbed do not move it.

export interface HeapSample {
  /** Milliseconds since the start. */
  readonly atMs: number;
  readonly bytes: number;
}

export interface HeapLimits {
  /** The share of the time at the beginning that does not count: code is compiled, caches fill. From 0 to 1. */
  readonly warmUpShare: number;
  /** Growth over the rest of the time, as a share of the memory at its beginning. */
  readonly maxGrowth: number;
  /** Growth up to so many bytes is none: a short run has noise. */
  readonly slackBytes: number;
}

export interface HeapVerdict {
  /** After warm-up. */
  readonly samples: number;
  /** Medians of the first and the last third. */
  readonly firstBytes: number;
  readonly lastBytes: number;
  /** By the slope, over the time that counts. Negative where memory shrank. */
  readonly grownBytes: number;
  /** The same as a share of `firstBytes`. */
  readonly growth: number;
  readonly isFlat: boolean;
}

const FEWEST_SAMPLES = 4;

/** @throws RangeError with fewer than four samples after warm-up: they say nothing. */
export function judgeHeap(samples: readonly HeapSample[], limits: HeapLimits): HeapVerdict {
  const lastMs = samples.at(-1)?.atMs ?? 0;
  const counted = samples.filter(({ atMs }) => atMs >= limits.warmUpShare * lastMs);
  if (counted.length < FEWEST_SAMPLES) {
    throw new RangeError(`${counted.length} samples of the heap after warm-up, ${FEWEST_SAMPLES} are needed`);
  }
  const third = Math.ceil(counted.length / 3);
  const firstBytes = median(counted.slice(0, third).map(({ bytes }) => bytes));
  const lastBytes = median(counted.slice(-third).map(({ bytes }) => bytes));
  const grownBytes = slopeOf(counted) * (lastMs - (counted[0]?.atMs ?? 0));
  const growth = grownBytes / firstBytes;
  const isFlat = growth <= limits.maxGrowth || grownBytes <= limits.slackBytes;
  return { samples: counted.length, firstBytes, lastBytes, grownBytes, growth, isFlat };
}

/** Bytes per millisecond. */
function slopeOf(samples: readonly HeapSample[]): number {
  const slopes = samples.flatMap((from, i) =>
    samples
      .slice(i + 1)
      .filter(({ atMs }) => atMs > from.atMs)
      .map((to) => (to.bytes - from.bytes) / (to.atMs - from.atMs)),
  );
  return median(slopes);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? NaN;
  return (lower + upper) / 2;
}

/** What is in use once nothing more can be freed. Needs `--expose-gc`. */
export async function usedBytes(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  for (let i = 0; i < 3; i++) {
    // References in the stack, and what a finished promise holds, are gone in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
