// The SQL of the table of idempotency keys: one place that knows it. Each statement can be run in a transaction of the caller.
import type { RecordedOutcome } from '../../core/recorded-outcome.js';
import { storedText } from '../../core/stored-text.js';
import type { ClaimAnswer } from '../../ports/idempotency-store.js';
import { keyColumn } from './key-column.js';
import type { PostgresResult } from './postgres-client.js';
import { quotedName } from './postgres-format.js';

/** Runs a statement, and says in an error what it was for. */
export type RunStatement = (doing: string, text: string, values: unknown[]) => Promise<PostgresResult>;

/** Of one statement that removes what is over: enough to keep up, and quick. */
const REMOVED_AT_ONCE = 500;
/** The owner of a claim whose lease has ended may still come, if nobody else has. */
const ABANDONED_AFTER = `interval '1 day'`;

export class IdempotencyStatements {
  readonly #sql: Readonly<Record<'claim' | 'look' | 'renew' | 'record' | 'release' | 'remove', string>>;

  /** @param now the present time in SQL; for tests. By the server's clock, of which there is one. */
  constructor(schema: string, now = 'clock_timestamp()') {
    const table = `${quotedName(schema)}.idempotency`;
    const later = (parameter: string): string => `${now} + ${parameter}::double precision * interval '1 millisecond'`;
    this.#sql = {
      claim: `INSERT INTO ${table} AS known (key, owner, until) VALUES ($1, $2, ${later('$3')})
        ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until, outcome = NULL
        WHERE known.until <= ${now} RETURNING key`,
      look: `SELECT outcome, extract(epoch FROM until - ${now})::double precision * 1000 AS remaining_ms
        FROM ${table} WHERE key = $1`,
      renew: `UPDATE ${table} SET until = ${later('$3')} WHERE key = $1 AND owner = $2 AND outcome IS NULL`,
      record: `UPDATE ${table} SET outcome = coalesce(outcome, $3::text),
        until = CASE WHEN outcome IS NULL THEN ${later('$4')} ELSE until END WHERE key = $1 AND owner = $2`,
      release: `DELETE FROM ${table} WHERE key = $1 AND owner = $2 AND outcome IS NULL`,
      remove: `DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE until <= ${now}
        AND (outcome IS NOT NULL OR until <= ${now} - ${ABANDONED_AFTER}) LIMIT $1 FOR UPDATE SKIP LOCKED)`,
    };
  }

  async claim(run: RunStatement, key: string, owner: string, leaseMs: number): Promise<ClaimAnswer> {
    for (;;) {
      const taken = await run('claiming a key', this.#sql.claim, [keyColumn(key), storedText(owner), leaseMs]);
      if (taken.rows.length > 0) return { kind: 'claimed' };
      const { rows } = await run('claiming a key', this.#sql.look, [keyColumn(key)]);
      const answer = rows[0] === undefined ? undefined : answerOf(rows[0]);
      // Given up, or its time was over, between the two: free now.
      if (answer !== undefined) return answer;
    }
  }

  async renew(run: RunStatement, key: string, owner: string, leaseMs: number): Promise<boolean> {
    return changed(await run('renewing a claim', this.#sql.renew, [keyColumn(key), storedText(owner), leaseMs]));
  }

  async record(
    run: RunStatement,
    key: string,
    owner: string,
    outcome: RecordedOutcome,
    ttlMs: number,
  ): Promise<boolean> {
    const values = [keyColumn(key), storedText(owner), JSON.stringify(outcome), ttlMs];
    return changed(await run('recording an outcome', this.#sql.record, values));
  }

  async release(run: RunStatement, key: string, owner: string): Promise<void> {
    await run('releasing a key', this.#sql.release, [keyColumn(key), storedText(owner)]);
  }

  /** Some of what is over. */
  async remove(run: RunStatement): Promise<void> {
    await run('removing what is over', this.#sql.remove, [REMOVED_AT_ONCE]);
  }
}

function answerOf(row: Readonly<Record<string, unknown>>): ClaimAnswer | undefined {
  const remainingMs = Math.ceil(Number(row['remaining_ms']));
  if (remainingMs <= 0) return undefined;
  const outcome = row['outcome'];
  return typeof outcome === 'string'
    ? { kind: 'recorded', outcome: JSON.parse(outcome) as RecordedOutcome }
    : { kind: 'busy', remainingMs };
}

function changed({ rowCount }: PostgresResult): boolean {
  return (rowCount ?? 0) > 0;
}
