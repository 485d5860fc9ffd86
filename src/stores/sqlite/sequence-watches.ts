// Who wants to hear of new entries in sequences. Appends of this store are told at once; those of other processes are found
// by asking SQLite now and then whether anybody else has changed the file.
import { sequencePath } from '../../core/metadata-rules.js';
import type { Clock, Timer } from '../../ports/clock.js';
import type { SequenceWatch } from '../../ports/metadata-store.js';
import type { MetadataStatements } from './metadata-statements.js';
import type { SqliteValue } from './sqlite-driver.js';

export interface SequenceWatchesOptions {
  readonly clock: Clock;
  /** `Infinity` where nobody else can write. */
  readonly pollIntervalMs: number;
  statements(): MetadataStatements;
  read<T>(act: () => T): Promise<T>;
}

/** What the file looked like when it was last asked. */
interface Seen {
  readonly dataVersion: SqliteValue | undefined;
  readonly lastNumber: number;
}

interface Watch {
  readonly prefix: string;
  readonly onNewer: () => void;
  isCalling: boolean;
}

export class SequenceWatches {
  readonly #options: SequenceWatchesOptions;
  readonly #watches = new Set<Watch>();
  #seen: Seen | undefined;
  #timer: Timer | undefined;

  constructor(options: SequenceWatchesOptions) {
    this.#options = options;
  }

  async add(prefix: string, onNewer: () => void): Promise<SequenceWatch> {
    const watch = { prefix, onNewer, isCalling: false };
    // Looked at before it counts as watched: whatever comes after this is newer.
    if (this.#watches.size === 0) this.#seen = undefined;
    this.#watches.add(watch);
    try {
      const seen = await this.#options.read(() => this.#look());
      this.#seen ??= seen;
    } catch (error) {
      this.#watches.delete(watch);
      throw error;
    }
    this.#pollLater();
    return { close: () => this.#remove(watch) };
  }

  /** By this store, and it is committed. */
  appended(prefix: string): void {
    for (const watch of this.#watches) if (watch.prefix === prefix) this.#call(watch);
  }

  close(): void {
    for (const watch of [...this.#watches]) this.#remove(watch);
  }

  #remove(watch: Watch): void {
    this.#watches.delete(watch);
    if (this.#watches.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #pollLater(): void {
    const { clock, pollIntervalMs } = this.#options;
    if (pollIntervalMs === Infinity || this.#timer !== undefined || this.#watches.size === 0) return;
    this.#timer = clock.setTimer(pollIntervalMs, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    this.#timer = undefined;
    try {
      const newer = await this.#options.read(() => this.#newer());
      for (const watch of newer) this.#call(watch);
    } catch {
      // Nothing was seen, so the next time finds it. What is wrong with the file is told to those who use it.
    }
    this.#pollLater();
  }

  #newer(): readonly Watch[] {
    const before = this.#seen;
    const statements = this.#options.statements();
    if (before === undefined || statements.dataVersion() === before.dataVersion) return [];
    // Looked at first: what is appended meanwhile is told twice rather than never.
    this.#seen = this.#look();
    return [...this.#watches].filter(({ prefix }) =>
      statements.hasPathBetween(sequencePath(prefix, before.lastNumber), `${prefix}-:`),
    );
  }

  #look(): Seen {
    const statements = this.#options.statements();
    const dataVersion = statements.dataVersion();
    return { dataVersion, lastNumber: statements.lastNumber() };
  }

  /** Once for all that came meanwhile, and never inside the call that appends. */
  #call(watch: Watch): void {
    if (watch.isCalling) return;
    watch.isCalling = true;
    queueMicrotask(() => {
      watch.isCalling = false;
      if (this.#watches.has(watch)) watch.onNewer();
    });
  }
}
