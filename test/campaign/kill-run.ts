// One run of `kill`: a service works off its jobs on a real broker, is killed where the plan says, starts again, and in the
// end every job is counted.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { serviceFacts, serviceViolations } from '../support/crash/service-checks.js';
import type { ServiceSettings } from '../support/crash/service-jobs.js';
import { ServicePlace } from '../support/crash/service-place.js';
import type { BrokerAddress } from '../support/crash/service-place.js';
import { ServiceProcess } from '../support/crash/service-process.js';
import { killPlan } from './kill-plan.js';
import type { Kill, KillPlan } from './kill-plan.js';

/** Without kills between them a job fails as often; a death may add an attempt where attempts are recorded. */
const MAX_DELIVERIES = 3;
const LOOK_AGAIN_MS = 100;
const WORK_LIMIT_MS = 120_000;

/** Of all runs of a process. */
export interface KillTotals {
  kills: number;
  jobs: number;
  /** Runs that a kill cut. */
  underWay: number;
  /** Jobs that were done more than once, as at least once allows. */
  repeated: number;
}

/** Gives what did not hold. */
export async function runKills(
  seed: number,
  kills: number,
  broker: BrokerAddress,
  totals: KillTotals,
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-kills-'));
  const run = new KillRun(killPlan(seed, kills), await ServicePlace.prepare(broker), folder);
  try {
    return await run.violations(totals);
  } finally {
    await run.end();
    rmSync(folder, { recursive: true });
  }
}

class KillRun {
  readonly #plan: KillPlan;
  readonly #place: ServicePlace;
  readonly #settings: ServiceSettings;
  readonly #told: string[] = [];
  #underWay = 0;
  #living: ServiceProcess | undefined;

  constructor(plan: KillPlan, place: ServicePlace, folder: string) {
    this.#plan = plan;
    this.#place = place;
    const { options, isIdempotent, recordsAttempts, kills } = plan;
    const { serviceUrl, jobs, results } = place;
    this.#settings = {
      ...{ serviceUrl, jobs, results, options, isIdempotent },
      maxDeliveries: MAX_DELIVERIES + (recordsAttempts ? kills.length : 0),
      attempts: recordsAttempts ? join(folder, 'attempts.log') : undefined,
    };
  }

  async violations(totals: KillTotals): Promise<readonly string[]> {
    const { jobs, batched, kills } = this.#plan;
    await this.#place.publish(jobs, batched);
    const violations: string[] = [];
    for (const kill of kills) violations.push(...(await this.#liveAndDie(kill)));
    violations.push(...(await this.#workOff()));
    const facts = await serviceFacts(this.#place, jobs, this.#told);
    const done = facts.told.filter((line) => line.startsWith('done '));
    totals.kills += kills.length;
    totals.jobs += jobs.length;
    totals.underWay += this.#underWay;
    totals.repeated += done.length - new Set(done).size;
    return [...violations, ...serviceViolations(jobs, facts)];
  }

  /** Whatever still lives. */
  async end(): Promise<void> {
    await this.#living?.kill();
  }

  async #liveAndDie({ run, delayMs }: Kill): Promise<readonly string[]> {
    const service = await this.#start();
    if (run > 0) await service.untilTold('run ', run);
    await sleep(delayMs);
    const { told, exit, errors } = await service.kill();
    this.#told.push(...told);
    this.#underWay += runsUnderWay(told);
    return exit === 'SIGKILL' ? [] : [`it ended by itself (${exit ?? '?'}) before it was killed: ${errors}`];
  }

  async #workOff(): Promise<readonly string[]> {
    const service = await this.#start();
    const giveUpAt = Date.now() + WORK_LIMIT_MS;
    while (!service.hasEnded && Date.now() < giveUpAt && (await this.#place.backlog()) > 0) await sleep(LOOK_AGAIN_MS);
    const { told, exit, errors } = await service.terminate();
    this.#told.push(...told);
    return exit === 0 ? [] : [`the last one ended with ${exit ?? '?'}: ${errors}`];
  }

  async #start(): Promise<ServiceProcess> {
    this.#living = await ServiceProcess.start(this.#settings);
    return this.#living;
  }
}

function runsUnderWay(told: readonly string[]): number {
  const running = new Set<string>();
  for (const line of told) {
    const [word, id = ''] = line.split(' ');
    if (word === 'run') running.add(id);
    else if (word === 'done' || word === 'failed') running.delete(id);
  }
  return running.size;
}
