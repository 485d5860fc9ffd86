// An EffectStore in a SQLite database. A connection has one transaction at a time, and SQLite one writer: runs of handlers take
// turns. The record is the one of the idempotency store, written in the handler's transaction.
import { PulseworkError } from '../../core/errors.js';
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { EffectAnswer, EffectStore, EffectTimes, EffectTransaction } from '../../ports/effect-store.js';
import type { SqliteDatabase } from './sqlite-driver.js';
import { sqliteConnection } from './sqlite-driver.js';
import type { SqliteConnection } from './sqlite-driver.js';
import { isBusy, sqliteError } from './sqlite-errors.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { SqliteFile } from './sqlite-file.js';
import { SqliteIdempotencyStatements } from './sqlite-idempotency-statements.js';

/** Of every transaction: the row is there for others only once it is recorded, so nobody ever asks whose it is. */
const OWNER = 'effects';
/** Between two tries to write while another process does. */
const RETRY_MS = 10;
/** After so many outcomes this store removes what is over: more at once than came since. */
const REMOVE_AFTER = 100;

export interface SqliteEffectSettings extends SqliteFileOptions {
  readonly place: SqliteDatabase;
}

export class SqliteEffectStore implements EffectStore<SqliteDatabase> {
  readonly name: string;
  readonly #settings: SqliteEffectSettings;
  readonly #file: SqliteFile;
  readonly #connection: SqliteConnection;
  #opened: SqliteIdempotencyStatements | undefined;
  /** Ends when the transaction that is open, and all that wait for it, have ended. */
  #turn: Promise<void> = Promise.resolve();
  #committed = 0;

  constructor(settings: SqliteEffectSettings) {
    this.name = settings.name;
    this.#settings = settings;
    this.#file = new SqliteFile(settings);
    this.#connection = sqliteConnection(settings.place);
  }

  async open(): Promise<void> {
    const connection = await this.#file.open();
    this.#opened ??= new SqliteIdempotencyStatements(connection);
  }

  async begin(key: string, { ttlMs }: EffectTimes): Promise<EffectAnswer<SqliteDatabase>> {
    const before = this.#turn;
    let ended!: () => void;
    this.#turn = new Promise((resolve) => (ended = resolve));
    await before;
    try {
      await this.#beginWhenFree();
    } catch (error) {
      ended();
      throw sqliteError(this.name, 'beginning a transaction', error);
    }
    const transaction = this.#transaction(key, ttlMs, ended);
    try {
      const answer = this.#statements.claim(key, OWNER, ttlMs);
      if (answer.kind === 'claimed') return { kind: 'begun', transaction };
      await transaction.rollback();
      return answer;
    } catch (error) {
      await transaction.rollback();
      throw sqliteError(this.name, 'claiming a key', error);
    }
  }

  #transaction(key: string, ttlMs: number, ended: () => void): EffectTransaction<SqliteDatabase> {
    let isOpen = true;
    const end = (statement: 'COMMIT' | 'ROLLBACK'): void => {
      this.#connection.exec(statement);
      isOpen = false;
      ended();
    };
    return {
      tx: this.#settings.place,
      commit: async (outcome) => {
        try {
          this.#record(key, outcome, ttlMs);
          end('COMMIT');
        } catch (error) {
          throw sqliteError(this.name, 'committing', error);
        }
      },
      rollback: async () => {
        if (!isOpen) return;
        try {
          end('ROLLBACK');
        } catch {
          // SQLite has done it by itself, or the handler has.
          isOpen = false;
          ended();
        }
      },
    };
  }

  #record(key: string, outcome: RecordedOutcome, ttlMs: number): void {
    if (!this.#statements.record(key, OWNER, outcome, ttlMs)) {
      const rule =
        'the handler has rolled back the transaction of its effects itself; throw, or return another outcome, instead';
      throw new PulseworkError('STORE_FAILED', `store "${this.name}": ${rule}`);
    }
    this.#committed += 1;
    if (this.#committed % REMOVE_AFTER === 0) this.#statements.remove();
  }

  async #beginWhenFree(): Promise<void> {
    const { clock, busyTimeoutMs } = this.#settings;
    const untilMs = clock.now() + busyTimeoutMs;
    for (;;) {
      try {
        return this.#connection.exec('BEGIN IMMEDIATE');
      } catch (error) {
        if (!isBusy(error) || clock.now() >= untilMs) throw error;
      }
      await new Promise<void>((resolve) => void clock.setTimer(RETRY_MS, resolve));
    }
  }

  get #statements(): SqliteIdempotencyStatements {
    if (this.#opened !== undefined) return this.#opened;
    throw new PulseworkError('ILLEGAL_STATE', `store "${this.name}" is not open yet; open() it first`);
  }
}
