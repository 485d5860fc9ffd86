// The SQL of the table of attempts: one place that knows it. What each step makes of a record is said in core/attempt-records.ts.
// Each is to be called in a transaction.
import type { AttemptState } from '../../core/attempt-records.js';
import { storedText } from '../../core/stored-text.js';
import { attemptOfRow } from '../../ports/attempt-row.js';
import type { AttemptRecord } from '../../ports/attempt-store.js';
import type { SqliteConnection, SqliteStatement } from './sqlite-driver.js';

/** A record as one step leaves it; the rest comes from what is known. */
export interface AttemptPut {
  readonly state: Exclude<AttemptState, 'suspect'>;
  /** At least so many are spent. */
  readonly attempts: number;
  readonly notBeforeMs: number | undefined;
}

/** Which process has the records open. */
export interface AttemptHolder {
  readonly host: string;
  readonly processId: number;
  /** Of this opening and no other. */
  readonly token: string;
}

const TABLE = 'pulsework_attempt';
const HOLDER = 'pulsework_attempt_holder';
const RUNNING = `state IN ('open', 'alone')`;

export class SqliteAttemptStatements {
  readonly #connection: SqliteConnection;
  readonly #find: SqliteStatement;
  readonly #put: SqliteStatement;
  readonly #delete: SqliteStatement;
  readonly #forget: SqliteStatement;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#find = connection.prepare(`SELECT state, attempts, deaths, not_before_ms FROM ${TABLE} WHERE key = ?`);
    this.#put = connection.prepare(
      `INSERT INTO ${TABLE} AS known (key, state, attempts, not_before_ms, deaths, touched)
       VALUES (?, ?, ?, ?, 0, (SELECT coalesce(max(touched), 0) + 1 FROM ${TABLE}))
       ON CONFLICT (key) DO UPDATE SET state = excluded.state, attempts = max(known.attempts, excluded.attempts),
         deaths = CASE WHEN excluded.state = 'closed' THEN 0 ELSE known.deaths END,
         not_before_ms = excluded.not_before_ms, touched = excluded.touched`,
    );
    this.#delete = connection.prepare(`DELETE FROM ${TABLE} WHERE key = ?`);
    this.#forget = connection.prepare(
      `DELETE FROM ${TABLE} WHERE key IN (SELECT key FROM ${TABLE} WHERE NOT ${RUNNING}
       ORDER BY touched LIMIT max(0, (SELECT count(*) FROM ${TABLE}) - ?))`,
    );
  }

  find(key: string): AttemptRecord | undefined {
    const row = this.#find.get(storedText(key));
    return row === undefined ? undefined : attemptOfRow(row);
  }

  put(key: string, { state, attempts, notBeforeMs }: AttemptPut): void {
    this.#put.run(storedText(key), state, attempts, notBeforeMs ?? null);
  }

  delete(key: string): void {
    this.#delete.run(storedText(key));
  }

  /** The longest untouched beyond the limit, never what runs. @returns how many */
  forgetExcess(maxRecords: number): number {
    return this.#forget.run(maxRecords);
  }

  /** The process that had it died: what ran is suspect, and who ran alone is convicted. */
  processDied(): void {
    this.#connection.exec(
      `UPDATE ${TABLE} SET state = 'suspect', not_before_ms = NULL, attempts = attempts + (state = 'alone'),
       deaths = deaths + (state = 'alone') WHERE ${RUNNING}`,
    );
  }

  /** The process ends by will: what still runs stands as before its run. */
  closeRunning(): void {
    this.#connection.exec(`UPDATE ${TABLE} SET state = 'closed', deaths = 0, not_before_ms = NULL WHERE ${RUNNING}`);
  }

  count(): { readonly records: number; readonly suspects: number } {
    const row = this.#connection
      .prepare(`SELECT count(*) AS records, count(*) FILTER (WHERE state = 'suspect') AS suspects FROM ${TABLE}`)
      .get();
    return { records: Number(row?.['records']), suspects: Number(row?.['suspects']) };
  }

  holder(): AttemptHolder | undefined {
    const row = this.#connection.prepare(`SELECT host, process, token FROM ${HOLDER}`).get();
    if (row === undefined) return undefined;
    return { host: String(row['host']), processId: Number(row['process']), token: String(row['token']) };
  }

  hold({ host, processId, token }: AttemptHolder): void {
    this.#connection.exec(`DELETE FROM ${HOLDER}`);
    this.#connection
      .prepare(`INSERT INTO ${HOLDER} (host, process, token) VALUES (?, ?, ?)`)
      .run(host, processId, token);
  }

  letGo(token: string): void {
    this.#connection.prepare(`DELETE FROM ${HOLDER} WHERE token = ?`).run(token);
  }
}
