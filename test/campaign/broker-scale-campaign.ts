// `broker-scale`: the steps of the embedded broker at up to a million messages, in counts that no load of the machine changes.
import { runProgram } from '../support/run-node.js';
import type { OperationSteps } from '../support/broker-scale/step-growth.js';
import { fasterThanLog } from '../support/broker-scale/step-growth.js';
import type { Campaign } from './campaign.js';

const SIZES = ['1000', '10000', '100000', '1000000'];
const BYTES_PER_MESSAGE = 300;

class BrokerScaleCampaign implements Campaign {
  readonly name = 'broker-scale';
  readonly says =
    'with a million messages no operation of the embedded broker takes more than log n steps, or 300 bytes per message';
  readonly defaultRuns = 1;
  readonly runLimitMs = 3_600_000;
  #report: string[] = [];

  summary(): string {
    return this.#report.join('\n');
  }

  async run(): Promise<readonly string[]> {
    const counted = await runProgram('test/support/broker-scale/scale-program.ts', { args: SIZES });
    const operations = JSON.parse(counted.stdout) as OperationSteps[];
    const measured = await runProgram('test/support/broker-scale/memory-program.ts', { args: SIZES.slice(-1) });
    const bytes = JSON.parse(measured.stdout) as Record<string, number>;
    this.#report = [
      ...operations.map(
        ({ name, per, steps }) => `${steps.map((each) => each.toFixed(0)).join(', ')} steps per ${per}: ${name}`,
      ),
      ...Object.entries(bytes).map(
        ([kind, each]) => `${each.toFixed(0)} bytes beyond the payload of a message that ${kind}`,
      ),
    ];
    const large = Object.entries(bytes).filter(([, each]) => each > BYTES_PER_MESSAGE);
    return [
      ...operations.flatMap(fasterThanLog),
      ...large.map(([kind, each]) => `a message that ${kind} takes ${each.toFixed(0)} bytes beyond its payload`),
    ];
  }
}

export const brokerScaleCampaign: Campaign = new BrokerScaleCampaign();
