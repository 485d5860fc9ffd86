// One life of the service of `service-program.ts`: what it told, how it is killed, how it ended.
import { spawn } from 'node:child_process';
import type { ChildProcess, ChildProcessByStdio } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ROOT } from '../../architecture/source-files.js';
import { bundledProgram } from '../bundled-program.js';

const PROGRAM = 'test/support/crash/service-program.ts';
/** How much of its standard error a failure shows. */
const ERROR_TAIL = 3_000;

export interface ServiceLife {
  /** Lines, in order; see `service-jobs.ts`. */
  readonly told: readonly string[];
  /** An exit code, or the signal that ended it. */
  readonly exit: number | NodeJS.Signals | null;
  /** The end of its standard error. */
  readonly errors: string;
}

export interface ServiceProcessOptions {
  /** Megabytes of heap. @default as Node chooses */
  readonly heapMb?: number | undefined;
  /** Path from the root. Its one argument is the settings. @default the service of `service-program.ts` */
  readonly program?: string | undefined;
}

export class ServiceProcess {
  /** Resolves when it has ended and everything it told was read. */
  readonly ended: Promise<ServiceLife>;
  readonly #child: ChildProcess;
  readonly #told: string[] = [];
  readonly #watchers = new Set<() => void>();
  #errors = '';

  private constructor(child: ChildProcessByStdio<null, Readable, Readable>) {
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-ERROR_TAIL);
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#told.push(line);
      this.#look();
    });
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => {
        resolve({ told: this.#told, exit: code ?? signal, errors: this.#errors });
        this.#look();
      });
    });
  }

  /** @param settings as JSON can tell them. */
  static async start(
    settings: object,
    { heapMb, program = PROGRAM }: ServiceProcessOptions = {},
  ): Promise<ServiceProcess> {
    const heap = heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`];
    const run = await bundledProgram(program);
    const child = spawn(process.execPath, [...heap, ...run, JSON.stringify(settings)], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PULSEWORK_LOG_LEVEL: 'silent' },
    });
    return new ServiceProcess(child);
  }

  get told(): readonly string[] {
    return this.#told;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Resolves once it has told `count` lines that start so, or has ended. */
  async untilTold(start: string, count = 1): Promise<void> {
    const holds = (): boolean => this.hasEnded || this.#told.filter((line) => line.startsWith(start)).length >= count;
    while (!holds()) await new Promise<void>((looked) => this.#watchers.add(looked));
  }

  /** `kill -9`. */
  async kill(): Promise<ServiceLife> {
    this.#child.kill('SIGKILL');
    return this.ended;
  }

  /** Asks it to drain and end. */
  async terminate(): Promise<ServiceLife> {
    this.#child.kill('SIGTERM');
    return this.ended;
  }

  #look(): void {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const look of watchers) look();
  }
}
