// The SQL of the table of attempts: one place that knows it. What each step makes of a record is said in core/attempt-records.ts;
// here it is done where several processes share the records.
import type { AttemptState } from '../../core/attempt-records.js';
import type { PostgresQuerier, PostgresRow } from './postgres-client.js';
import { quotedName } from './postgres-format.js';

/** A record as one step leaves it; the rest comes from what is known. */
export interface AttemptPut {
  /** As it stands in the column. */
  readonly key: string;
  readonly state: Exclude<AttemptState, 'suspect'>;
  /** At least so many are spent. */
  readonly attempts: number;
  readonly notBeforeMs: number | undefined;
}

const RUNNING = `state IN ('open', 'alone')`;
/** Who ran alone is convicted. */
const CONVICTED = `(state = 'alone')::integer`;

export class AttemptStatements {
  readonly #table: string;
  readonly #processes: string;
  readonly #touched: string;
  /** Locks of this schema: each process holds that of its number, and 0 is for judging. */
  readonly #lock: string;

  constructor(schema: string) {
    const quoted = quotedName(schema);
    this.#table = `${quoted}.attempt`;
    this.#processes = `${quoted}.attempt_process`.replaceAll("'", "''");
    this.#touched = `${quoted}.attempt_touched`.replaceAll("'", "''");
    this.#lock = `hashtext('pulsework attempts of ${schema.replaceAll("'", "''")}')`;
  }

  /** The number of a process that lives as long as this connection. */
  async newProcess(client: PostgresQuerier): Promise<number> {
    for (;;) {
      const { rows } = await client.query(
        `SELECT number, pg_try_advisory_lock(${this.#lock}, number) AS is_ours
         FROM (SELECT nextval('${this.#processes}')::integer AS number OFFSET 0) AS next`,
      );
      // Numbers begin again after two billion.
      if (rows[0]?.['is_ours'] === true) return Number(rows[0]['number']);
    }
  }

  async find(client: PostgresQuerier, keys: readonly string[]): Promise<readonly PostgresRow[]> {
    const columns = 'key, state, attempts, deaths, not_before_ms, process';
    return (await client.query(`SELECT ${columns} FROM ${this.#table} WHERE key = ANY($1::text[])`, [keys])).rows;
  }

  /** Each key once. Sorted: of two processes with the same keys none waits for the other in a circle. */
  async put(client: PostgresQuerier, processNumber: number, puts: readonly AttemptPut[]): Promise<void> {
    const sorted = [...puts].sort((one, other) => (one.key < other.key ? -1 : 1));
    await client.query(
      `INSERT INTO ${this.#table} AS known (key, state, attempts, deaths, not_before_ms, process, touched)
       SELECT key, state, attempts, 0, not_before_ms, $5, nextval('${this.#touched}')
       FROM unnest($1::text[], $2::text[], $3::bigint[], $4::double precision[]) AS put (key, state, attempts, not_before_ms)
       ON CONFLICT (key) DO UPDATE SET state = excluded.state, attempts = greatest(known.attempts, excluded.attempts),
         deaths = CASE WHEN excluded.state = 'closed' THEN 0 ELSE known.deaths END, judged = NULL,
         not_before_ms = excluded.not_before_ms, process = excluded.process, touched = excluded.touched`,
      [
        sorted.map(({ key }) => key),
        sorted.map(({ state }) => state),
        sorted.map(({ attempts }) => attempts),
        sorted.map(({ notBeforeMs }) => notBeforeMs ?? null),
        processNumber,
      ],
    );
  }

  async delete(client: PostgresQuerier, keys: readonly string[]): Promise<void> {
    await client.query(`DELETE FROM ${this.#table} WHERE key = ANY($1::text[])`, [[...keys].sort()]);
  }

  /** What ran in processes that are gone is suspect. One process judges at a time, so that who waited sees the verdict. */
  async judgeTheGone(client: PostgresQuerier, processNumber: number): Promise<void> {
    await client.query('BEGIN');
    try {
      await client.query(`SELECT pg_advisory_xact_lock(${this.#lock}, 0)`);
      await client.query(
        `WITH gone AS MATERIALIZED (
           SELECT process FROM (SELECT DISTINCT process FROM ${this.#table} WHERE ${RUNNING} AND process <> $1) AS others
           WHERE pg_try_advisory_xact_lock(${this.#lock}, process))
         UPDATE ${this.#table} AS known SET judged = state, state = 'suspect', not_before_ms = NULL,
           attempts = attempts + ${CONVICTED}, deaths = deaths + ${CONVICTED}
         FROM gone WHERE known.process = gone.process AND ${RUNNING}`,
        [processNumber],
      );
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined);
      throw error;
    }
  }

  /** A process that was only cut off goes on under another number: what was judged of it meanwhile is taken back. */
  async moveRunning(client: PostgresQuerier, from: number, to: number): Promise<void> {
    const convicted = `(judged = 'alone')::integer`;
    await client.query(
      `UPDATE ${this.#table} SET process = $2, state = coalesce(judged, state), judged = NULL,
         attempts = attempts - coalesce(${convicted}, 0), deaths = deaths - coalesce(${convicted}, 0)
       WHERE process = $1 AND (${RUNNING} OR judged IS NOT NULL)`,
      [from, to],
    );
  }

  /** The process ends by will: what still runs stands as before its run. */
  async closeRunning(client: PostgresQuerier, processNumber: number): Promise<void> {
    const closed = `state = 'closed', deaths = 0, not_before_ms = NULL`;
    await client.query(`UPDATE ${this.#table} SET ${closed} WHERE process = $1 AND ${RUNNING}`, [processNumber]);
  }

  async count(client: PostgresQuerier): Promise<{ readonly records: number; readonly suspects: number }> {
    const { rows } = await client.query(
      `SELECT count(*) AS records, count(*) FILTER (WHERE state = 'suspect') AS suspects FROM ${this.#table}`,
    );
    return { records: Number(rows[0]?.['records']), suspects: Number(rows[0]?.['suspects']) };
  }

  /** The longest untouched beyond the limit, never what runs. @returns how many */
  async forgetExcess(client: PostgresQuerier, maxRecords: number): Promise<number> {
    const { rowCount } = await client.query(
      `DELETE FROM ${this.#table} WHERE key IN (SELECT key FROM ${this.#table} WHERE NOT ${RUNNING}
       ORDER BY touched LIMIT greatest(0, (SELECT count(*) FROM ${this.#table}) - $1))`,
      [maxRecords],
    );
    return rowCount ?? 0;
  }
}
