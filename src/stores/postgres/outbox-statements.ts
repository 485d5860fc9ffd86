// The SQL of the outbox: one place that knows its tables.
import { createHash } from 'node:crypto';
import type { OutboxRecord } from '../../core/outbox-record.js';
import { MAX_WAITING_COUNTED } from '../../core/outbox-record.js';
import { storedText } from '../../core/stored-text.js';
import type { ClaimedRow, OutboxLead, OutboxRow, OutboxSummary, RefusedRow } from '../../ports/outbox-store.js';
import type { PostgresQuerier, PostgresRow } from './postgres-client.js';
import type { RunStatement } from './idempotency-statements.js';
import { quotedName } from './postgres-format.js';

const COLUMNS = 'o.id, o.topic, o.ordered_by, o.payload, o.headers';
/** Microseconds, as `nextOutboxNumber` has them. */
const NOW_MICROS = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

export class OutboxStatements {
  /** What the leader listens to. A name of PostgreSQL has 63 bytes, as a schema may have by itself. */
  readonly channel: string;
  readonly #notifies: boolean;
  readonly #sql: Readonly<
    Record<
      'append' | 'claimed' | 'claim' | 'delete' | 'refuse' | 'summary' | 'refused' | 'release' | 'skip' | 'id',
      string
    >
  >;

