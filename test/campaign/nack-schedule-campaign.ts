// `nack-schedule`: the default backoff of negative acknowledgements in real time, 31 s a run: too long for a test.
import { randomUUID } from 'node:crypto';
import { DEFAULT_BACKOFF } from '../../src/core/backoff.js';
import { WireClient } from '../../src/wire.js';
import { nackSchedule, offSchedule } from '../support/nack-schedule.js';
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { Campaign } from './campaign.js';

class NackScheduleCampaign implements Campaign {
  readonly name = 'nack-schedule';
  readonly says =
    'a message negatively acknowledged five times comes again after 1, 2, 4, 8 and 16 s, from a real broker';
  readonly defaultRuns = 3;
  readonly runLimitMs = 120_000;
  #broker: RealPulsar | undefined;
  #waits: string[] = [];

  async setUp(): Promise<string | undefined> {
    const missing = await missingTools();
    if (missing === undefined) this.#broker = await startPulsar();
    return missing;
  }

  summary(): string {
    return `waits in ms: ${this.#waits.join('; ')}`;
  }

  async run(): Promise<readonly string[]> {
    if (this.#broker === undefined) throw new Error('nack-schedule is not set up');
    const { serviceUrl } = this.#broker;
    const topic = `nack-schedule-${randomUUID()}`;
    await publishOne(serviceUrl, topic);
    const schedule = await nackSchedule(serviceUrl, topic, DEFAULT_BACKOFF.minMs);
    this.#waits.push(schedule.waitsMs.map((ms) => ms.toFixed(0)).join(', '));
    return offSchedule(schedule, DEFAULT_BACKOFF.minMs);
  }

  async tearDown(): Promise<void> {
    await this.#broker?.stop();
  }
}

async function publishOne(serviceUrl: string, topic: string): Promise<void> {
  const client = new WireClient({ serviceUrl });
  const publisher = await client.publisher(topic);
  await publisher.publish({ payload: Buffer.from('a'), properties: {} }, publisher.nextSequenceId());
  await client.close();
}

export const nackScheduleCampaign: Campaign = new NackScheduleCampaign();
