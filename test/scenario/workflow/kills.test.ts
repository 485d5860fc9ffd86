// Real processes on SQLite, ended by kill -9 in the middle of their work, one after the other on what the last one left.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JournalEntry } from 'pulsework/workflow';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundledProgram } from '../../support/bundled-program.js';
import { seeded } from '../../support/seeded.js';

const ORDERS = 12;
const KILLS = 4;
let folder: string;

beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'pulsework-workflow-kills-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** @returns what it wrote; undefined when it was killed. @param lines of the ledger after which it is killed */
async function runProcess(lines: number | undefined): Promise<string | undefined> {
  const program = await bundledProgram('test/scenario/workflow/kill-process.ts');
  const child = spawn(process.execPath, [...program, folder, String(ORDERS)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let written = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (written += chunk));
  const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const watch = setInterval(() => {
    if (lines !== undefined && ledger().length >= lines) child.kill('SIGKILL');
  }, 2);
  await closed;
  clearInterval(watch);
  return child.signalCode === null ? written : undefined;
}

function ledger(): readonly string[] {
  try {
    return readFileSync(join(folder, 'ledger'), 'utf8').split('\n').slice(0, -1);
  } catch {
    return [];
  }
}

interface Report {
  readonly results: readonly string[];
  readonly journals: readonly (readonly JournalEntry[])[];
}

it(
  'every order ends, each effect has its recorded attempt, and nothing runs again once its end is recorded',
  { timeout: 180_000 },
  async () => {
    const random = seeded(7);
    let killed = 0;
    for (let n = 0; n < KILLS; n++) {
      const written = await runProcess(ledger().length + 3 + Math.floor(random() * 12));
      if (written === undefined) killed += 1;
    }
    const written = await runProcess(undefined);
    const { results, journals } = JSON.parse(written?.split('\n').at(1) ?? '{}') as Report;

    expect(killed).toBeGreaterThan(1);
    expect(results).toEqual(Array.from({ length: ORDERS }, (_, n) => (n % 3 === 0 ? 'rejected' : 'fulfilled')));
    for (const [n, journal] of journals.entries()) checkOrder(n, journal, ledger());
  },
);

function checkOrder(n: number, journal: readonly JournalEntry[], lines: readonly string[]): void {
  for (const command of journal) {
    if (command.kind !== 'command' || (command.command !== 'step' && command.command !== 'compensate')) continue;
    const own = journal.filter((entry) => 'at' in entry && entry.at === command.at);
    const attempts = own.filter(({ kind }) => kind === 'attempt').length;
    const word = command.command === 'step' ? command.name : `undo-${command.name}`;
    const effects = lines.filter((line) => line === `${word} order/${n}/1/${command.at}`).length;
    expect(own.at(-1)?.kind, `${n} ${word}`).toBe('completed');
    expect(
      own.filter(({ kind }) => kind === 'completed'),
      `${n} ${word}`,
    ).toHaveLength(1);
    // One that was killed between its start and its effect has none.
    expect(effects, `${n} ${word}`).toBeLessThanOrEqual(attempts);
    expect(effects, `${n} ${word}`).toBeGreaterThan(0);
  }
  const undone = journal.flatMap((entry) =>
    entry.kind === 'command' && entry.command === 'compensate' ? entry.name : [],
  );
  expect(undone, String(n)).toEqual(n % 3 === 0 ? ['pack', 'reserve', 'charge'] : []);
}
