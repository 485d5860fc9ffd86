// One run of `transaction-kills`: the program of its seed lives in a folder, is killed at random moments and begins again. The last
// life is one of this process, which costs no start: it works off everything, and what all lives told is judged.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceProcess } from '../support/crash/service-process.js';
import { scattered } from '../support/seeded.js';
import { judged } from '../support/transaction-kills/kills-judge.js';
import { KillsLife } from '../support/transaction-kills/kills-life.js';
import { planOf } from '../support/transaction-kills/kills-settings.js';
import type { KillsPlan, KillsSettings } from '../support/transaction-kills/kills-settings.js';

const PROGRAM = 'test/support/transaction-kills/kills-program.ts';
const LONGEST_LIFE_MS = 20_000;

/** Of all runs of a process. */
export interface TransactionKillTotals {
  kills: number;
  committed: number;
  aborted: number;
  cut: number;
}

/** Gives what did not hold. @param plan @default the program of the seed */
export async function runTransactionKills(
  seed: number,
  totals: TransactionKillTotals,
  plan: KillsPlan = planOf(seed),
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-transaction-kills-'));
  const next = scattered(seed + 1);
  const told: (readonly string[])[] = [];
  const violations: string[] = [];
  try {
    const settings = { dir: join(folder, 'broker'), seed, plan };
    for (let life = 0; life < plan.kills; life++) {
      const killed = await killedLife({ ...settings, life }, next);
      told.push(killed.told);
      if (killed.problem !== undefined) violations.push(killed.problem);
    }
    told.push(await lastLife({ ...settings, life: plan.kills }));
  } finally {
    rmSync(folder, { recursive: true });
  }
  const { violations: found, committed, aborted, cut } = judged(told);
  totals.kills += plan.kills;
  totals.committed += committed;
  totals.aborted += aborted;
  totals.cut += cut;
  return [...violations, ...found];
}

async function killedLife(settings: KillsSettings, next: () => number) {
  const service = await ServiceProcess.start(settings, { program: PROGRAM });
  const { inputs, jobs } = settings.plan;
  // Some die while they open the folder. A job is told of about three times.
  const [start, count] = next() < 0.2 ? ['begins', 1] : ['', 2 + Math.floor(next() * 3 * jobs * inputs.length)];
  const idle = service.untilTold('idle');
  await Promise.race([service.untilTold(start, count), idle, sleep(LONGEST_LIFE_MS, undefined, { ref: false })]);
  await sleep(next() * 10);
  const { told, exit, errors } = await service.kill();
  const problem =
    exit === 'SIGKILL' ? undefined : `it ended by itself (${exit ?? '?'}) before it was killed: ${errors}`;
  return { told, problem };
}

async function lastLife(settings: KillsSettings): Promise<readonly string[]> {
  const told: string[] = [];
  const life = new KillsLife(settings, (line) => void told.push(line));
  await life.open();
  life.work();
  await life.idle();
  await life.collected();
  for (const output of settings.plan.outputs) await life.tellAll(output);
  await life.close();
  return told;
}
