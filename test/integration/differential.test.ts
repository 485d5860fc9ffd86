// The gate's share of the campaign `differential`: a few programs by seed, and each that once showed a fault.
import { describe, expect } from 'vitest';
import { replayCommand } from '../campaign/campaign.js';
import { differenceOf, differenceText } from '../support/differential/differential-run.js';
import { programFrom } from '../support/differential/program.js';
import type { Program } from '../support/differential/program.js';
import { REGRESSIONS } from '../support/differential/regressions.js';
import type { SharedPulsar } from '../support/real-pulsar/shared-pulsar.js';
import { test } from '../support/real-pulsar/integration-test.js';

/** Two to five seconds each, at the same time. */
const SEEDS = [1, 2, 3, 4];
/** For one thing that must come, on a busy machine. */
const PATIENCE_MS = 20_000;

async function expectNoDifference(program: Program, pulsar: SharedPulsar, replay: string): Promise<void> {
  const difference = await differenceOf(program, pulsar, PATIENCE_MS);
  expect(difference === undefined ? [] : [...differenceText(program, difference), replay]).toEqual([]);
}

describe.concurrent('the embedded broker and a real one', () => {
  for (const seed of SEEDS) {
    test(`do the same with the program of seed ${seed}`, ({ pulsar }) =>
      expectNoDifference(programFrom(seed), pulsar, replayCommand({ name: 'differential' }, seed)));
  }

  for (const { title, program } of REGRESSIONS) {
    test(`do the same: ${title}`, ({ pulsar }) => expectNoDifference(program, pulsar, 'a regression'));
  }
});
