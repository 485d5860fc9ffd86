// `exactly-once`: 10,000 messages are consumed, transformed and produced in transactions while processes are killed 50 times and
// the broker twice.
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startJavaPeer } from '../support/real-pulsar/client-peers.js';
import type { PulsarPeer } from '../support/real-pulsar/pulsar-peer.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { Campaign } from './campaign.js';
import { runExactlyOnce } from './exactly-once-run.js';
import type { ExactlyOncePlan, ExactlyOnceTotals } from './exactly-once-run.js';

const OPTIONS: readonly ExactlyOncePlan['options'][] = [
  { type: 'shared', concurrency: 16 },
  { type: 'key-shared', ordering: 'key', concurrency: 16 },
  { type: 'failover', concurrency: 16 },
];

class ExactlyOnceCampaign implements Campaign {
  readonly name = 'exactly-once';
  readonly says =
    'transactional handlers on a real broker, killed 50 times, the broker twice: each result is there once, read by Java';
  readonly defaultRuns = 1;
  readonly runLimitMs = 1_800_000;
  readonly #totals: ExactlyOnceTotals = { jobs: 0, kills: 0, brokerKills: 0, told: 0 };
  #broker: RealPulsar | undefined;
  #java: PulsarPeer | undefined;

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing !== undefined) return missing;
    this.#broker = await startPulsar({ proxies: 0, transactions: true, memoryMb: 512 });
    this.#java = await startJavaPeer();
    return undefined;
  }

  summary(): string {
    const { jobs, kills, brokerKills, told } = this.#totals;
    return `${jobs} messages, ${told} settlements told, ${kills} processes and ${brokerKills} brokers killed`;
  }

  /** On Shared, Key_Shared in order and Failover in turn. */
  async run(seed: number): Promise<readonly string[]> {
    if (this.#broker === undefined || this.#java === undefined) throw new Error('exactly-once is not set up');
    const options = OPTIONS[(seed - 1) % OPTIONS.length]!;
    const plan = { seed, jobs: 10_000, kills: 50, brokerKills: 2, processes: 3, options };
    return runExactlyOnce(plan, this.#broker, this.#java, this.#totals);
  }

  async tearDown(): Promise<void> {
    await this.#java?.close();
    await this.#broker?.stop();
  }
}

export const exactlyOnceCampaign: Campaign = new ExactlyOnceCampaign();
