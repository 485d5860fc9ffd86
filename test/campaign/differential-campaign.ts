// `differential`: the same random programs on the embedded broker and on a real one, step by step. The broker is its own: hundreds
// of topics in a row are more than the one that tests share has memory for.
import { differenceOf, differenceText } from '../support/differential/differential-run.js';
import { programFrom } from '../support/differential/program.js';
import type { Program } from '../support/differential/program.js';
import { shrunk } from '../support/differential/shrink.js';
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { SharedPulsar } from '../support/real-pulsar/shared-pulsar.js';
import type { Campaign } from './campaign.js';

const MEMORY_MB = 768;
/** How long what must come may take: most comes within 50 ms, a change of the active Failover consumer takes a second. */
const PATIENCE_MS = 8_000;
/** While a program is made shorter each difference takes this long to be seen. */
const SHRINKING_PATIENCE_MS = 3_000;
const MAX_SHORTER_PROGRAMS = 40;

class DifferentialCampaign implements Campaign {
  readonly name = 'differential';
  readonly says =
    'random programs on the embedded broker and on a real one: the same arrives, with the same counts and backlogs';
  readonly defaultRuns = 200;
  /** They wait for the broker more than they work. */
  readonly atOnce = 6;
  readonly runLimitMs = 400_000;
  #broker: RealPulsar | undefined;
  #steps = 0;

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing === undefined) this.#broker = await startPulsar({ memoryMb: MEMORY_MB });
    return missing;
  }

  summary(): string {
    return `${this.#steps} steps`;
  }

  async run(seed: number): Promise<readonly string[]> {
    if (this.#broker === undefined) throw new Error('differential is not set up');
    const pulsar = new SharedPulsar(this.#broker);
    const program = programFrom(seed);
    this.#steps += program.steps.length;
    const difference = await differenceOf(program, pulsar, PATIENCE_MS);
    if (difference === undefined) return [];
    const upToThere = { ...program, steps: program.steps.slice(0, difference.at + 1) };
    const differs = async (shorter: Program): Promise<boolean> =>
      (await differenceOf(shorter, pulsar, SHRINKING_PATIENCE_MS)) !== undefined;
    const shortest = await shrunk(upToThere, differs, MAX_SHORTER_PROGRAMS);
    return [...differenceText(program, difference), `as short as it was made: ${JSON.stringify(shortest)}`];
  }

  async tearDown(): Promise<void> {
    await this.#broker?.stop();
  }
}

export const differentialCampaign: Campaign = new DifferentialCampaign();
