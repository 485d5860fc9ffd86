// `soak`: full load for half an hour with everything observed, while runtimes come and go: memory stays flat, every span
// ends, nothing is lost, and nothing is left when all is closed.
import { loadavg } from 'node:os';
import { minutes as inMinutes, seconds } from '../../src/index.js';
import { soakInProcess } from '../support/soak/soak-process.js';
import type { SoakFacts } from '../support/soak/soak-settings.js';
import type { Campaign } from './campaign.js';

const DEFAULT_MINUTES = 30;
const MAX_HEAP_GROWTH = 0.05;

class SoakCampaign implements Campaign {
  readonly name = 'soak';
  readonly says = 'full load with traces, metrics and logs on, restarts each minute: flat memory, nothing lost or left';
  readonly defaultRuns = 1;
  readonly defaultMinutes = DEFAULT_MINUTES;
  readonly runLimitMs = 180_000;
  readonly #figures: string[] = [];

  summary(): string {
    return this.#figures.join('; ');
  }

  async run(seed: number, minutes: number): Promise<readonly string[]> {
    const settings = {
      seed,
      durationMs: inMinutes(minutes),
      restartEveryMs: inMinutes(1),
      checkEveryMs: seconds(10),
      quietLimitMs: seconds(60),
      maxGrowth: MAX_HEAP_GROWTH,
      slackBytes: 0,
      leaks: [],
    };
    const { violations, facts } = await soakInProcess(settings, true);
    this.#figures.push(shown(facts));
    return violations;
  }
}

function shown(facts: SoakFacts): string {
  const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(2);
  const [load = 0] = loadavg();
  return [
    `${facts.messages} messages, ${facts.repeated} ended again, ${facts.restarts} restarts`,
    `${facts.spans} spans, ${facts.logLines} log lines, ${facts.collections} collections of ${facts.series} series`,
    `heap ${mebibytes(facts.firstHeapBytes)} to ${mebibytes(facts.lastHeapBytes)} MiB`,
    `growth ${(facts.heapGrowth * 100).toFixed(1)} % in ${facts.samples} samples, load ${load.toFixed(1)}`,
  ].join(', ');
}

export const soakCampaign: Campaign = new SoakCampaign();
