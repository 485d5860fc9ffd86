// `ordering-model`: random interleavings of all that can happen to the messages of a key, on the embedded broker in virtual time,
// watched from outside. The rules, with each exception, are in `test/support/ordering-model/ordering-model.ts`.
import { programOf } from '../support/ordering-model/generator.js';
import { explained, runModel } from '../support/ordering-model/ordering-model.js';
import type { Mode } from '../support/ordering-model/program.js';
import { MODES } from '../support/ordering-model/program.js';
import type { Campaign } from './campaign.js';

const runs = new Map<Mode, number>(MODES.map((mode) => [mode, 0]));

export function modeOf(seed: number): Mode {
  return MODES[seed % MODES.length]!;
}

export const orderingModelCampaign: Campaign = {
  name: 'ordering-model',
  says: 'random interleavings of failures, joins, leaves, crashes and unloads with `ordering: key`: order kept, nothing lost or stuck',
  defaultRuns: 100_000,
  // One that violates a rule is made smaller, in up to two thousand runs.
  runLimitMs: 600_000,
  async run(seed) {
    const mode = modeOf(seed);
    const program = programOf(seed, mode);
    const { violations } = await runModel(program);
    runs.set(mode, (runs.get(mode) ?? 0) + 1);
    return explained(program, violations);
  },
  summary: () => [...runs].map(([mode, count]) => `${count} in mode ${mode}`).join(', '),
};
