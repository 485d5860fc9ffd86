// One run of `transaction-kills`: a service on a durable embedded broker lives in a folder, is killed at a random moment and begins
// again, and what all its lives told is judged.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceProcess } from '../support/crash/service-process.js';
import { scattered } from '../support/seeded.js';
import { judged } from '../support/transaction-kills/kills-judge.js';
import type { LifeTold } from '../support/transaction-kills/kills-judge.js';
import type { KillsSettings } from '../support/transaction-kills/kills-settings.js';

const PROGRAM = 'test/support/transaction-kills/kills-program.ts';
const JOBS_PER_LIFE = 12;
const LONGEST_LIFE_MS = 20_000;

/** Of all runs of a process. */
export interface TransactionKillTotals {
  kills: number;
  committed: number;
  aborted: number;
  cut: number;
}

/** Gives what did not hold. */
export async function runTransactionKills(
  seed: number,
  kills: number,
  totals: TransactionKillTotals,
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-transaction-kills-'));
  const next = scattered(seed);
  const lives: LifeTold[] = [];
  const violations: string[] = [];
  try {
    const settings = { dir: join(folder, 'broker'), seed, jobs: JOBS_PER_LIFE };
    for (let life = 0; life <= kills; life++) {
      const isLast = life === kills;
      const { told, problem } = await live({ ...settings, life, isLast }, next);
      lives.push({ told, isLast });
      if (problem !== undefined) violations.push(problem);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  const { violations: found, committed, aborted, cut } = judged(lives);
  totals.kills += kills;
  totals.committed += committed;
  totals.aborted += aborted;
  totals.cut += cut;
  return [...violations, ...found];
}

interface Life {
  readonly told: readonly string[];
  readonly problem: string | undefined;
}

async function live(settings: KillsSettings, next: () => number): Promise<Life> {
  const service = await ServiceProcess.start(settings, { program: PROGRAM });
  if (settings.isLast) {
    const { told, exit, errors } = await service.ended;
    return { told, problem: exit === 0 ? undefined : `the last life ended with ${exit ?? '?'}: ${errors}` };
  }
  // Some die while they open the folder.
  const [start, count] = next() < 0.2 ? ['begins', 1] : ['', 2 + Math.floor(next() * 60)];
  await Promise.race([service.untilTold(start, count), sleep(LONGEST_LIFE_MS, undefined, { ref: false })]);
  await sleep(next() * 30);
  const { told, exit, errors } = await service.kill();
  const problem =
    exit === 'SIGKILL' ? undefined : `it ended by itself (${exit ?? '?'}) before it was killed: ${errors}`;
  return { told, problem };
}
