// A sample of the campaign `crash`: random programs of messages with every kind of ending, each cut at a random call to
// broker or store. Nothing may be lost, acknowledged unhandled, or left behind.
import { describe, expect, it } from 'vitest';
import { FAULTS } from '../../../src/testing.js';
import type { Cut } from '../../../src/testing.js';
import type { CrashProgram } from '../../support/crash/crash-program.js';
import { KINDS, crashProgram, randomCut, runCrashProgram } from '../../support/crash/crash-program.js';

const NO_CUT: Cut = { at: 0, fault: 'throws' };
const RUNS = 100;

describe('random programs', () => {
  it.each([0, 1, 2, 3])('lose nothing however they are cut, quarter %i', { timeout: 120_000 }, async (quarter) => {
    for (let seed = 1 + quarter; seed <= RUNS; seed += 4) {
      const program = crashProgram(seed);
      const whole = await runCrashProgram(program, NO_CUT);
      expect(whole.violations, `seed ${seed} without a cut`).toEqual([]);
      const cut = randomCut(seed, whole.calls);
      const { violations } = await runCrashProgram(program, cut);
      expect(violations, `seed ${seed}, ${cut.fault} at call ${cut.at}`).toEqual([]);
    }
  });
});

it('a process that ends in the middle of its drain is followed by another', async () => {
  // The batch that the drain hurried is acknowledged in it: there the process ends.
  const program = { ...crashProgram(7_006_474), drainAfterMs: 5_094 };
  const { violations } = await runCrashProgram(program, { at: 3, fault: 'process-gone' });
  expect(violations).toEqual([]);
});

/** One message of each kind with everything on that writes to stores. */
const EVERYTHING: CrashProgram = {
  seed: 0,
  jobs: [...Object.keys(KINDS), 'wrong'].map((kind) => ({ id: `${kind}-0`, kind })),
  batched: false,
  takesMany: false,
  options: { type: 'shared', retryTopic: true },
  recordsAttempts: true,
  isIdempotent: true,
  drainAfterMs: undefined,
};

describe.each([false, true])('every kind of message with both stores (a batch handler: %s)', (takesMany) => {
  const program = { ...EVERYTHING, takesMany };

  it.each(FAULTS)('loses nothing at any call to broker or store: %s', { timeout: 120_000 }, async (fault) => {
    const { calls, violations } = await runCrashProgram(program, NO_CUT);
    expect(violations).toEqual([]);
    expect(calls).toBeGreaterThan(40);
    for (let at = 1; at <= calls; at += 1) {
      const cut = await runCrashProgram(program, { at, fault });
      expect(cut.violations, `call ${at}`).toEqual([]);
    }
  });
});
