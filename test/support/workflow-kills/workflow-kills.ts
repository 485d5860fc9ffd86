// One run of `workflow-kills`: processes that run workflows are killed at random moments and followed by others, one alone on an
// embedded broker, two at a time on a real one, until the last one sees all workflows end; and what is left is judged.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/index.js';
import { ServiceProcess } from '../crash/service-process.js';
import { scattered } from '../seeded.js';
import type { EndedWorkflow } from './kills-judge.js';
import { judgedKills } from './kills-judge.js';
import type { KillsSettings, Mistake } from './kills-plan.js';
import { readLedger } from './ledger.js';

const PROGRAM = 'test/support/workflow-kills/kills-program.ts';
/** New ones in each life, so that there is always something to cut. */
const WORKFLOWS_PER_LIFE = 8;
const LONGEST_LIFE_MS = 5_000;
/** Of lives: cut while they open store and broker. */
const SHARE_OF_EARLY_KILLS = 0.2;
const MAX_EARLY_MS = 900;
/** Lines of the ledger after which a life is cut. */
const MAX_BYTES = 2_500;

export interface WorkflowKillsTotals {
  kills: number;
  workflows: number;
  effects: number;
  /** Attempts that were cut: of each nobody knew whether it had done anything. */
  inDoubt: number;
}

export type WorkflowKillsPlace = Pick<KillsSettings, 'store' | 'broker'>;

export interface WorkflowKillsOptions {
  readonly seed: number;
  readonly kills: number;
  readonly place: WorkflowKillsPlace;
  readonly mistake?: Mistake | undefined;
  readonly totals: WorkflowKillsTotals;
}

/** @returns what did not hold, a sentence each */
export async function runWorkflowKills(options: WorkflowKillsOptions): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-workflow-kills-'));
  const run = new KillsRun(options, folder);
  try {
    return await run.run();
  } finally {
    await run.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

class KillsRun {
  readonly #options: WorkflowKillsOptions;
  readonly #folder: string;
  readonly #next: () => number;
  readonly #alive: ServiceProcess[] = [];
  #count = 0;

  constructor(options: WorkflowKillsOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.#next = scattered(options.seed);
  }

  async run(): Promise<readonly string[]> {
    const { kills, totals, place } = this.#options;
    if (place.broker.kind === 'pulsar') await this.#begin(false);
    for (let kill = 0; kill < kills; kill++) {
      const process = await this.#begin(false);
      await this.#moment(process);
      const which = Math.floor(this.#next() * this.#alive.length);
      const [victim = process] = this.#alive.splice(which, 1);
      const { exit, errors } = await victim.kill();
      if (exit !== 'SIGKILL') return [`a process ended by itself (${exit ?? '?'}) before it was killed: ${errors}`];
      totals.kills += 1;
    }
    const last = await this.#begin(true);
    const { told, exit, errors } = await last.ended;
    if (exit !== 0) return [`the last process ended with ${exit ?? '?'}: ${errors}`];
    return this.#judged(told);
  }

  async end(): Promise<void> {
    for (const process of this.#alive) if (!process.hasEnded) await process.kill();
  }

  async #begin(isLast: boolean): Promise<ServiceProcess> {
    this.#count += WORKFLOWS_PER_LIFE;
    const { seed, place, mistake } = this.#options;
    const settings: KillsSettings = { folder: this.#folder, ...place, seed, count: this.#count, isLast, mistake };
    const process = await ServiceProcess.start(settings, { program: PROGRAM });
    this.#alive.push(process);
    return process;
  }

  async #moment(process: ServiceProcess): Promise<void> {
    if (this.#next() < SHARE_OF_EARLY_KILLS) return sleep(this.#next() * MAX_EARLY_MS);
    const bytes = this.#ledgerBytes() + this.#next() * MAX_BYTES;
    const untilMs = systemClock.now() + LONGEST_LIFE_MS;
    while (this.#ledgerBytes() < bytes && systemClock.now() < untilMs && !process.hasEnded) await sleep(3);
    await sleep(this.#next() * 20);
  }

  #ledgerBytes(): number {
    return statSync(join(this.#folder, 'ledger'), { throwIfNoEntry: false })?.size ?? 0;
  }

  #judged(told: readonly string[]): readonly string[] {
    const { totals } = this.#options;
    const ended = told.flatMap((line) => (line.startsWith('end ') ? (JSON.parse(line.slice(4)) as EndedWorkflow) : []));
    const lines = readLedger(this.#folder);
    totals.workflows += ended.length;
    totals.effects += lines.effects.length;
    for (const { journal } of ended)
      totals.inDoubt += journal.filter((entry, at) => {
        const rest = journal.slice(at + 1).find((other) => 'at' in other && 'at' in entry && other.at === entry.at);
        return entry.kind === 'attempt' && rest?.kind === 'attempt';
      }).length;
    return judgedKills(this.#count, ended, lines);
  }
}
