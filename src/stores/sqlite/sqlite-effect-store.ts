// An EffectStore in a SQLite database. A connection has one transaction at a time, and SQLite one writer: runs of handlers take
// turns. The record is the one of the idempotency store, written in the handler's transaction.
import { PulseworkError } from '../../core/errors.js';
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import type { EffectAnswer, EffectStore, EffectTimes, EffectTransaction } from '../../ports/effect-store.js';
import { forceToDisk, withBusyTimeout } from './lent-settings.js';
import type { SqliteDatabase } from './sqlite-driver.js';
import { sqliteConnection } from './sqlite-driver.js';
import type { SqliteConnection } from './sqlite-driver.js';
import { isBusy, isDiskFault, quietly, sqliteError } from './sqlite-errors.js';
import type { SqliteFileOptions } from './sqlite-file.js';
import { SqliteFile } from './sqlite-file.js';
import { SqliteIdempotencyStatements } from './sqlite-idempotency-statements.js';
import { Turns } from './turns.js';

/** Of every transaction: the row is there for others only once it is recorded, so nobody ever asks whose it is. */
const OWNER = 'effects';
/** What a thread waits inside SQLite for another process: as long as a usual transaction takes. After it others have a turn. */
const BLOCKING_WAIT_MS = 20;
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
  readonly #turns: Turns;
  #committed = 0;

  constructor(settings: SqliteEffectSettings) {
    this.name = settings.name;
    this.#settings = settings;
    this.#file = new SqliteFile(settings);
    this.#connection = sqliteConnection(settings.place);
    this.#turns = new Turns(settings.clock);
  }

  async open(): Promise<void> {
    const connection = await this.#file.open();
    this.#opened ??= new SqliteIdempotencyStatements(connection);
  }

  async begin(key: string, { ttlMs, waitMs }: EffectTimes): Promise<EffectAnswer<SqliteDatabase>> {
    const untilMs = this.#settings.clock.now() + waitMs;
    const busy = { kind: 'busy', remainingMs: waitMs } as const;
    const ended = await this.#turns.take(waitMs);
    if (ended === undefined) return busy;
    let restore: () => void;
    try {
      restore = await this.#whenFree(untilMs, () => this.#beginNow());
    } catch (error) {
      ended();
      if (isBusy(error)) return busy;
      throw sqliteError(this.name, 'beginning a transaction', error);
    }
    const transaction = this.#transaction(key, ttlMs, () => {
      quietly(restore);
      ended();
    });
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
    const { clock, busyTimeoutMs, place } = this.#settings;
    let isOpen = true;
    const end = (): void => {
      if (isOpen) ended();
      isOpen = false;
    };
    return {
      tx: place,
      commit: async (outcome) => {
        try {
          this.#record(key, outcome, ttlMs);
          // Whoever reads may be in the way where there is no log; the transaction is open all the same.
          await this.#whenFree(clock.now() + busyTimeoutMs, () => {
            // Who asked has given up meanwhile: what is open on the connection now is somebody else's.
            if (!isOpen) throw this.#rolledBack('it was rolled back while its commit waited for others');
            this.#connection.exec('COMMIT');
          });
        } catch (error) {
          throw this.#notCommitted(error);
        }
        end();
      },
      rollback: async () => {
        // SQLite may have done it by itself, or the handler.
        if (isOpen) quietly(() => this.#connection.exec('ROLLBACK'));
        end();
      },
    };
  }

  /** What the disk has of it when it gave an error shows when it is read again. */
  #notCommitted(error: unknown): PulseworkError {
    const known = sqliteError(this.name, 'committing', error);
    return isDiskFault(error) ? new PulseworkError('STORE_COMMIT_UNKNOWN', known.message, { cause: error }) : known;
  }

  #record(key: string, outcome: RecordedOutcome, ttlMs: number): void {
    if (!this.#statements.record(key, OWNER, outcome, ttlMs))
      throw this.#rolledBack(
        'the handler has rolled back the transaction of its effects itself; throw, or return another outcome, instead',
      );
    this.#committed += 1;
    if (this.#committed % REMOVE_AFTER === 0) this.#statements.remove();
  }

  #rolledBack(rule: string): PulseworkError {
    return new PulseworkError('STORE_FAILED', `store "${this.name}": ${rule}`);
  }

  /** @returns puts the settings back that it needed */
  #beginNow(): () => void {
    const connection = this.#connection;
    const restore = forceToDisk(connection);
    try {
      withBusyTimeout(connection, BLOCKING_WAIT_MS, () => connection.exec('BEGIN IMMEDIATE'));
      return restore;
    } catch (error) {
      restore();
      throw error;
    }
  }

  async #whenFree<T>(untilMs: number, act: () => T): Promise<T> {
    const { clock } = this.#settings;
    for (;;) {
      try {
        return act();
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
