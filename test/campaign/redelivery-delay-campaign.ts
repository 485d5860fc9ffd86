// `redelivery-delay`: a handler that always fails, by a known schedule, on a real broker. Here and not in a test, because how
// late a request leaves depends on what else the machine does.
import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { earlyOrMissing, percentile, redeliveryDelays } from '../support/redelivery-delay.js';
import type { Campaign } from './campaign.js';

const JOBS = 250;
const GAP_MS = 10;
const LATE_MS = 50;

class RedeliveryDelayCampaign implements Campaign {
  readonly name = 'redelivery-delay';
  readonly says = `requests for redelivery leave at most ${LATE_MS} ms after they are due (p95), never early`;
  readonly defaultRuns = 5;
  #broker: RealPulsar | undefined;
  readonly #figures: string[] = [];

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing === undefined) this.#broker = await startPulsar();
    return missing;
  }

  summary(): string {
    return `ms after due (p50, p95, largest): ${this.#figures.join('; ')}`;
  }

  async run(): Promise<readonly string[]> {
    if (this.#broker === undefined) throw new Error('redelivery-delay is not set up');
    const name = `redelivery-delay-${randomUUID()}`;
    const delays = await redeliveryDelays(this.#broker.serviceUrl, name, { jobs: JOBS, gapMs: GAP_MS });
    const { requestedMs, arrivedMs } = delays;
    const [load = 0] = loadavg();
    this.#figures.push(`requests ${shown(requestedMs)}, arrivals ${shown(arrivedMs)}, load ${load.toFixed(1)}`);
    const p95 = percentile(requestedMs, 0.95);
    const late = p95 <= LATE_MS ? [] : [`requests left ${p95} ms after they were due (p95), load ${load.toFixed(1)}`];
    return [...earlyOrMissing(delays), ...late];
  }

  async tearDown(): Promise<void> {
    await this.#broker?.stop();
  }
}

function shown(values: readonly number[]): string {
  return [percentile(values, 0.5), percentile(values, 0.95), percentile(values, 1)].join('/');
}

export const redeliveryDelayCampaign: Campaign = new RedeliveryDelayCampaign();
