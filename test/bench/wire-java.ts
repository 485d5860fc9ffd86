// A Java program beside a benchmark: it gets a number of messages on a line and answers with nanoseconds on a line.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { requiredVariable } from './wire-broker.js';

/** Enough for 50,000 messages of 1 KB with their futures; the collector then hardly runs. */
const HEAP = '-Xmx1g';

export class JavaProgram {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  }

  static start(mainClass: string, args: readonly string[]): JavaProgram {
    const settings = `-Dlog4j.configurationFile=${requiredVariable('PULSEWORK_BENCH_JAVA_LOG')}`;
    const classPath = requiredVariable('PULSEWORK_BENCH_CLASS_PATH');
    const child = spawn('java', [HEAP, settings, '-cp', classPath, mainClass, ...args], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    // The parent disconnects when it has all figures: Java ends with its standard input, and this process with Java.
    process.once('disconnect', () => child.stdin.end());
    return new JavaProgram(child);
  }

  async nanosecondsFor(messages: number): Promise<number> {
    this.#child.stdin!.write(`${messages}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true || !/^\d+$/.test(value)) throw new Error(`the Java program answered ${value ?? 'nothing'}`);
    return Number(value);
  }
}
