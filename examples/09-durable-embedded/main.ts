// A service with a durable embedded broker, killed with SIGKILL in the middle of its work and started again: what had its
// receipt is there, and what was acknowledged stays so.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { serve } from './service.js';

const ORDERS = 20;
const CHARGED_BEFORE_THE_KILL = 5;

const [mode, dir = '', publishes = '0'] = process.argv.slice(2);
if (mode === 'serve') {
  await serve(dir, Number(publishes));
} else {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-example-'));
  try {
    await killAndStartAgain(join(folder, 'broker'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Life {
  readonly process: ChildProcess;
  readonly published: Set<number>;
  readonly charged: Set<number>;
}

async function killAndStartAgain(broker: string): Promise<void> {
  const first = start(broker, ORDERS);
  await until(first, () => first.published.size === ORDERS && first.charged.size >= CHARGED_BEFORE_THE_KILL);
  const [, signal] = await end(first, 'SIGKILL');
  console.log(`published, each with its receipt: ${first.published.size} orders`);
  console.log(`killed in the middle of its work: ${answer(first.charged.size < ORDERS)}, by ${String(signal)}`);

  const second = start(broker, 0);
  const all = (): Set<number> => new Set([...first.charged, ...second.charged]);
  await until(second, () => all().size === ORDERS);
  const [code] = await end(second, 'SIGTERM');
  const twice = [...second.charged].filter((number) => first.charged.has(number));
  console.log(`charged after all: ${all().size} orders`);
  console.log(`charged twice: at most the one whose acknowledgement the kill cut: ${answer(twice.length <= 1)}`);
  console.log(`the second process drained and ended with ${String(code)}`);
  if (twice.length > 1 || code !== 0) process.exitCode = 1;
}

/** This program again, as the service, in a process of its own. */
function start(broker: string, orders: number): Life {
  const service = spawn(
    process.execPath,
    [...process.execArgv, process.argv[1] ?? '', 'serve', broker, String(orders)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const life = { process: service, published: new Set<number>(), charged: new Set<number>() };
  createInterface({ input: service.stdout }).on('line', (line) => {
    const [word = '', number = ''] = line.split(' ');
    if (word === 'published') life.published.add(Number(number));
    if (word === 'charged') life.charged.add(Number(number));
    service.emit('told');
  });
  return life;
}

async function until({ process: service }: Life, isSo: () => boolean): Promise<void> {
  const ended = once(service, 'exit').then(([code]) => {
    throw new Error(`the service ended by itself with ${String(code)}`);
  });
  ended.catch(() => undefined);
  while (!isSo()) await Promise.race([once(service, 'told'), ended]);
}

async function end({ process: service }: Life, signal: NodeJS.Signals): Promise<readonly unknown[]> {
  const closed = once(service, 'close');
  service.kill(signal);
  return closed;
}

function answer(isSo: boolean): string {
  return isSo ? 'yes' : 'no';
}
