// Interleavings that once violated a rule, as small as they did. Kept as programs, not as seeds: a change of the generator would
// make other programs of the same seeds.
import type { Program, Setting } from './program.js';

export interface Regression {
  /** What is right, in a sentence. */
  readonly title: string;
  /** Of the run that showed it. */
  readonly seed: number;
  readonly program: Program;
}

const USUAL: Omit<Setting, 'mode'> = {
  ...{ partitions: 1, concurrency: 1, prefetch: 5, maxDeliveries: 4, backoffMs: 0, maxProcesses: 1, keyBlocks: false },
  ...{ maxLaneMessages: 1_000, consistentHashing: true, lookAhead: 2_000, maxRetryingPositions: 50_000, latencyMs: 0 },
};

export const REGRESSIONS: readonly Regression[] = [
  {
    // The guard of the key ended 60 s after the delay, and what lay in the client since before the failure passed.
    title: 'a pause that is longer than a minute lets nothing pass what failed before it',
    seed: 1779,
    program: {
      setting: { ...USUAL, mode: 'broker' },
      steps: [
        { do: 'publish', jobs: [{ key: 'key-12', endings: [{ how: 'retry', delayMs: 0, runMs: 0 }] }] },
        { do: 'publish', jobs: [{ key: 'key-12', endings: [] }] },
        { do: 'pause', at: 0 },
        { do: 'pass', ms: 60_000 },
      ],
    },
  },
  {
    // The copy was acknowledged once; that call failed, and nothing asked again. Its slot then stayed with its process for ever.
    title: 'the copy of a message of a batch is acknowledged again until the broker knows',
    seed: 3568,
    program: {
      setting: { ...USUAL, mode: 'broker-cannot', maxDeliveries: 1, maxProcesses: 2, keyBlocks: true },
      steps: [
        {
          do: 'publish-batch',
          jobs: [
            { key: 'key-540', endings: [] },
            { key: 'key-540', endings: [{ how: 'retry', delayMs: 0, runMs: 0 }] },
          ],
        },
        { do: 'pass', ms: 0 },
        { do: 'fault', at: 0, fault: 'throws' },
        { do: 'restart' },
        { do: 'join' },
        { do: 'publish', jobs: [{ key: 'key-12', endings: [] }] },
      ],
    },
  },
  {
    // It waited for a person who had no name for it.
    title: 'a message without a key that is given up blocks nothing',
    seed: 15,
    program: {
      setting: { ...USUAL, mode: 'broker', keyBlocks: true },
      steps: [
        { do: 'publish', jobs: [{ key: undefined, endings: [{ how: 'poison', delayMs: 0, runMs: 0 }] }] },
        { do: 'pass', ms: 0 },
      ],
    },
  },
];
