// A durable embedded broker whose process is killed again and again under load. After each death this process opens what is
// left and compares it with the receipts that the dead one told of.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { embedded } from 'pulsework/embedded';
import { sqliteStore } from 'pulsework/sqlite';
import { ROOT } from '../../architecture/source-files.js';
import { bundledProgram } from '../bundled-program.js';
import { scattered } from '../seeded.js';
import { DurableAccount, KILLED_SUBSCRIPTIONS, KILLED_TOPIC } from './durable-account.js';

/** One in so many dies while it starts, in the middle of reading what the one before left. */
const DIES_STARTING = 6;
const STARTS_WITHIN_MS = 400;
const LIVES_AT_MOST_MS = 250;

/** Of all runs of a process. */
export interface DurableKillTotals {
  kills: number;
  published: number;
  acknowledged: number;
}

/** @returns what did not hold, a sentence each. */
export async function runDurableKills(
  seed: number,
  kills: number,
  totals: DurableKillTotals,
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-durable-kills-'));
  const run = new DurableKillRun(folder, scattered(seed));
  try {
    for (let life = 1; life <= kills; life++) {
      await run.liveAndDie(life);
      const violations = await run.violations();
      totals.kills += 1;
      if (violations.length > 0) return violations.map((violation) => `after kill ${life}: ${violation}`);
    }
    const { published, acknowledged } = run.account.receipts;
    totals.published += published;
    totals.acknowledged += acknowledged;
    return published > 0 && acknowledged > 0 ? [] : ['nothing was published, or nothing acknowledged'];
  } finally {
    await run.end();
    rmSync(folder, { recursive: true });
  }
}

class DurableKillRun {
  readonly account = new DurableAccount();
  readonly #dir: string;
  readonly #told: string;
  readonly #random: () => number;
  #lines = 0;
  #child: ChildProcess | undefined;

  constructor(folder: string, random: () => number) {
    this.#dir = join(folder, 'broker');
    this.#told = join(folder, 'told');
    this.#random = random;
    writeFileSync(this.#told, '');
  }

  async liveAndDie(life: number): Promise<void> {
    const run = await bundledProgram('test/support/durable/durable-load.ts');
    const args = [...run, this.#dir, this.#told, String(life)];
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    const ended = once(child, 'exit');
    if (Math.floor(this.#random() * DIES_STARTING) === 0) {
      await sleep(this.#random() * STARTS_WITHIN_MS);
    } else {
      await Promise.race([once(child.stdout, 'data'), ended]);
      await sleep(this.#random() * LIVES_AT_MOST_MS);
    }
    child.kill('SIGKILL');
    const [code, signal] = (await ended) as readonly unknown[];
    if (signal !== 'SIGKILL') throw new Error(`it ended by itself with ${String(code)}`);
  }

  /** Of what is left now. */
  async violations(): Promise<readonly string[]> {
    const lines = readFileSync(this.#told, 'utf8').split('\n').slice(0, -1);
    for (const line of lines.slice(this.#lines)) this.account.told(line);
    this.#lines = lines.length;
    const transport = embedded({ store: sqliteStore({ dir: this.#dir }) });
    await transport.broker.open();
    const { broker } = transport;
    const { subscriptions } = broker.hasTopic(KILLED_TOPIC) ? broker.stats(KILLED_TOPIC) : { subscriptions: new Map() };
    const violations: string[] = [];
    for (const name of KILLED_SUBSCRIPTIONS) {
      // One that died while it started may not have made it.
      const unacked = subscriptions.has(name) ? await unackedOf(transport, name) : [];
      violations.push(...this.account.violations(name, unacked));
    }
    await transport.close();
    return [...violations, ...corruption(join(this.#dir, 'broker.db'))];
  }

  /** Whatever still lives. */
  async end(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}

async function unackedOf(transport: ReturnType<typeof embedded>, name: string): Promise<readonly string[]> {
  const texts: string[] = [];
  const handle = transport.broker.subscribe(
    { topic: KILLED_TOPIC, subscription: name, type: 'exclusive', initialPosition: 'earliest', consumerName: 'c' },
    {
      deliver: ({ entry, unacked }) => {
        for (const [index, { payload }] of entry.messages.entries())
          if (unacked === undefined || unacked.has(index)) texts.push(new TextDecoder().decode(payload ?? undefined));
      },
      activeChanged: () => undefined,
      disconnected: () => undefined,
    },
  );
  handle.flow(10_000_000);
  // The broker sends in its next turn.
  await sleep(0);
  handle.close();
  return texts;
}

/** What SQLite finds wrong with the file. */
function corruption(path: string): readonly string[] {
  const Database = createRequire(import.meta.url)('libsql') as new (path: string) => {
    pragma(source: string): readonly { readonly integrity_check: string }[];
    close(): void;
  };
  const database = new Database(path);
  const found = database.pragma('integrity_check').map((row) => row.integrity_check);
  database.close();
  return found.length === 1 && found[0] === 'ok' ? [] : found.map((problem) => `the file is corrupt: ${problem}`);
}
