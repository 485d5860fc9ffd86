// Real processes that work on a store, and what they told before they were killed.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../architecture/source-files.js';
import { bundledProgram } from './bundled-program.js';
import type { StorePlace } from './store-places.js';

export class StoreProcesses {
  /** Of this test. */
  readonly folder = mkdtempSync(join(tmpdir(), 'pulsework-stores-'));
  readonly #children: ChildProcess[] = [];

  /** Begins, ends and deletes attempts until it is killed. Resolves when it has made so many steps. */
  churning(place: StorePlace, steps: number): Promise<ChildProcess> {
    return this.start('churning-process.ts', JSON.stringify(place), join(this.folder, 'told'), String(steps));
  }

  /** Which attempts the process that churned last had told to run, and to nothing else. */
  toldToRun(): ReadonlySet<string> {
    const running = new Set<string>();
    for (const line of readFileSync(join(this.folder, 'told'), 'utf8').split('\n').slice(0, -1)) {
      const [word, key = ''] = line.split(' ');
      if (word === 'runs') running.add(key);
      else running.delete(key);
    }
    return running;
  }

  /** Resolves when the program has written its first line. Its input and output are pipes. */
  async start(program: string, ...args: readonly string[]): Promise<ChildProcess> {
    const run = await bundledProgram(`test/support/${program}`);
    const child = spawn(process.execPath, [...run, ...args], { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#children.push(child);
    const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`it ended by itself with ${code}`)));
    await Promise.race([once(child.stdout, 'data'), ended]);
    ended.catch(() => undefined);
    return child;
  }

  /** `kill -9`. Resolves when it is gone. */
  async kill(child: ChildProcess): Promise<void> {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    const [, signal] = (await exited) as [unknown, unknown];
    if (signal !== 'SIGKILL') throw new Error('it had ended before');
  }

  end(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true });
  }
}
