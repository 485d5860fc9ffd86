// Rows of the tables of workflows, as values of the port and back. Values are JSON in columns of texts: whatever types of JSON the
// user's driver is set up to read in its own way stay out of it.
import { storedText } from '../../core/stored-text.js';
import type { JournalEntry, JournalError, WorkflowStatus, WorkflowWait } from '../../core/workflow-journal.js';
import type {
  InboxEvent,
  OutgoingRow,
  TakenOutgoing,
  WorkflowKey,
  WorkflowRecord,
  WorkflowSnapshot,
} from '../../ports/workflow-store.js';
import type { WorkflowState } from '../../ports/workflow-state.js';
import { keyColumn } from './key-column.js';
import type { PostgresRow } from './postgres-client.js';

/** What a record is made of. */
export const RECORD_COLUMNS =
  'beginning, version, run, run_started_ms, seed, input, status, waits, result, error, ended_ms, wake_ms';

/** What never changes of a workflow, in one column: all but what has its own. */
type Beginning = Omit<
  WorkflowState,
  'version' | 'run' | 'runStartedMs' | 'seed' | 'input' | 'status' | 'waits' | 'result' | 'error' | 'endedMs'
>;

/** Of the workflow, however long its name and id are. */
export function workflowKey({ name, id }: WorkflowKey): string {
  return keyColumn(JSON.stringify([name, id]));
}

export function attributeText(key: string, value: string): string {
  return keyColumn(JSON.stringify([key, value]));
}

/** `undefined` has no JSON: it is NULL. */
export function json(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** The values of a new workflow, by column; its key is not among them. */
export function newRow(
  state: WorkflowState,
  wakeMs: number,
): Readonly<Record<string, { value: unknown; type: string }>> {
  const { version, run, runStartedMs, seed, input, status, waits, ...beginning } = state;
  const { name, id, createdMs }: Beginning = beginning;
  const text = (value: string | null): { value: unknown; type: string } => ({ value, type: 'text' });
  const number = (value: number): { value: unknown; type: string } => ({ value, type: 'double precision' });
  return {
    name: text(storedText(name)),
    id: text(storedText(id)),
    beginning: text(JSON.stringify(beginning)),
    created_ms: number(createdMs),
    version: number(version),
    run: number(run),
    run_started_ms: number(runStartedMs),
    seed: text(JSON.stringify(seed)),
    input: text(json(input)),
    status: text(status),
    waits: text(JSON.stringify(waits)),
    wake_ms: number(wakeMs),
  };
}

export function recordOf(row: PostgresRow): WorkflowRecord {
  return {
    ...(JSON.parse(String(row['beginning'])) as Beginning),
    version: Number(row['version']),
    run: Number(row['run']),
    runStartedMs: Number(row['run_started_ms']),
    seed: JSON.parse(String(row['seed'])) as string,
    status: String(row['status']) as WorkflowStatus,
    waits: JSON.parse(String(row['waits'])) as readonly WorkflowWait[],
    ...present('input', row['input'], JSON.parse),
    ...present('result', row['result'], JSON.parse),
    ...present('error', row['error'], (text) => JSON.parse(text) as JournalError),
    ...present('endedMs', row['ended_ms'], Number),
    ...present('wakeMs', row['wake_ms'], Number),
  };
}

/** @param row with the columns of `journalText` and `inboxText`; without the first the journal is left out */
export function snapshotOf(record: WorkflowRecord, row: PostgresRow): WorkflowSnapshot {
  return { record, journal: listOf(row['journal']) as JournalEntry[], inbox: eventsOf(row['inbox']) };
}

/** The journal of the workflow `number` as one text: it may have many rows. */
export function journalText(entries: string, number: string): string {
  return `(SELECT string_agg(j.entry, ',' ORDER BY j.seq) FROM ${entries} j WHERE j.workflow = ${number})`;
}

export function inboxText(events: string, number: string): string {
  return `(SELECT string_agg('[' || i.seq || ',' || i.event || ']', ',' ORDER BY i.seq) FROM ${events} i
    WHERE i.workflow = ${number} AND i.event IS NOT NULL) AS inbox`;
}

function eventsOf(text: unknown): readonly InboxEvent[] {
  return (listOf(text) as [number, InboxEvent][]).map(([seq, event]) => ({ ...event, seq }));
}

function listOf(text: unknown): unknown[] {
  return typeof text === 'string' ? (JSON.parse(`[${text}]`) as unknown[]) : [];
}

export function eventOf(row: PostgresRow): InboxEvent {
  return { ...(JSON.parse(String(row['event'])) as InboxEvent), seq: Number(row['seq']) };
}

export function takenOutgoing(row: PostgresRow): TakenOutgoing {
  const [name, id] = JSON.parse(String(row['key'])) as [string, string];
  return { key: { name, id }, ...(JSON.parse(String(row['message'])) as OutgoingRow) };
}

/** Numbers come as such or as texts, as the user's driver is set up. */
function present<Name extends string, T>(name: Name, value: unknown, read: (text: string) => T): { [N in Name]?: T } {
  if (typeof value !== 'string' && typeof value !== 'number') return {};
  return { [name]: read(String(value)) } as { [N in Name]?: T };
}
