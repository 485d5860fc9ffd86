// A set of positions in ascending order: what waits to be delivered again (S-20: smallest position first). Kept in
// short sorted runs, so that adding, removing and taking the first stay cheap at hundreds of thousands.

const MAX_RUN = 512;

export class SortedPositions {
  #runs: number[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): number | undefined {
    return this.#runs[0]?.[0];
  }

  /** False when it was there before. */
  add(position: number): boolean {
    const runIndex = this.#runFor(position);
    const run = this.#runs[runIndex];
    this.#size += 1;
    if (run === undefined) {
      this.#runs.push([position]);
      return true;
    }
    const at = firstAtOrAfter(run, position);
    if (run[at] === position) {
      this.#size -= 1;
      return false;
    }
    run.splice(at, 0, position);
    if (run.length > MAX_RUN) this.#runs.splice(runIndex + 1, 0, run.splice(MAX_RUN / 2));
    return true;
  }

  has(position: number): boolean {
    const run = this.#runs[this.#runFor(position)];
    return run !== undefined && run[firstAtOrAfter(run, position)] === position;
  }

  delete(position: number): boolean {
    const runIndex = this.#runFor(position);
    const run = this.#runs[runIndex];
    if (run === undefined) return false;
    const at = firstAtOrAfter(run, position);
    if (run[at] !== position) return false;
    if (run.length === 1) this.#runs.splice(runIndex, 1);
    else run.splice(at, 1);
    this.#size -= 1;
    return true;
  }

  /** Removes and returns the smallest. */
  shift(): number | undefined {
    const run = this.#runs[0];
    const first = run?.shift();
    if (first === undefined) return undefined;
    if (run?.length === 0) this.#runs.shift();
    this.#size -= 1;
    return first;
  }

  clear(): void {
    this.#runs = [];
    this.#size = 0;
  }

  *[Symbol.iterator](): Generator<number> {
    for (const run of this.#runs) yield* run;
  }

  /** The run that holds `position` or would take it: the last one that begins at or before it. */
  #runFor(position: number): number {
    let low = 0;
    let high = this.#runs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#runs[middle]?.[0] ?? Infinity) <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function firstAtOrAfter(run: readonly number[], position: number): number {
  let low = 0;
  let high = run.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((run[middle] ?? Infinity) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
