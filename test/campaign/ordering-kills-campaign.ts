// `ordering-kills`: processes with `ordering: 'key'` on a real broker, which keeps no order of what failed, are killed by
// `kill -9` in the middle of their work: no message of a key passes an earlier one, none is lost, every run ends empty.
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { Campaign } from './campaign.js';
import { NO_TOTALS, runOrderingKills } from './ordering-kills-run.js';
import type { OrderedTotals } from './ordering-kills-run.js';

const MEMORY_MB = 512;

class OrderingKillsCampaign implements Campaign {
  readonly name = 'ordering-kills';
  readonly says = 'processes that keep order per key on a real broker are killed, drained and joined: the order holds';
  readonly defaultRuns = 200;
  readonly runLimitMs = 240_000;
  /** Their processes wait more than they work. */
  readonly atOnce = 2;
  readonly #totals: OrderedTotals = { ...NO_TOTALS };
  #broker: RealPulsar | undefined;

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing === undefined) this.#broker = await startPulsar({ memoryMb: MEMORY_MB });
    return missing;
  }

  summary(): string {
    const { messages, runs, kills, drains, joins, cut, moved } = this.#totals;
    return [
      `${messages} messages, ${runs} runs, ${kills} kills, ${drains} drains, ${joins} joins`,
      `${cut} runs cut, ${moved} messages that more than one process worked on`,
    ].join(', ');
  }

  async run(seed: number): Promise<readonly string[]> {
    if (this.#broker === undefined) throw new Error('ordering-kills is not set up');
    return runOrderingKills(seed, this.#broker, this.#totals);
  }

  async tearDown(): Promise<void> {
    await this.#broker?.stop();
  }
}

export const orderingKillsCampaign: Campaign = new OrderingKillsCampaign();
