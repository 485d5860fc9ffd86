// An EffectStore in PostgreSQL. The record is the one of the idempotency store, written in the handler's transaction: of two
// transactions for one key the second waits at the key's row, and finds the record once the first is committed.
import { PulseworkError } from '../../core/errors.js';
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { EffectAnswer, EffectStore, EffectTimes, EffectTransaction } from '../../ports/effect-store.js';
import { IdempotencyStatements } from './idempotency-statements.js';
import type { RunStatement } from './idempotency-statements.js';
import type { PostgresClient, PostgresQuerier } from './postgres-client.js';
import type { PostgresDatabase } from './postgres-database.js';
import { postgresError } from './postgres-errors.js';

/** Of every transaction: the row is there for others only once it is recorded, so nobody ever asks whose it is. */
const OWNER = 'effects';
/** After so many outcomes this store removes what is over: more at once than came since. */
const REMOVE_AFTER = 100;

export class PostgresEffectStore implements EffectStore<PostgresQuerier> {
  readonly name: string;
  readonly #database: PostgresDatabase;
  readonly #statements: IdempotencyStatements;
  #committed = 0;

  constructor(database: PostgresDatabase, schema: string) {
    this.name = database.name;
    this.#database = database;
    this.#statements = new IdempotencyStatements(schema);
  }

  open(): Promise<void> {
    return this.#database.ready();
  }

  async begin(key: string, { ttlMs, waitMs }: EffectTimes): Promise<EffectAnswer<PostgresQuerier>> {
    const client = await this.#database.connect('beginning a transaction');
    const transaction = new PostgresTransaction(client, {
      store: this.name,
      record: (run, outcome) => this.#statements.record(run, key, OWNER, outcome, ttlMs),
      committed: () => this.#removeSometimes(),
    });
    try {
      await transaction.run('beginning a transaction', 'BEGIN', []);
      await transaction.run('beginning a transaction', `SET LOCAL lock_timeout = ${Math.ceil(waitMs)}`, []);
      const answer = await this.#statements.claim(transaction.run, key, OWNER, ttlMs);
      await transaction.run('beginning a transaction', 'SET LOCAL lock_timeout = DEFAULT', []);
      if (answer.kind === 'claimed') return { kind: 'begun', transaction };
      await transaction.rollback();
      return answer;
    } catch (error) {
      await transaction.rollback();
      if (error instanceof PulseworkError && error.code === 'STORE_LOCKED')
        return { kind: 'busy', remainingMs: waitMs };
      throw error;
    }
  }

  /** Nobody waits for it, and what it could not do the next one does. */
  #removeSometimes(): void {
    this.#committed += 1;
    if (this.#committed % REMOVE_AFTER !== 0) return;
    const run: RunStatement = (doing, text, values) => this.#database.query(doing, text, values);
    void this.#statements.remove(run).catch(() => undefined);
  }
}

interface TransactionParts {
  readonly store: string;
  readonly record: (run: RunStatement, outcome: RecordedOutcome) => Promise<boolean>;
  readonly committed: () => void;
}

class PostgresTransaction implements EffectTransaction<PostgresQuerier> {
  readonly #client: PostgresClient;
  readonly #parts: TransactionParts;
  #isLost = false;
  #ended = false;
  readonly #lost = (): void => void (this.#isLost = true);

  constructor(client: PostgresClient, parts: TransactionParts) {
    this.#client = client;
    this.#parts = parts;
    client.on('error', this.#lost);
  }

  get tx(): PostgresQuerier {
    return this.#client;
  }

  readonly run: RunStatement = async (doing, text, values) => {
    try {
      return await this.#client.query(text, values);
    } catch (error) {
      throw postgresError(this.#parts.store, doing, error);
    }
  };

  async commit(outcome: RecordedOutcome): Promise<void> {
    // Also where the handler has swallowed the error of a statement: PostgreSQL then takes no further one.
    if (!(await this.#parts.record(this.run, outcome))) throw this.#endedByHandler();
    try {
      await this.run('committing', 'COMMIT', []);
    } catch (error) {
      // Whether it is committed the repeat finds out, on another connection.
      this.#end(true);
      throw error;
    }
    this.#end(this.#isLost);
    this.#parts.committed();
  }

  async rollback(): Promise<void> {
    if (this.#ended) return;
    const isDone = await this.#client.query('ROLLBACK').then(
      () => true,
      () => false,
    );
    this.#end(!isDone || this.#isLost);
  }

  #end(destroy: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#client.off('error', this.#lost);
    this.#client.release(destroy);
  }

  #endedByHandler(): PulseworkError {
    const rule =
      'the handler has rolled back the transaction of its effects itself; throw, or return another outcome, instead';
    return new PulseworkError('STORE_FAILED', `store "${this.#parts.store}": ${rule}`);
  }
}