  constructor(schema: string, notifies: boolean) {
    const outbox = `${quotedName(schema)}.outbox`;
    const relay = `${quotedName(schema)}.outbox_relay`;
    this.channel = `pulsework_${createHash('sha256').update(schema).digest('hex').slice(0, 32)}`;
    this.#notifies = notifies;
    this.#sql = {
      id: `SELECT outbox_id FROM ${relay}`,
      // The order of the rows is that of the list: ids are taken as rows come out of the sorted query.
      append: `INSERT INTO ${outbox} (topic, ordered_by, payload, headers)
        SELECT topic, ordered_by, payload, headers
        FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[])
        WITH ORDINALITY AS given (topic, ordered_by, payload, headers, place) ORDER BY place`,
      claimed: `SELECT ${COLUMNS}, o.number FROM ${outbox} o WHERE o.number IS NOT NULL ORDER BY o.number`,
      claim: `WITH picked AS (
          SELECT o.id, row_number() OVER (ORDER BY o.id) AS place FROM ${outbox} o
          WHERE o.number IS NULL AND o.refused IS NULL AND o.topic <> ALL ($2::text[]) AND NOT EXISTS (
            SELECT 1 FROM ${outbox} r WHERE r.refused IS NOT NULL AND r.topic = o.topic AND r.ordered_by = o.ordered_by)
          ORDER BY o.id LIMIT $1),
        counted AS (SELECT count(*) AS rows FROM picked),
        counter AS (
          UPDATE ${relay} SET last_number = greatest(last_number + 1, ${NOW_MICROS}) + counted.rows - 1
          FROM counted WHERE counted.rows > 0 RETURNING last_number - counted.rows AS before)
        UPDATE ${outbox} o SET number = counter.before + picked.place FROM picked, counter WHERE o.id = picked.id
        RETURNING ${COLUMNS}, o.number`,
      delete: `DELETE FROM ${outbox} WHERE id = ANY ($1::bigint[])`,
      refuse: `UPDATE ${outbox} o SET number = NULL,
          refused = CASE WHEN o.id = head.id THEN clock_timestamp() END,
          reason = CASE WHEN o.id = head.id THEN $2::text END
        FROM ${outbox} head WHERE head.id = $1 AND (o.id = head.id
          OR o.topic = head.topic AND o.ordered_by = head.ordered_by AND o.number > head.number)`,
      summary: `SELECT (SELECT extract(epoch FROM added) * 1000 FROM ${outbox} WHERE refused IS NULL ORDER BY id LIMIT 1)
          AS oldest_ms, (SELECT count(*) FROM ${outbox} WHERE refused IS NOT NULL) AS refused,
          (SELECT count(*) FROM (SELECT 1 FROM ${outbox} WHERE number IS NULL AND refused IS NULL
            LIMIT ${MAX_WAITING_COUNTED}) AS counted) AS waiting,
          (SELECT count(*) FROM ${outbox} WHERE number IS NOT NULL) AS claimed`,
      refused: `SELECT ${COLUMNS}, o.reason, extract(epoch FROM o.refused) * 1000 AS refused_ms FROM ${outbox} o
        WHERE o.refused IS NOT NULL ORDER BY o.id LIMIT $1`,
      release: `UPDATE ${outbox} SET refused = NULL, reason = NULL WHERE id = $1 AND refused IS NOT NULL`,
      skip: `DELETE FROM ${outbox} WHERE id = $1 AND refused IS NOT NULL`,
    };
  }

  async outboxId(run: RunStatement): Promise<string> {
    const { rows } = await run('reading', this.#sql.id, []);
    return String(rows[0]?.['outbox_id']);
  }

  /** In the transaction of the user, whose errors are his. */
  async append(tx: PostgresQuerier, records: readonly OutboxRecord[]): Promise<void> {
    await tx.query(this.#withNews(this.#sql.append), [
      records.map(({ topic }) => topic),
      records.map(({ orderedBy }) => orderedBy ?? null),
      records.map(({ payload }) => (payload === null ? null : asBuffer(payload))),
      records.map(({ headers }) => headers),
    ]);
  }

  async claimed(run: RunStatement): Promise<readonly ClaimedRow[]> {
    const { rows } = await run('reading', this.#sql.claimed, []);
    return rows.map(claimedRow);
  }

  async claim(
    run: RunStatement,
    { limit, exceptTopics }: Parameters<OutboxLead['claim']>[0],
  ): Promise<readonly ClaimedRow[]> {
    const { rows } = await run('claiming messages', this.#sql.claim, [limit, [...exceptTopics]]);
    return rows.map(claimedRow).sort((a, b) => a.number - b.number);
  }

  async delete(run: RunStatement, ids: readonly number[]): Promise<void> {
    await run('deleting published messages', this.#sql.delete, [[...ids]]);
  }

  async refuse(run: RunStatement, id: number, reason: string): Promise<void> {
    await run('writing down a refused message', this.#sql.refuse, [id, storedText(reason)]);
  }

  async summary(run: RunStatement): Promise<OutboxSummary> {
    const { rows } = await run('reading', this.#sql.summary, []);
    const { oldest_ms: oldestMs, refused, waiting, claimed } = rows[0] ?? {};
    return {
      waiting: Math.min(Number(waiting) + Number(claimed), MAX_WAITING_COUNTED),
      oldestMs: oldestMs === null ? undefined : Number(oldestMs),
      refused: Number(refused),
    };
  }

  async refused(run: RunStatement, limit: number): Promise<readonly RefusedRow[]> {
    const { rows } = await run('reading refused messages', this.#sql.refused, [limit]);
    return rows.map((row) => ({
      ...outboxRow(row),
      reason: String(row['reason']),
      refusedMs: Math.floor(Number(row['refused_ms'])),
    }));
  }

  async release(run: RunStatement, id: number): Promise<boolean> {
    return this.#changes(run, 'releasing a refused message', this.#sql.release, id);
  }

  async skip(run: RunStatement, id: number): Promise<boolean> {
    return this.#changes(run, 'skipping a refused message', this.#sql.skip, id);
  }

  async #changes(run: RunStatement, doing: string, statement: string, id: number): Promise<boolean> {
    const { rows } = await run(doing, this.#withNews(statement), [id]);
    return Number(rows[0]?.['changed']) > 0;
  }

  /** `statement`, and word of it to the leader, which the server sends when the transaction is committed. */
  #withNews(statement: string): string {
    const news = this.#notifies ? `, pg_notify('${this.channel}', '')` : '';
    return `WITH changed AS (${statement} RETURNING 1) SELECT count(*) AS changed${news} FROM changed`;
  }
}

function claimedRow(row: PostgresRow): ClaimedRow {
  return { ...outboxRow(row), number: Number(row['number']) };
}

function outboxRow(row: PostgresRow): OutboxRow {
  const { id, topic, ordered_by: orderedBy, payload, headers } = row;
  return {
    id: Number(id),
    topic: String(topic),
    orderedBy: typeof orderedBy === 'string' ? orderedBy : undefined,
    payload: payload instanceof Uint8Array ? payload : null,
    headers: String(headers),
  };
}

/** The driver writes other views of bytes as text. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
