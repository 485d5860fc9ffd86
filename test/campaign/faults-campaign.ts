// A broker with faults on purpose, `broker.inject`, under handlers that fail, wait and give up: nothing may be lost, left
// behind, or taken before its turn.
import type { FaultName } from '../../src/testing.js';
import { FAULT_SHAPES, runFaultProgram } from '../support/fault-program.js';
import type { Campaign } from './campaign.js';

const totals = new Map<FaultName, number>();

export const faultsCampaign: Campaign = {
  name: 'faults',
  says: 'random faults of the embedded broker on every subscription type: each message handled or given up, order per key kept',
  defaultRuns: 1_000,
  async run(seed) {
    const shape = FAULT_SHAPES[seed % FAULT_SHAPES.length] ?? { type: 'shared' };
    const { counts, violations } = await runFaultProgram(seed, shape);
    for (const [name, count] of Object.entries(counts) as [FaultName, number][])
      totals.set(name, (totals.get(name) ?? 0) + count);
    return violations.map((violation) => `${shape.type}, ordering ${shape.ordering ?? 'none'}: ${violation}`);
  },
  summary: () => [...totals].map(([name, count]) => `${count} ${name}`).join(', '),
};
