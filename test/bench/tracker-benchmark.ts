// The NegativeAckTracker alone: adding and cancelling beside a bare binary heap, and bytes per held entry.
import { addAndCancelTimes, heldBytesPerEntry } from './held-memory.js';
import type { Benchmark } from './variant.js';

const HELD = 50_000;
const BARE_HEAP = 'bare binary heap';

export const trackerBenchmark: Benchmark = {
  name: 'tracker',
  processes: 2,
  rounds: 2,
  variants: [
    {
      name: BARE_HEAP,
      warmUpRounds: 1,
      measure: async () => ({ 'ns/entry': addAndCancelTimes(HELD, 1).bareHeap[0] ?? NaN }),
    },
    {
      name: 'add and cancel',
      warmUpRounds: 1,
      baseline: BARE_HEAP,
      measure: async () => ({ 'ns/entry': addAndCancelTimes(HELD, 1).tracker[0] ?? NaN }),
    },
    { name: 'held alone', warmUpRounds: 1, measure: async () => ({ 'bytes/entry': heldBytesPerEntry(HELD) }) },
  ],
};
