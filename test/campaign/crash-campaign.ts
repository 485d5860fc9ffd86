// One call of a service to broker or store goes wrong, in a program of messages with every kind of ending: nothing may be
// lost, acknowledged unhandled, or left behind.
import type { Cut } from '../../src/testing.js';
import { crashProgram, randomCut, runCrashProgram } from '../support/crash/crash-program.js';
import type { Campaign } from './campaign.js';

const NO_CUT: Cut = { at: 0, fault: 'throws' };

let calls = 0;

export const crashCampaign: Campaign = {
  name: 'crash',
  says: 'random programs on the embedded broker, cut at a random call: nothing lost, nothing acknowledged unhandled',
  defaultRuns: 100_000,
  async run(seed) {
    const program = crashProgram(seed);
    const whole = await runCrashProgram(program, NO_CUT);
    if (whole.violations.length > 0) return whole.violations.map((violation) => `without a cut: ${violation}`);
    const cut = randomCut(seed, whole.calls);
    calls += whole.calls;
    const { violations } = await runCrashProgram(program, cut);
    return violations.map((violation) => `cut ${cut.fault} at call ${cut.at}: ${violation}`);
  },
  summary: () => `${calls} calls in the programs without a cut`,
};
