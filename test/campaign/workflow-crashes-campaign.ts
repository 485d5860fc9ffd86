// `workflow-crashes`: the workflows of the three examples, in a world in which one call to broker or store goes wrong (each call, in
// each way), and in one in which several things do. What must hold is in `test/support/workflow-crash/checks.ts`.
import type { CountedBase } from '../support/workflow-crash/generator.js';
import { programOf, seedsOfAllCuts } from '../support/workflow-crash/generator.js';
import { countedBases, explained, runCrash } from '../support/workflow-crash/workflow-crash.js';
import type { Campaign } from './campaign.js';

let bases: Promise<readonly CountedBase[]> | undefined;
let allCuts = 0;
const seen = { workflows: 0, processes: 0, effects: 0 };

export const workflowCrashesCampaign: Campaign = {
  name: 'workflow-crashes',
  says: 'three workflows, each call cut in each way, and several things gone wrong by chance: all end right, no recorded step runs again, all is undone',
  defaultRuns: 100_000,
  // One that violates something is made smaller, in up to 300 runs.
  runLimitMs: 600_000,
  async run(seed) {
    bases ??= countedBases();
    allCuts = seedsOfAllCuts(await bases);
    const program = programOf(seed, await bases);
    const run = await runCrash(program);
    seen.workflows += run.seen.workflows.length;
    seen.processes += run.seen.processes;
    seen.effects += run.seen.effects.length;
    return explained(program, run.violations);
  },
  summary: () =>
    `${seen.workflows} workflows, ${seen.effects} effects, ${seen.processes} processes; seeds 1 to ${allCuts} cut each call in each way`,
};
