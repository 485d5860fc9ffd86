// `workflow-kills`: processes that run the workflows of the examples are killed (kill -9) at random moments, on a store and a broker
// of one's choice: every workflow ends right, and what was done outside agrees with what is recorded.
import { randomUUID } from 'node:crypto';
import process from 'node:process';
import { PostgresServer, postgresMissing } from '../support/postgres/postgres-server.js';
import { missingTools } from '../support/real-pulsar/artifacts.js';
import { startPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import type { KillsSettings } from '../support/workflow-kills/kills-plan.js';
import { MISTAKES } from '../support/workflow-kills/kills-plan.js';
import type { WorkflowKillsTotals } from '../support/workflow-kills/workflow-kills.js';
import { runWorkflowKills } from '../support/workflow-kills/workflow-kills.js';
import type { Campaign, Choices } from './campaign.js';

const KILLS_PER_RUN = 10;
const MEMORY_MB = 512;

class WorkflowKillsCampaign implements Campaign {
  readonly name = 'workflow-kills';
  readonly says = `processes that run workflows are killed (kill -9) ${KILLS_PER_RUN} times a run: each workflow ends right, and nothing runs again`;
  readonly defaultRuns = 20;
  readonly runLimitMs = 300_000;
  /** `mistake`: what goes wrong on purpose, which the checks then find. */
  readonly choices = {
    store: ['sqlite', 'postgres'],
    broker: ['embedded', 'pulsar'],
    mistake: ['none', ...MISTAKES],
  } as const;
  readonly #totals: WorkflowKillsTotals = { kills: 0, workflows: 0, effects: 0, inDoubt: 0 };
  #postgres: PostgresServer | undefined;
  #pulsar: RealPulsar | undefined;
  /** A broker that is there already. */
  readonly #pulsarUrl = process.env['PULSAR_URL'] ?? '';

  async setUp({ store, broker }: Choices): Promise<string | undefined> {
    const missing = (store === 'postgres' ? postgresMissing() : undefined) ?? (await this.#pulsarMissing(broker));
    if (missing !== undefined) return missing;
    if (store === 'postgres') this.#postgres = await PostgresServer.start();
    if (broker === 'pulsar' && this.#pulsarUrl === '') this.#pulsar = await startPulsar({ memoryMb: MEMORY_MB });
    return undefined;
  }

  summary(): string {
    const { kills, workflows, effects, inDoubt } = this.#totals;
    return `${kills} kills, ${workflows} workflows, ${effects} effects, ${inDoubt} attempts cut`;
  }

  run(seed: number, _minutes: number, { store, broker, mistake: asked }: Choices): Promise<readonly string[]> {
    const place = { store: this.#storeOf(store, seed), broker: this.#brokerOf(broker) };
    const mistake = MISTAKES.find((each) => each === asked);
    return runWorkflowKills({ seed, kills: KILLS_PER_RUN, place, mistake, totals: this.#totals });
  }

  async tearDown(): Promise<void> {
    await this.#postgres?.stop();
    await this.#pulsar?.stop();
  }

  #storeOf(kind: string | undefined, seed: number): KillsSettings['store'] {
    if (kind !== 'postgres') return { kind: 'sqlite' };
    return { kind, url: this.#postgres?.url ?? '', schema: `run_${seed}` };
  }

  #brokerOf(kind: string | undefined): KillsSettings['broker'] {
    if (kind !== 'pulsar') return { kind: 'embedded' };
    // The topics of other runs stay on it.
    return { kind, url: this.#pulsar?.serviceUrl ?? this.#pulsarUrl, prefix: `${randomUUID()}-` };
  }

  async #pulsarMissing(broker: string | undefined): Promise<string | undefined> {
    return broker === 'pulsar' && this.#pulsarUrl === '' ? missingTools() : undefined;
  }
}

export const workflowKillsCampaign: Campaign = new WorkflowKillsCampaign();
