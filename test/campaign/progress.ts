// How far a campaign is, on standard error: a bar where a person looks at it, else a line now and then for a log.
import { performance } from 'node:perf_hooks';

const BAR_WIDTH = 30;
/** Between two lines of a log. */
const LINE_EVERY_MS = 15_000;

export interface ProgressOutput {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

export class Progress {
  readonly #output: ProgressOutput;
  readonly #name: string;
  readonly #runs: number;
  readonly #now: () => number;
  readonly #startedMs: number;
  #toldMs: number;

  constructor(output: ProgressOutput, name: string, runs: number, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#name = name;
    this.#runs = runs;
    this.#now = now;
    this.#startedMs = now();
    this.#toldMs = this.#startedMs;
    if (this.#isBar) this.#drawBar(0, 0);
  }

  get elapsedMs(): number {
    return this.#now() - this.#startedMs;
  }

  /** @param violated how many of the runs done violated something. */
  update(done: number, violated: number): void {
    if (this.#isBar) return this.#drawBar(done, violated);
    if (this.#now() - this.#toldMs < LINE_EVERY_MS) return;
    this.#toldMs = this.#now();
    this.#output.write(`${this.#text(done, violated)}\n`);
  }

  /** Makes room for other lines; the next update draws the bar again. */
  clear(): void {
    if (this.#isBar) this.#output.write('\r\u001b[K');
  }

  get #isBar(): boolean {
    return this.#output.isTTY === true;
  }

  #drawBar(done: number, violated: number): void {
    const filled = Math.round((done / this.#runs) * BAR_WIDTH);
    const bar = '='.repeat(filled).padEnd(BAR_WIDTH);
    this.#output.write(`\r\u001b[K[${bar}] ${this.#text(done, violated)}`);
  }

  #text(done: number, violated: number): string {
    const leftMs = done === 0 ? undefined : (this.elapsedMs / done) * (this.#runs - done);
    const left = leftMs === undefined ? '' : `, about ${Math.ceil(leftMs / 1_000)} s left`;
    return `${this.#name}: ${done} of ${this.#runs} runs, ${violated} violated${left}`;
  }
}
