// `conformance`: the cases of the conformance suite that take too long for the gate, over the wire on a real broker. It is one
// of their own: they leave tens of thousands of messages behind.
import { conformanceCases, missingFor, runConformanceCase } from '../../src/testing.js';
import type { ConformanceCase, ConformanceHarness } from '../../src/testing.js';
import { wireHarness } from '../conformance/real-broker-harness.js';
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startJavaPeer } from '../support/real-pulsar/client-peers.js';
import type { PulsarPeer } from '../support/real-pulsar/pulsar-peer.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { SharedPulsar } from '../support/real-pulsar/shared-pulsar.js';
import type { Campaign } from './campaign.js';

const MEMORY_MB = 512;
const CASES = conformanceCases.filter(({ realTime }) => typeof realTime === 'object' && realTime.only === 'campaign');

class ConformanceCampaign implements Campaign {
  readonly name = 'conformance';
  readonly says = `the ${CASES.length} cases of the conformance suite that take too long for the gate, over the wire on a real broker`;
  readonly defaultRuns = 1;
  readonly runLimitMs = 600_000;
  readonly #seconds: string[] = [];
  #broker: RealPulsar | undefined;
  #java: PulsarPeer | undefined;

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing !== undefined) return missing;
    this.#broker = await startPulsar({ memoryMb: MEMORY_MB });
    this.#java = await startJavaPeer();
    return undefined;
  }

  summary(): string {
    return `seconds for each: ${this.#seconds.join(', ')}`;
  }

  /** One after the other, since all of them take much of the broker. They have nothing random. */
  async run(): Promise<readonly string[]> {
    const violations: string[] = [];
    for (const conformanceCase of CASES) {
      const begunMs = performance.now();
      const violated = await this.#violated(conformanceCase);
      this.#seconds.push(((performance.now() - begunMs) / 1_000).toFixed(1));
      if (violated !== undefined) violations.push(`${conformanceCase.title}: ${violated}`);
    }
    return violations;
  }

  async tearDown(): Promise<void> {
    await this.#java?.close();
    await this.#broker?.stop();
  }

  async #violated(conformanceCase: ConformanceCase): Promise<string | undefined> {
    if (this.#broker === undefined) throw new Error('conformance is not set up');
    const broker = this.#broker;
    const harness: ConformanceHarness = {
      ...wireHarness(new SharedPulsar(broker), this.#java),
      restart: async () => {
        await broker.terminate();
        await broker.restart();
      },
    };
    const { capabilities } = await harness.newTransport();
    const missing = missingFor(conformanceCase, capabilities, harness);
    if (missing !== undefined) return missing;
    return runConformanceCase(conformanceCase, harness).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  }
}

export const conformanceCampaign: Campaign = new ConformanceCampaign();
