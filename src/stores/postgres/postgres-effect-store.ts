// An EffectStore in PostgreSQL. The record is the one of the idempotency store, written in the handler's transaction: of two
// transactions for one key the second waits at the key's row, and finds the record once the first is committed.
import { endsWithin } from '../../core/ends-within.js';
import { PulseworkError } from '../../core/errors.js';
import { seconds } from '../../core/options.js';
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { Clock } from '../../ports/clock.js';
import type { EffectAnswer, EffectStore, EffectTimes, EffectTransaction } from '../../ports/effect-store.js';
import type { ClaimAnswer } from '../../ports/idempotency-store.js';
import { IdempotencyStatements } from './idempotency-statements.js';
import type { RunStatement } from './idempotency-statements.js';
import type { PostgresClient, PostgresQuerier } from './postgres-client.js';
import type { PostgresDatabase } from './postgres-database.js';
import type { PostgresSettings } from './postgres-options.js';
import { isToBeRepeated, isUndecided, postgresError } from './postgres-errors.js';

/** Of every transaction: the row is there for others only once it is recorded, so nobody ever asks whose it is. */
const OWNER = 'effects';
/** After so many outcomes this store removes what is over: more at once than came since. */
const REMOVE_AFTER = 100;
/** A server that is silent for so long has lost the connection, or the network has: it is closed, which rolls back too. */
const SILENCE_MS = seconds(5);
/**
 * In the transaction alone. What a commit is answered for must be on the disk, since the message is acknowledged then; whoever has set
 * more than that, or another way to it, keeps it.
 */
const LEND = `SELECT current_setting('lock_timeout') AS lock_timeout, set_config('lock_timeout', $1, true),
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END`;
const GIVE_BACK = `SELECT set_config('lock_timeout', $1, true)`;

export class PostgresEffectStore implements EffectStore<PostgresQuerier> {
  readonly name: string;
  readonly #database: PostgresDatabase;
  readonly #statements: IdempotencyStatements;
  readonly #clock: Clock;
  #committed = 0;

  constructor({ database, schema, clock }: PostgresSettings) {
    this.name = database.name;
    this.#database = database;
    this.#clock = clock;
    this.#statements = new IdempotencyStatements(schema);
  }

  open(): Promise<void> {
    return this.#database.ready();
  }

  async begin(key: string, { ttlMs, waitMs }: EffectTimes): Promise<EffectAnswer<PostgresQuerier>> {
    const client = await this.#database.connect('beginning a transaction');
    const transaction = new PostgresTransaction(client, {
      store: this.name,
      clock: this.#clock,
      record: (run, outcome) => this.#statements.record(run, key, OWNER, outcome, ttlMs),
      committed: () => this.#removeSometimes(),
    });
    const silence = this.#clock.setTimer(waitMs + SILENCE_MS, () => transaction.drop());
    try {
      const answer = await this.#claimIn(transaction, key, { ttlMs, waitMs });
      if (answer.kind === 'claimed') return { kind: 'begun', transaction };
      await transaction.rollback();
      return answer;
    } catch (error) {
      await transaction.rollback();
      const remainingMs = remainingMsOf(error, waitMs);
      if (remainingMs === undefined) throw error;
      return { kind: 'busy', remainingMs };
    } finally {
      silence.cancel();
    }
  }

  async #claimIn({ run }: PostgresTransaction, key: string, { ttlMs, waitMs }: EffectTimes): Promise<ClaimAnswer> {
    const doing = 'beginning a transaction';
    await run(doing, 'BEGIN', []);
    // 0 would be no limit at all.
    const { rows } = await run(doing, LEND, [String(Math.max(1, Math.ceil(waitMs)))]);
    const answer = await this.#statements.claim(run, key, OWNER, ttlMs);
    await run(doing, GIVE_BACK, [rows[0]?.['lock_timeout']]);
    return answer;
  }

  /** Nobody waits for it, and what it could not do the next one does. */
  #removeSometimes(): void {
    this.#committed += 1;
    if (this.#committed % REMOVE_AFTER !== 0) return;
    const run: RunStatement = (doing, text, values) => this.#database.query(doing, text, values);
    void this.#statements.remove(run).catch(() => undefined);
  }
}

/** How long the key may still be another's; undefined where something else stopped the claim. */
function remainingMsOf(error: unknown, waitMs: number): number | undefined {
  if (!(error instanceof PulseworkError)) return undefined;
  // Under `repeatable read` and `serializable` a transaction cannot see what was committed while it waited: another one can.
  if (isToBeRepeated(error.cause)) return 0;
  return error.code === 'STORE_LOCKED' ? waitMs : undefined;
}

interface TransactionParts {
  readonly store: string;
  readonly clock: Clock;
  readonly record: (run: RunStatement, outcome: RecordedOutcome) => Promise<boolean>;
  readonly committed: () => void;
}

class PostgresTransaction implements EffectTransaction<PostgresQuerier> {
  readonly #client: PostgresClient;
  readonly #parts: TransactionParts;
  #isLost = false;
  #ended = false;
  #committing = false;
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
    this.#committing = true;
    try {
      await this.#client.query('COMMIT');
    } catch (error) {
      this.#end(true);
      throw this.#notCommitted(error);
    }
    this.#end(this.#isLost);
    this.#parts.committed();
  }

  async rollback(): Promise<void> {
    if (this.#ended) return;
    // Behind a commit that has no answer there is nothing to roll back.
    if (this.#committing) {
      this.drop();
      return;
    }
    const rolledBack = this.#client.query('ROLLBACK').then(
      () => this.#end(this.#isLost),
      () => this.drop(),
    );
    if (!(await endsWithin(this.#parts.clock, rolledBack, SILENCE_MS))) this.drop();
  }

  /** Closes the connection; what waits on it for an answer is rejected. */
  drop(): void {
    this.#end(true);
  }

  /** @returns what to throw for a COMMIT that was rejected */
  #notCommitted(thrown: unknown): PulseworkError {
    const known = postgresError(this.#parts.store, 'committing', thrown);
    if (!isUndecided(thrown)) return known;
    return new PulseworkError('STORE_COMMIT_UNKNOWN', `${known.message}; a repeat finds out on another connection`, {
      cause: known.cause,
    });
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
