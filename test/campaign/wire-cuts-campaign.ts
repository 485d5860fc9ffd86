// `wire-cuts`: publisher and subscription of the wire on a real broker, their connections cut at random bytes.
// The broker is its own: hundreds of topics in a row are more than the one that tests share has memory for.
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { SharedPulsar } from '../support/real-pulsar/shared-pulsar.js';
import type { Campaign } from './campaign.js';
import { CutsPlace, runWireCuts } from './wire-cuts-run.js';

const MEMORY_MB = 512;

class WireCutsCampaign implements Campaign {
  readonly name = 'wire-cuts';
  readonly says = 'connections to a real broker are cut at random bytes, both ways: no message is lost, order is kept';
  readonly defaultRuns = 200;
  #broker: RealPulsar | undefined;
  #place: CutsPlace | undefined;

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing !== undefined) return missing;
    this.#broker = await startPulsar({ memoryMb: MEMORY_MB });
    const pulsar = new SharedPulsar(this.#broker);
    this.#place = await CutsPlace.prepare(pulsar, await pulsar.proxy());
    return undefined;
  }

  summary(): string {
    const { cuts, messages } = this.#place?.totals ?? { cuts: 0, messages: 0 };
    return `${messages} messages, ${cuts} connections lost`;
  }

  async run(seed: number): Promise<readonly string[]> {
    if (this.#place === undefined) throw new Error('wire-cuts is not set up');
    return runWireCuts(seed, this.#place);
  }

  async tearDown(): Promise<void> {
    await this.#place?.proxy.close();
    await this.#broker?.stop();
  }
}

export const wireCutsCampaign: Campaign = new WireCutsCampaign();
