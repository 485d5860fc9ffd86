// An IdempotencyStore in PostgreSQL: for all processes that share the database, which goes by the clock of its server.
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { ClaimAnswer, IdempotencyStore, LeaseTimes, RecordTimes } from '../../ports/idempotency-store.js';
import { IdempotencyStatements } from './idempotency-statements.js';
import type { PostgresDatabase } from './postgres-database.js';

/** After so many outcomes this store removes what is over: more at once than came since. */
const REMOVE_AFTER = 100;

export class PostgresIdempotencyStore implements IdempotencyStore {
  readonly name: string;
  readonly #database: PostgresDatabase;
  readonly #statements: IdempotencyStatements;
  readonly #run: PostgresDatabase['query'];
  #recorded = 0;

  /** @param now the present time in SQL; for tests. */
  constructor(database: PostgresDatabase, schema: string, now?: string) {
    this.name = database.name;
    this.#database = database;
    this.#statements = new IdempotencyStatements(schema, now);
    this.#run = (doing, text, values) => this.#database.query(doing, text, values);
  }

  claim(key: string, owner: string, { leaseMs }: LeaseTimes): Promise<ClaimAnswer> {
    return this.#statements.claim(this.#run, key, owner, leaseMs);
  }

  renew(key: string, owner: string, { leaseMs }: LeaseTimes): Promise<boolean> {
    return this.#statements.renew(this.#run, key, owner, leaseMs);
  }

  async record(key: string, owner: string, outcome: RecordedOutcome, { ttlMs }: RecordTimes): Promise<boolean> {
    const isRecorded = await this.#statements.record(this.#run, key, owner, outcome, ttlMs);
    if (isRecorded) this.#recorded += 1;
    // Nobody waits for it, and what it could not do the next one does.
    if (isRecorded && this.#recorded % REMOVE_AFTER === 0)
      void this.#statements.remove(this.#run).catch(() => undefined);
    return isRecorded;
  }

  release(key: string, owner: string): Promise<void> {
    return this.#statements.release(this.#run, key, owner);
  }
}
