// The SQL of the tables of workflows: one place that knows them. Each is to be called in a transaction. Values are JSON; what
// is searched for stands in columns beside it.
import { storedText } from '../../core/stored-text.js';
import type { JournalEntry, WorkflowStatus } from '../../core/workflow-journal.js';
import type { WorkflowCount } from '../../ports/workflow-progress.js';
import type {
  DueQuestion,
  DueWorkflow,
  InboxEvent,
  OutgoingRequest,
  OutgoingRow,
  TakenOutgoing,
  WorkflowFilter,
  WorkflowKey,
  WorkflowRecord,
} from '../../ports/workflow-store.js';
import type { WorkflowState } from '../../ports/workflow-state.js';
import { preparedStatements } from './prepared-statements.js';
import type { SqliteConnection, SqliteRow, SqliteStatement, SqliteValue } from './sqlite-driver.js';

/** One row of the table of workflows. */
export interface WorkflowRow {
  readonly number: number;
  readonly state: WorkflowState;
  readonly wakeMs: number | undefined;
  readonly epoch: number;
  readonly owner: string | undefined;
  readonly untilMs: number;
  readonly writeVersion: number;
  readonly lastEpoch: number;
  readonly wasReleased: boolean;
}

const COLUMNS = 'number, state, wake_ms, epoch, owner, until_ms, write_version, last_epoch, was_released';

export class WorkflowStatements {
  readonly #sql: (text: string) => SqliteStatement;

  constructor(connection: SqliteConnection) {
    this.#sql = preparedStatements(connection);
  }

  find({ name, id }: WorkflowKey): WorkflowRow | undefined {
    const sql = `SELECT ${COLUMNS} FROM pulsework_workflow WHERE name = ? AND id = ?`;
    const row = this.#sql(sql).get(storedText(name), storedText(id));
    return row && workflowRow(row);
  }

