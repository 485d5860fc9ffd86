// The parent's side of a variant's process. A child that fails ends the whole run: a benchmark with holes is none.
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Measurement } from './variant.js';

export type ChildMessage = { readonly ready: true } | { readonly measurement: Measurement };

export class VariantProcess {
  readonly #child: ChildProcess;
  readonly #name: string;

  private constructor(child: ChildProcess, name: string) {
    this.#child = child;
    this.#name = name;
  }

  /** @param root where the compiled code is. Resolves when the variant is warm. */
  static async start(root: string, benchmark: string, variant: string): Promise<VariantProcess> {
    const child = fork(join(root, 'test', 'bench', 'child.js'), [benchmark, variant], {
      // A profile of the parent alone would tell nothing: `node --cpu-prof` is meant for the children.
      execArgv: ['--expose-gc', ...process.execArgv.filter((flag) => flag.startsWith('--cpu-prof'))],
      // Nothing but the report may reach standard output.
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const started = new VariantProcess(child, variant);
    await started.#answer();
    return started;
  }

  async measure(): Promise<Measurement> {
    const answer = this.#answer();
    this.#child.send('measure');
    const message = await answer;
    if ('measurement' in message) return message.measurement;
    throw new Error(`${this.#name} sent no measurement`);
  }

  /** Lets the child end by itself, so that a profiler in it can write its file. */
  async end(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }

  #answer(): Promise<ChildMessage> {
    return new Promise((resolve, reject) => {
      const exited = (code: number | null): void =>
        reject(new Error(`the process of "${this.#name}" ended with ${code}`));
      this.#child.once('exit', exited);
      this.#child.once('message', (message) => {
        this.#child.off('exit', exited);
        resolve(message as ChildMessage);
      });
    });
  }
}
