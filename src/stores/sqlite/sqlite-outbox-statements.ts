// The SQL of the outbox: one place that knows its tables. Each is to be called in a transaction.
import type { OutboxRecord } from '../../core/outbox-record.js';
import { MAX_WAITING_COUNTED, nextOutboxNumber } from '../../core/outbox-record.js';
import type { ClaimedRow, OutboxLead, OutboxRow, OutboxSummary, RefusedRow } from '../../ports/outbox-store.js';
import { preparedStatements } from './prepared-statements.js';
import type { SqliteConnection, SqliteRow, SqliteStatement } from './sqlite-driver.js';

/** By the clock of the machine, in epoch milliseconds: that of a process may stand still while others go on. */
const NOW = `CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)`;
const COLUMNS = 'id, topic, ordered_by, payload, headers';

/** Who leads, and until when by the clock of the machine. */
export interface SqliteLeader {
  readonly outboxId: string;
  readonly token: string | undefined;
  readonly host: string | undefined;
  readonly processId: number;
  readonly remainingMs: number;
}

export class SqliteOutboxStatements {
  readonly #sql: (text: string) => SqliteStatement;

  constructor(connection: SqliteConnection) {
    this.#sql = preparedStatements(connection);
  }

  append(records: readonly OutboxRecord[]): void {
    const insert = this.#sql(
      `INSERT INTO pulsework_outbox (topic, ordered_by, payload, headers, added_ms) VALUES (?, ?, ?, ?, ${NOW})`,
    );
    for (const { topic, orderedBy, payload, headers } of records)
      insert.run(topic, orderedBy ?? null, payload, headers);
  }

  leader(): SqliteLeader {
    const row = this.#sql(
      `SELECT outbox_id, leader, host, process, until_ms - ${NOW} AS remaining_ms FROM pulsework_outbox_relay`,
    ).get();
    return {
      outboxId: String(row?.['outbox_id']),
      token: textOf(row?.['leader']),
      host: textOf(row?.['host']),
      processId: Number(row?.['process']),
      remainingMs: Number(row?.['remaining_ms']),
    };
  }

  /** @returns the leader's token: nobody else has it, nor will */
  lead(host: string, processId: number, leaseMs: number): string {
    const token = String(this.#sql('SELECT lower(hex(randomblob(16))) AS token').get()?.['token']);
    this.#sql(`UPDATE pulsework_outbox_relay SET leader = ?, host = ?, process = ?, until_ms = ${NOW} + ?`).run(
      token,
      host,
      processId,
      leaseMs,
    );
    return token;
  }

  renew(leaseMs: number): void {
    this.#sql(`UPDATE pulsework_outbox_relay SET until_ms = ${NOW} + ?`).run(leaseMs);
  }

  giveUp(token: string): void {
    this.#sql('UPDATE pulsework_outbox_relay SET leader = NULL, until_ms = 0 WHERE leader = ?').run(token);
  }

  claimed(): readonly ClaimedRow[] {
    const sql = `SELECT ${COLUMNS}, number FROM pulsework_outbox WHERE number IS NOT NULL ORDER BY number`;
    return this.#sql(sql).all().map(claimedRow);
  }

  /** Whether anything waits, for a look that needs no right to write. */
  hasWaiting(): boolean {
    const sql = 'SELECT 1 FROM pulsework_outbox WHERE number IS NULL AND refused_ms IS NULL LIMIT 1';
    return this.#sql(sql).get() !== undefined;
  }

  claim({ limit, exceptTopics, nowMs }: Parameters<OutboxLead['claim']>[0]): readonly ClaimedRow[] {
    const rows = this.#sql(
      `SELECT ${COLUMNS} FROM pulsework_outbox o
       WHERE number IS NULL AND refused_ms IS NULL AND topic NOT IN (SELECT value FROM json_each(?)) AND NOT EXISTS (
         SELECT 1 FROM pulsework_outbox r
         WHERE r.refused_ms IS NOT NULL AND r.topic = o.topic AND r.ordered_by = o.ordered_by)
       ORDER BY id LIMIT ?`,
    ).all(JSON.stringify(exceptTopics), limit);
    if (rows.length === 0) return [];
    const last = Number(this.#sql('SELECT last_number FROM pulsework_outbox_relay').get()?.['last_number']);
    const first = nextOutboxNumber(last, nowMs);
    this.#sql('UPDATE pulsework_outbox_relay SET last_number = ?').run(first + rows.length - 1);
    const number = this.#sql('UPDATE pulsework_outbox SET number = ? WHERE id = ?');
    return rows.map((row, place) => {
      number.run(first + place, row['id'] as number);
      return { ...outboxRow(row), number: first + place };
    });
  }

  delete(ids: readonly number[]): void {
    this.#sql('DELETE FROM pulsework_outbox WHERE id IN (SELECT value FROM json_each(?))').run(JSON.stringify(ids));
  }

  refuse(id: number, reason: string): void {
    const head = this.#sql('SELECT topic, ordered_by, number FROM pulsework_outbox WHERE id = ?').get(id);
    if (head === undefined) return;
    const { topic = null, ordered_by: orderedBy = null, number = null } = head;
    this.#sql('UPDATE pulsework_outbox SET number = NULL WHERE topic = ? AND ordered_by = ? AND number > ?').run(
      topic,
      orderedBy,
      number,
    );
    this.#sql(`UPDATE pulsework_outbox SET number = NULL, refused_ms = ${NOW}, reason = ? WHERE id = ?`).run(
      reason,
      id,
    );
  }

  summary(): OutboxSummary {
    const oldest = this.#sql(
      'SELECT added_ms FROM pulsework_outbox WHERE refused_ms IS NULL ORDER BY id LIMIT 1',
    ).get();
    const refused = this.#sql('SELECT count(*) AS rows FROM pulsework_outbox WHERE refused_ms IS NOT NULL').get();
    const waiting = this.#sql(
      'SELECT count(*) AS rows FROM (SELECT 1 FROM pulsework_outbox WHERE refused_ms IS NULL LIMIT ?)',
    ).get(MAX_WAITING_COUNTED);
    return {
      waiting: Number(waiting?.['rows']),
      oldestMs: oldest === undefined ? undefined : Number(oldest['added_ms']),
      refused: Number(refused?.['rows']),
    };
  }

  refused(limit: number): readonly RefusedRow[] {
    const sql = `SELECT ${COLUMNS}, reason, refused_ms FROM pulsework_outbox WHERE refused_ms IS NOT NULL ORDER BY id LIMIT ?`;
    return this.#sql(sql)
      .all(limit)
      .map((row) => ({ ...outboxRow(row), reason: String(row['reason']), refusedMs: Number(row['refused_ms']) }));
  }

  release(id: number): boolean {
    const sql = 'UPDATE pulsework_outbox SET refused_ms = NULL, reason = NULL WHERE id = ? AND refused_ms IS NOT NULL';
    return this.#sql(sql).run(id) > 0;
  }

  skip(id: number): boolean {
    return this.#sql('DELETE FROM pulsework_outbox WHERE id = ? AND refused_ms IS NOT NULL').run(id) > 0;
  }
}

function claimedRow(row: SqliteRow): ClaimedRow {
  return { ...outboxRow(row), number: Number(row['number']) };
}

function outboxRow(row: SqliteRow): OutboxRow {
  const { id, topic, ordered_by: orderedBy, payload, headers } = row;
  return {
    id: Number(id),
    topic: String(topic),
    orderedBy: textOf(orderedBy),
    payload: payload instanceof Uint8Array ? payload : null,
    headers: String(headers),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
