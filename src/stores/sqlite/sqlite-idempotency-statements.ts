// The SQL of the table of idempotency keys: one place that knows it. Each is to be called in a transaction, which may be the
// caller's own.
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import { storedText } from '../../core/stored-text.js';
import type { ClaimAnswer } from '../../ports/idempotency-store.js';
import type { SqliteConnection, SqliteStatement } from './sqlite-driver.js';

/** By the clock of the machine, in epoch milliseconds: that of a process may stand still while others go on. */
const NOW = `CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)`;
/** Of one statement that removes what is over: enough to keep up, and quick. */
const REMOVED_AT_ONCE = 500;
/** The owner of a claim whose lease has ended may still come, if nobody else has. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;

export class SqliteIdempotencyStatements {
  readonly #look: SqliteStatement;
  readonly #claim: SqliteStatement;
  readonly #renew: SqliteStatement;
  readonly #record: SqliteStatement;
  readonly #release: SqliteStatement;
  readonly #remove: SqliteStatement;

  /** @param now the present time in SQL; for tests. */
  constructor(connection: SqliteConnection, now = NOW) {
    const table = 'pulsework_idempotency';
    this.#look = connection.prepare(`SELECT outcome, until_ms - ${now} AS remaining_ms FROM ${table} WHERE key = ?`);
    this.#claim = connection.prepare(
      `INSERT OR REPLACE INTO ${table} (key, owner, until_ms) VALUES (?, ?, ${now} + ?)`,
    );
    this.#renew = connection.prepare(
      `UPDATE ${table} SET until_ms = ${now} + ? WHERE key = ? AND owner = ? AND outcome IS NULL`,
    );
    this.#record = connection.prepare(
      `UPDATE ${table} SET until_ms = CASE WHEN outcome IS NULL THEN ${now} + ? ELSE until_ms END,
       outcome = coalesce(outcome, ?) WHERE key = ? AND owner = ?`,
    );
    this.#release = connection.prepare(`DELETE FROM ${table} WHERE key = ? AND owner = ? AND outcome IS NULL`);
    this.#remove = connection.prepare(
      `DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE until_ms <= ${now}
       AND (outcome IS NOT NULL OR until_ms <= ${now} - ${ABANDONED_AFTER_MS}) LIMIT ${REMOVED_AT_ONCE})`,
    );
  }

  claim(key: string, owner: string, leaseMs: number): ClaimAnswer {
    const row = this.#look.get(storedText(key));
    const remainingMs = Number(row?.['remaining_ms'] ?? 0);
    if (row === undefined || remainingMs <= 0) {
      this.#claim.run(storedText(key), storedText(owner), Math.ceil(leaseMs));
      return { kind: 'claimed' };
    }
    const outcome = row['outcome'];
    return typeof outcome === 'string'
      ? { kind: 'recorded', outcome: JSON.parse(outcome) as RecordedOutcome }
      : { kind: 'busy', remainingMs };
  }

  renew(key: string, owner: string, leaseMs: number): boolean {
    return this.#renew.run(Math.ceil(leaseMs), storedText(key), storedText(owner)) > 0;
  }

  record(key: string, owner: string, outcome: RecordedOutcome, ttlMs: number): boolean {
    return this.#record.run(Math.ceil(ttlMs), JSON.stringify(outcome), storedText(key), storedText(owner)) > 0;
  }

  release(key: string, owner: string): void {
    this.#release.run(storedText(key), storedText(owner));
  }

  /** Some of what is over. */
  remove(): void {
    this.#remove.run();
  }
}
