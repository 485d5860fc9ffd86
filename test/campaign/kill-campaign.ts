// `kill`: a service on a real broker dies by `kill -9` in the middle of its work, again and again: nothing may be lost,
// acknowledged unhandled, or left behind.
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { Campaign } from './campaign.js';
import { runKills } from './kill-run.js';
import type { KillTotals } from './kill-run.js';

const MEMORY_MB = 512;
const KILLS_PER_RUN = 5;

class KillCampaign implements Campaign {
  readonly name = 'kill';
  readonly says = `a service on a real broker is killed (kill -9) ${KILLS_PER_RUN} times a run: every message is done or a dead letter`;
  readonly defaultRuns = 20;
  readonly runLimitMs = 240_000;
  readonly #totals: KillTotals = { kills: 0, jobs: 0, underWay: 0, repeated: 0 };
  #broker: RealPulsar | undefined;

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing === undefined) this.#broker = await startPulsar({ memoryMb: MEMORY_MB });
    return missing;
  }

  summary(): string {
    const { kills, jobs, underWay, repeated } = this.#totals;
    return `${kills} kills, ${jobs} messages, ${underWay} runs under way at a kill, ${repeated} handled again`;
  }

  async run(seed: number): Promise<readonly string[]> {
    if (this.#broker === undefined) throw new Error('kill is not set up');
    return runKills(seed, KILLS_PER_RUN, this.#broker, this.#totals);
  }

  async tearDown(): Promise<void> {
    await this.#broker?.stop();
  }
}

export const killCampaign: Campaign = new KillCampaign();
