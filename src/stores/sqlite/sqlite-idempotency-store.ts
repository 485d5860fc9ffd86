// An IdempotencyStore in a SQLite file, for all processes of one machine that open it.
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { ClaimAnswer, IdempotencyStore, LeaseTimes, RecordTimes } from '../../ports/idempotency-store.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { SqliteFile } from './sqlite-file.js';
import { SqliteIdempotencyStatements } from './sqlite-idempotency-statements.js';

/** After so many outcomes this store removes what is over: more at once than came since. */
const REMOVE_AFTER = 100;

export interface SqliteIdempotencyStore extends IdempotencyStore {
  /** Waits for what is under way, and lets go of the file. It is not used any more. */
  close(): Promise<void>;
}

export class SqliteIdempotencyKeys implements SqliteIdempotencyStore {
  readonly name: string;
  readonly #file: SqliteFile;
  readonly #now: string | undefined;
  #opened: SqliteIdempotencyStatements | undefined;
  #recorded = 0;

  /** @param now the present time in SQL; for tests. */
  constructor(options: SqliteFileOptions, now?: string) {
    this.name = options.name;
    this.#file = new SqliteFile(options);
    this.#now = now;
  }

  claim(key: string, owner: string, { leaseMs }: LeaseTimes): Promise<ClaimAnswer> {
    return this.#write((statements) => statements.claim(key, owner, leaseMs));
  }

  renew(key: string, owner: string, { leaseMs }: LeaseTimes): Promise<boolean> {
    return this.#write((statements) => statements.renew(key, owner, leaseMs));
  }

  record(key: string, owner: string, outcome: RecordedOutcome, { ttlMs }: RecordTimes): Promise<boolean> {
    this.#recorded += 1;
    const removes = this.#recorded % REMOVE_AFTER === 0;
    return this.#write((statements) => {
      const isRecorded = statements.record(key, owner, outcome, ttlMs);
      if (removes) statements.remove();
      return isRecorded;
    });
  }

  release(key: string, owner: string): Promise<void> {
    return this.#write((statements) => statements.release(key, owner));
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** Opens the file first where that was not done yet. */
  async #write<T>(act: (statements: SqliteIdempotencyStatements) => T): Promise<T> {
    if (this.#opened === undefined) {
      const connection = await this.#file.open();
      this.#opened ??= new SqliteIdempotencyStatements(connection, this.#now);
    }
    const statements = this.#opened;
    return this.#file.write(() => act(statements));
  }
}