  /** @returns its number */
  insert(state: WorkflowState, wakeMs: number): number {
    const { name, id, status, createdMs, attributes } = state;
    this.#sql(
      `INSERT INTO pulsework_workflow (name, id, status, state, created_ms, wake_ms, epoch, until_ms, write_version, last_epoch, was_released)
       VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0)`,
    ).run(storedText(name), storedText(id), status, JSON.stringify(state), createdMs, wakeMs);
    const number = this.find(state)?.number ?? 0;
    for (const [key, value] of Object.entries(attributes))
      this.#sql('INSERT INTO pulsework_workflow_attribute VALUES (?, ?, ?)').run(
        number,
        storedText(key),
        storedText(value),
      );
    return number;
  }

  /** Everything of a row that a write changes. */
  update(number: number, row: Omit<WorkflowRow, 'number'>): void {
    const { state, wakeMs, epoch, owner, untilMs, writeVersion, lastEpoch, wasReleased } = row;
    this.#sql(
      `UPDATE pulsework_workflow SET status = ?, state = ?, ended_ms = ?, wake_ms = ?, epoch = ?, owner = ?, until_ms = ?,
       write_version = ?, last_epoch = ?, was_released = ? WHERE number = ?`,
    ).run(
      state.status,
      JSON.stringify(state),
      state.endedMs ?? null,
      wakeMs ?? null,
      epoch,
      owner ?? null,
      untilMs,
      writeVersion,
      lastEpoch,
      wasReleased ? 1 : 0,
      number,
    );
  }

  /** Of a lease. */
  hold(number: number, epoch: number, owner: string | undefined, untilMs: number): void {
    const sql =
      'UPDATE pulsework_workflow SET epoch = ?, owner = coalesce(?, owner), until_ms = ?, wake_ms = ? WHERE number = ?';
    this.#sql(sql).run(epoch, owner ?? null, untilMs, untilMs, number);
  }

  wake(number: number, wakeMs: number): void {
    this.#sql('UPDATE pulsework_workflow SET wake_ms = ? WHERE number = ?').run(wakeMs, number);
  }

  journal(number: number): readonly JournalEntry[] {
    const rows = this.#sql('SELECT entry FROM pulsework_workflow_entry WHERE workflow = ? ORDER BY seq').all(number);
    return rows.map((row) => JSON.parse(String(row['entry'])) as JournalEntry);
  }

  addEntries(number: number, entries: readonly JournalEntry[]): void {
    const last = this.#sql('SELECT max(seq) AS seq FROM pulsework_workflow_entry WHERE workflow = ?').get(number);
    let seq = Number(last?.['seq'] ?? 0);
    for (const entry of entries)
      this.#sql('INSERT INTO pulsework_workflow_entry VALUES (?, ?, ?)').run(number, ++seq, JSON.stringify(entry));
  }

  removeEntries(number: number): void {
    this.#sql('DELETE FROM pulsework_workflow_entry WHERE workflow = ?').run(number);
  }

  hasEvent(number: number, eventId: string): boolean {
    const sql = 'SELECT 1 FROM pulsework_workflow_event WHERE workflow = ? AND event_id = ?';
    return this.#sql(sql).get(number, storedText(eventId)) !== undefined;
  }

  addEvent(number: number, event: Omit<InboxEvent, 'seq'>): void {
    const sql = 'INSERT INTO pulsework_workflow_event (workflow, event_id, event) VALUES (?, ?, ?)';
    this.#sql(sql).run(number, storedText(event.eventId), JSON.stringify(event));
  }

  events(number: number, afterSeq: number): readonly InboxEvent[] {
    const sql = `SELECT seq, event FROM pulsework_workflow_event
      WHERE workflow = ? AND event IS NOT NULL AND seq > ? ORDER BY seq`;
    return this.#sql(sql)
      .all(number, afterSeq)
      .map((row) => ({ ...(JSON.parse(String(row['event'])) as InboxEvent), seq: Number(row['seq']) }));
  }

  newestEvent(number: number): number {
    const sql = 'SELECT max(seq) AS seq FROM pulsework_workflow_event WHERE workflow = ? AND event IS NOT NULL';
    return Number(this.#sql(sql).get(number)?.['seq'] ?? 0);
  }

  /** Their ids stay, to know them by. */
  consume(number: number, seqs: readonly number[]): void {
    for (const seq of seqs)
      this.#sql('UPDATE pulsework_workflow_event SET event = NULL WHERE workflow = ? AND seq = ?').run(number, seq);
  }

  /** The ids of those consumed before the newest `kept` of them. */
  forgetConsumed(number: number, kept: number): void {
    const consumed = 'FROM pulsework_workflow_event WHERE workflow = ? AND event IS NULL';
    const sql = `DELETE ${consumed} AND seq <= (SELECT seq ${consumed} ORDER BY seq DESC LIMIT 1 OFFSET ?)`;
    this.#sql(sql).run(number, number, kept);
  }

  removeEvents(number: number): void {
    this.#sql('DELETE FROM pulsework_workflow_event WHERE workflow = ?').run(number);
  }

  /** @returns false when one of that id is kept already */
  keepSignal({ name, id }: WorkflowKey, event: Omit<InboxEvent, 'seq'>, untilMs: number): boolean {
    const key = [storedText(name), storedText(id)] as const;
    const known = 'SELECT 1 FROM pulsework_workflow_signal WHERE name = ? AND id = ? AND event_id = ? AND until_ms > ?';
    if (this.#sql(known).get(...key, storedText(event.eventId), event.atMs) !== undefined) return false;
    const sql = 'INSERT INTO pulsework_workflow_signal (name, id, event_id, event, until_ms) VALUES (?, ?, ?, ?, ?)';
    this.#sql(sql).run(...key, storedText(event.eventId), JSON.stringify(event), untilMs);
    return true;
  }

  /** Those whose time is not over, taken out. */
  takeSignals({ name, id }: WorkflowKey, nowMs: number): readonly Omit<InboxEvent, 'seq'>[] {
    const key = [storedText(name), storedText(id)] as const;
    const sql = 'SELECT event FROM pulsework_workflow_signal WHERE name = ? AND id = ? AND until_ms > ? ORDER BY seq';
    const rows = this.#sql(sql).all(...key, nowMs);
    this.#sql('DELETE FROM pulsework_workflow_signal WHERE name = ? AND id = ?').run(...key);
    return rows.map((row) => JSON.parse(String(row['event'])) as Omit<InboxEvent, 'seq'>);
  }

  due({ names, beforeMs, limit }: DueQuestion): readonly DueWorkflow[] {
    const marks = names.map(() => '?').join(', ');
    const sql = `SELECT state, wake_ms FROM pulsework_workflow
      WHERE wake_ms IS NOT NULL AND wake_ms <= ? AND name IN (${marks}) ORDER BY wake_ms, name, id LIMIT ?`;
    return this.#sql(sql)
      .all(beforeMs, ...names.map(storedText), limit)
      .map((row) => {
        const { name, id } = JSON.parse(String(row['state'])) as WorkflowKey;
        return { name, id, wakeMs: Number(row['wake_ms']) };
      });
  }

  addOutgoing(key: WorkflowKey, rows: readonly OutgoingRow[]): void {
    const sql = `INSERT INTO pulsework_workflow_outgoing (message_id, key, message, until_ms) VALUES (?, ?, ?, 0)
      ON CONFLICT (message_id) DO NOTHING`;
    for (const { messageId, message } of rows)
      this.#sql(sql).run(storedText(messageId), outgoingKey(key), JSON.stringify({ messageId, message }));
  }

  takeOutgoing({ owner, nowMs, leaseMs, limit, exceptWorkflows = [] }: OutgoingRequest): readonly TakenOutgoing[] {
    const isOthers = (table: string): string =>
      `${table}.owner IS NOT NULL AND ${table}.owner <> ? AND ${table}.until_ms > ?`;
    const sql = `SELECT seq, key, message FROM pulsework_workflow_outgoing AS own
      WHERE own.key NOT IN (SELECT value FROM json_each(?)) AND NOT (${isOthers('own')}) AND NOT EXISTS (SELECT 1 FROM pulsework_workflow_outgoing AS earlier
        WHERE earlier.key = own.key AND earlier.seq < own.seq AND ${isOthers('earlier')}) ORDER BY seq LIMIT ?`;
    const except = JSON.stringify(exceptWorkflows.map(outgoingKey));
    const rows = this.#sql(sql).all(except, owner, nowMs, owner, nowMs, limit);
    for (const row of rows)
      this.#sql('UPDATE pulsework_workflow_outgoing SET owner = ?, until_ms = ? WHERE seq = ?').run(
        owner,
        nowMs + leaseMs,
        Number(row['seq']),
      );
    return rows.map((row) => {
      const [name, id] = JSON.parse(String(row['key'])) as [string, string];
      return { key: { name, id }, ...(JSON.parse(String(row['message'])) as OutgoingRow) };
    });
  }

  hasOutgoing(): boolean {
    return this.#sql('SELECT 1 FROM pulsework_workflow_outgoing LIMIT 1').get() !== undefined;
  }

  removeOutgoing(messageIds: readonly string[]): void {
    for (const id of messageIds)
      this.#sql('DELETE FROM pulsework_workflow_outgoing WHERE message_id = ?').run(storedText(id));
  }

  list(filter: WorkflowFilter): readonly WorkflowRecord[] {
    const { name, status, createdFromMs, createdBeforeMs, after, attributes = {}, limit } = filter;
    const bounds: [sql: string, values: readonly SqliteValue[]][] = [];
    if (name !== undefined) bounds.push(['name = ?', [storedText(name)]]);
    if (status !== undefined) bounds.push(['status = ?', [status]]);
    if (createdFromMs !== undefined) bounds.push(['created_ms >= ?', [createdFromMs]]);
    if (createdBeforeMs !== undefined) bounds.push(['created_ms < ?', [createdBeforeMs]]);
    if (after !== undefined)
      bounds.push([
        '(created_ms, name, id) > (?, ?, ?)',
        [after.createdMs, storedText(after.name), storedText(after.id)],
      ]);
    for (const [key, value] of Object.entries(attributes))
      bounds.push([
        'number IN (SELECT workflow FROM pulsework_workflow_attribute WHERE key = ? AND value = ?)',
        [storedText(key), storedText(value)],
      ]);
    const where = bounds.length === 0 ? '' : `WHERE ${bounds.map(([sql]) => sql).join(' AND ')}`;
    const sql = `SELECT ${COLUMNS} FROM pulsework_workflow ${where} ORDER BY created_ms, name, id LIMIT ?`;
    const values = bounds.flatMap(([, own]) => own);
    return this.#sql(sql)
      .all(...values, limit)
      .map((row) => recordOf(workflowRow(row)));
  }

  /** Of the index of statuses alone. */
  count(names: readonly string[]): readonly WorkflowCount[] {
    const sql = `SELECT name, status, count(*) AS count FROM pulsework_workflow
      WHERE status IN ('running', 'blocked', 'stuck') GROUP BY status, name`;
    const byText = new Map(names.map((name) => [storedText(name), name]));
    return this.#sql(sql)
      .all()
      .flatMap((row) => {
        const name = byText.get(String(row['name']));
        const status = row['status'] as WorkflowStatus;
        return name === undefined ? [] : { name, status, count: Number(row['count']) };
      });
  }

  /** @returns how many it has forgotten */
  purge(nowMs: number, endedBeforeMs: number, limit: number): number {
    this.#sql('DELETE FROM pulsework_workflow_signal WHERE until_ms <= ?').run(nowMs);
    const sql = 'SELECT number FROM pulsework_workflow WHERE ended_ms IS NOT NULL AND ended_ms < ? LIMIT ?';
    const numbers = this.#sql(sql)
      .all(endedBeforeMs, limit)
      .map((row) => Number(row['number']));
    for (const number of numbers) {
      this.removeEntries(number);
      this.removeEvents(number);
      this.#sql('DELETE FROM pulsework_workflow_attribute WHERE workflow = ?').run(number);
      this.#sql('DELETE FROM pulsework_workflow WHERE number = ?').run(number);
    }
    return numbers.length;
  }
}

export function recordOf({ state, wakeMs }: WorkflowRow): WorkflowRecord {
  return wakeMs === undefined ? state : { ...state, wakeMs };
}

function outgoingKey({ name, id }: WorkflowKey): string {
  return JSON.stringify([name, id]);
}

function workflowRow(row: SqliteRow): WorkflowRow {
  const { wake_ms: wakeMs, owner } = row;
  return {
    number: Number(row['number']),
    state: JSON.parse(String(row['state'])) as WorkflowState,
    wakeMs: wakeMs === null || wakeMs === undefined ? undefined : Number(wakeMs),
    epoch: Number(row['epoch']),
    owner: typeof owner === 'string' ? owner : undefined,
    untilMs: Number(row['until_ms']),
    writeVersion: Number(row['write_version']),
    lastEpoch: Number(row['last_epoch']),
    wasReleased: Number(row['was_released']) === 1,
  };
}
