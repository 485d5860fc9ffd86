// Which jobs are on their way and how each must end, so that a lost one is noticed. Keeps nothing of those that ended.

/**
 * How a job ends: `plain` is handled, `follow` by its follow-up, `flaky` on a later attempt, `deferred` after a wait,
 * `poisoned` and `thrown` as dead letters.
 */
export const JOB_KINDS = ['plain', 'follow', 'flaky', 'deferred', 'poisoned', 'thrown'] as const;
export type JobKind = (typeof JOB_KINDS)[number];
export type JobEnd = 'handled' | 'receipt' | 'letter';

export interface Job {
  readonly id: number;
  readonly kind: JobKind;
  /** How long its handler takes, milliseconds. */
  readonly takesMs: number;
  /** A `deferred` one runs from then on; epoch milliseconds. */
  readonly dueMs: number;
  /** Where order is promised: the key, and the number within it from 1 on. */
  readonly key?: string;
  readonly place?: number;
}

const SHOWN = 5;

export class JobLedger {
  readonly #open = new Map<number, Job>();
  readonly #lastOfKey = new Map<string, number>();
  readonly #faults: string[] = [];
  #added = 0;
  #ended = 0;
  #repeated = 0;
  #waiting: (() => void)[] = [];

  get added(): number {
    return this.#added;
  }

  get ended(): number {
    return this.#ended;
  }

  /** Ends beyond the first: at least once means that there may be some. */
  get repeated(): number {
    return this.#repeated;
  }

  get open(): number {
    return this.#open.size;
  }

  add(job: Job): void {
    this.#added += 1;
    this.#open.set(job.id, job);
  }

  ends(job: Job, end: JobEnd): void {
    const expected = expectedEnd(job.kind);
    if (end !== expected && end !== 'handled') this.#fault(`a ${job.kind} job ended by a ${end}`);
    if (end !== expected) return;
    if (!this.#open.delete(job.id)) this.#repeated += 1;
    else this.#ended += 1;
    for (const changed of this.#waiting.splice(0)) changed();
  }

  /** A run of a job with a key. Earlier ones of the key have ended; a job may run again. */
  runs({ key, place }: Job): void {
    if (key === undefined || place === undefined) return;
    const last = this.#lastOfKey.get(key) ?? 0;
    if (place > last + 1) this.#fault(`number ${place} of key ${key} ran after number ${last}`);
  }

  succeeded({ key, place }: Job): void {
    if (key === undefined || place === undefined) return;
    this.#lastOfKey.set(key, Math.max(place, this.#lastOfKey.get(key) ?? 0));
  }

  /** Resolves when a job has ended since. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** What does not hold once every job should have ended. What is open is told once, and forgotten. */
  violations(): readonly string[] {
    const told = this.#faults.splice(0);
    if (this.#open.size === 0) return told;
    const jobs = [...this.#open.values()].slice(0, SHOWN).map(({ id, kind }) => `${kind} ${id}`);
    told.push(`${this.#open.size} messages are lost: ${jobs.join(', ')}`);
    this.#open.clear();
    return told;
  }

  #fault(text: string): void {
    if (this.#faults.length < SHOWN) this.#faults.push(text);
  }
}

function expectedEnd(kind: JobKind): JobEnd {
  switch (kind) {
    case 'plain':
    case 'flaky':
    case 'deferred':
      return 'handled';
    case 'follow':
      return 'receipt';
    case 'poisoned':
    case 'thrown':
      return 'letter';
  }
}
