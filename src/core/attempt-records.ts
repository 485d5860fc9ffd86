// What is known of attempts outside one run: the state of each message's record, what each step and the death of a
// process make of it, and the bounded table of them. Pure: every AttemptStore keeps these, each in its own place.

/**
 * `open`: its handler runs, beside others or where others may join. `alone`: it runs and nothing else of the process does.
 * `closed`: its last run ended by itself. `suspect`: the process died while it ran.
 */
export type AttemptState = 'open' | 'alone' | 'closed' | 'suspect';

export interface StoredAttempt {
  readonly state: AttemptState;
  /** Attempts spent; the run that is open is not among them. */
  readonly attempts: number;
  /** Deaths of the process since its last run that ended by itself, each while it ran alone. They are among `attempts`. */
  readonly deaths: number;
  /** Not to run before, epoch milliseconds. */
  readonly notBeforeMs: number | undefined;
}

export interface AttemptStart {
  /** The number of the run, 1 for the first: it tells that one less was spent. */
  readonly attempt: number;
  /** Nothing else of this process runs until this run has ended. */
  readonly alone: boolean;
}

export interface AttemptEnd {
  /** Attempts spent so far, this run included where it was a failure. */
  readonly attempts: number;
  /** Epoch milliseconds; kept for a process that takes over. @default none */
  readonly notBeforeMs?: number | undefined;
}

/** What one step made of a record; undefined where there is or was none. */
export interface AttemptChange {
  readonly key: string;
  readonly before: StoredAttempt | undefined;
  readonly after: StoredAttempt | undefined;
}

/**
 * The name of a record: the subscription, by its topic and name, and the message.
 * @param topic full name of the topic the message came from first, without a partition.
 * @param originId the text of the id it came with first: the same on every attempt, retry letters included.
 */
export function attemptKey(topic: string, subscription: string, originId: string): string {
  return `${topic}\t${subscription}\t${originId}`;
}

/** An end never lowers what is known to be spent: a copy may run beside a newer count. */
function ended(before: StoredAttempt | undefined, { attempts, notBeforeMs }: AttemptEnd): StoredAttempt {
  return { state: 'closed', attempts: Math.max(before?.attempts ?? 0, attempts), deaths: 0, notBeforeMs };
}

function begun(before: StoredAttempt | undefined, { attempt, alone }: AttemptStart): StoredAttempt {
  return {
    state: alone ? 'alone' : 'open',
    attempts: Math.max(before?.attempts ?? 0, attempt - 1),
    deaths: before?.deaths ?? 0,
    notBeforeMs: undefined,
  };
}

/** Whoever ran beside the killer is only suspected; who ran alone has spent an attempt. */
export function afterDeath(stored: StoredAttempt): StoredAttempt {
  if (stored.state !== 'open' && stored.state !== 'alone') return stored;
  const convicted = stored.state === 'alone' ? 1 : 0;
  return {
    state: 'suspect',
    attempts: stored.attempts + convicted,
    deaths: stored.deaths + convicted,
    notBeforeMs: undefined,
  };
}

export function isRunning({ state }: StoredAttempt): boolean {
  return state === 'open' || state === 'alone';
}

/** Records by key, the longest untouched first. Beyond `maxRecords` those are forgotten, never one that is running. */
export class AttemptRecords {
  readonly #byKey: Map<string, StoredAttempt>;
  readonly #maxRecords: number;
  #forgotten = 0;

  constructor(maxRecords: number, stored: Iterable<readonly [string, StoredAttempt]> = []) {
    this.#maxRecords = maxRecords;
    this.#byKey = new Map(stored);
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** How many were forgotten because there were too many. */
  get forgotten(): number {
    return this.#forgotten;
  }

  entries(): IterableIterator<[string, StoredAttempt]> {
    return this.#byKey.entries();
  }

  get(key: string): StoredAttempt | undefined {
    return this.#byKey.get(key);
  }

  begin(key: string, start: AttemptStart): AttemptChange {
    return this.#put(key, begun(this.#byKey.get(key), start));
  }

  end(key: string, end: AttemptEnd): AttemptChange {
    return this.#put(key, ended(this.#byKey.get(key), end));
  }

  /** Undefined where there was none: then there is nothing to write down either. */
  delete(key: string): AttemptChange | undefined {
    const before = this.#byKey.get(key);
    if (before === undefined) return undefined;
    this.#byKey.delete(key);
    return { key, before, after: undefined };
  }

  /** The process died: what ran is a suspect. How many are now. */
  processDied(): number {
    let suspects = 0;
    for (const [key, stored] of this.#byKey) {
      const after = afterDeath(stored);
      this.#byKey.set(key, after);
      if (after.state === 'suspect') suspects += 1;
    }
    return suspects;
  }

  /** The process ends by will: what still runs stands as before its run. */
  closeRunning(): AttemptChange[] {
    const running = [...this.#byKey].filter(([, stored]) => isRunning(stored));
    return running.map(([key, { attempts }]) => this.end(key, { attempts }));
  }

  /** What there is too much of, oldest first. */
  forgetExcess(): AttemptChange[] {
    const changes: AttemptChange[] = [];
    if (this.#byKey.size <= this.#maxRecords) return changes;
    for (const [key, stored] of this.#byKey) {
      if (this.#byKey.size <= this.#maxRecords) break;
      if (isRunning(stored)) continue;
      this.#byKey.delete(key);
      this.#forgotten += 1;
      changes.push({ key, before: stored, after: undefined });
    }
    return changes;
  }

  /** Takes back a change that could not be written down, unless a later one of the same record followed. */
  undo({ key, before, after }: AttemptChange): void {
    if (this.#byKey.get(key) !== after) return;
    if (before === undefined) this.#byKey.delete(key);
    else this.#byKey.set(key, before);
  }

  /** The newest goes last. */
  #put(key: string, after: StoredAttempt): AttemptChange {
    const before = this.#byKey.get(key);
    if (before !== undefined) this.#byKey.delete(key);
    this.#byKey.set(key, after);
    return { key, before, after };
  }
}
