// `outage`: the broker is gone for 30 s in the middle of settlements, which is too long for a test.
import { seconds } from '../../src/index.js';
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { Campaign } from './campaign.js';
import { runOutage } from './outage-run.js';

class OutageCampaign implements Campaign {
  readonly name = 'outage';
  readonly says = 'a real broker is frozen or killed for 30 s in the middle of settlements: nothing is left unsettled';
  readonly defaultRuns = 4;
  readonly runLimitMs = 420_000;
  #broker: RealPulsar | undefined;
  readonly #ends: string[] = [];

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing === undefined) this.#broker = await startPulsar();
    return missing;
  }

  summary(): string {
    return this.#ends.join('; ');
  }

  /** Odd seeds freeze, even ones kill. */
  async run(seed: number): Promise<readonly string[]> {
    if (this.#broker === undefined) throw new Error('outage is not set up');
    const how = seed % 2 === 1 ? 'frozen' : 'killed';
    const { violations, before, after, settledAfterMs } = await runOutage(this.#broker, {
      how,
      durationMs: seconds(30),
    });
    this.#ends.push(`${how}: ${before} settlements before, ${after} after, all within ${settledAfterMs.toFixed(0)} ms`);
    return violations;
  }

  async tearDown(): Promise<void> {
    await this.#broker?.stop();
  }
}

export const outageCampaign: Campaign = new OutageCampaign();
