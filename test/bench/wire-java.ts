// A Java program beside a benchmark: it gets a number of messages on a line and answers with two numbers on a line,
// nanoseconds on the wall and of its processor time.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Measurement } from './variant.js';
import { requiredVariable } from './wire-broker.js';

/** Enough for 100,000 messages with their futures; the collector then hardly runs. */
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

  async measure(messages: number): Promise<Measurement> {
    this.#child.stdin!.write(`${messages}\n`);
    const { value, done } = await this.#lines.next();
    const [, wallNs, cpuNs] = /^(\d+) (\d+)$/.exec(done === true ? '' : value) ?? [];
    if (wallNs === undefined) throw new Error(`the Java program answered ${value ?? 'nothing'}`);
    return { 'ns/message': Number(wallNs) / messages, 'cpu-ns/message': Number(cpuNs) / messages };
  }
}
