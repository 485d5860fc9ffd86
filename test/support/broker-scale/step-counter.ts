// Counts what the broker's code does without touching it: V8 counts how often each function is called and each of its
// blocks runs (a loop's body, a branch), for the coverage of tests. The sum over the broker's files is a number of steps
// that does not depend on the machine. It must begin before the code has run for the first time.
//
// What a builtin does inside counts as nothing. On collections that grow with the backlog the broker calls those that take
// a step (Map and Set by key, push and pop), and those that pass over all of it only where each item then has steps of its own.
import { readFileSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector';
import { fileURLToPath } from 'node:url';

/** Bundles say where each part of them comes from. */
const SOURCE_LINE = /^\/\/ (\S+\.ts)$/gm;

export class StepCounter {
  readonly #session = new Session();
  readonly #counted: (path: string) => boolean;
  /** Of each script: where in it the code that counts lies. */
  readonly #ranges = new Map<string, readonly (readonly [start: number, end: number])[]>();

  /** @param counted whether the code of a source counts, by its path from the root */
  constructor(counted: (path: string) => boolean) {
    this.#counted = counted;
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Steps since the last call. */
  take(): number {
    let steps = 0;
    for (const { url, functions } of this.#scripts()) {
      const ranges = this.#rangesOf(url);
      if (ranges.length === 0) continue;
      for (const { ranges: blocks } of functions) {
        const start = blocks[0]?.startOffset ?? -1;
        if (!ranges.some(([from, to]) => start >= from && start < to)) continue;
        for (const { count } of blocks) steps += count;
      }
    }
    return steps;
  }

  #scripts(): readonly Profiler.ScriptCoverage[] {
    let result: readonly Profiler.ScriptCoverage[] = [];
    // The session is in this thread: it answers before `post` returns.
    this.#session.post('Profiler.takePreciseCoverage', (error, answer) => {
      if (error !== null) throw error;
      result = answer.result;
    });
    return result;
  }

  #rangesOf(url: string): readonly (readonly [number, number])[] {
    const known = this.#ranges.get(url);
    if (known !== undefined) return known;
    const found = url.startsWith('file:') ? this.#findRanges(readFileSync(fileURLToPath(url), 'utf8')) : [];
    this.#ranges.set(url, found);
    return found;
  }

  #findRanges(text: string): [number, number][] {
    const parts = [...text.matchAll(SOURCE_LINE)].map((match) => ({ path: match[1] ?? '', from: match.index }));
    return parts
      .map(({ path, from }, i) => ({ path, from, to: parts[i + 1]?.from ?? text.length }))
      .filter(({ path }) => this.#counted(path))
      .map(({ from, to }) => [from, to]);
  }
}
