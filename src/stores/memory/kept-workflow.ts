// One workflow as the store in memory keeps it, and what a write makes of it.
import { hasEnded } from '../../core/workflow-journal.js';
import type { JournalEntry } from '../../core/workflow-journal.js';
import type { WorkflowState } from '../../ports/workflow-state.js';
import { CONSUMED_IDS_KEPT, changedState, newState } from '../../ports/workflow-state.js';
import type {
  InboxEvent,
  NewWorkflow,
  WorkflowFilter,
  WorkflowKey,
  WorkflowRecord,
  WorkflowWrite,
  WriteAnswer,
} from '../../ports/workflow-store.js';

export interface KeptWorkflow {
  readonly key: WorkflowKey;
  /** Without its wake time, which is beside it. */
  state: WorkflowState;
  journal: JournalEntry[];
  inbox: InboxEvent[];
  /** In order of arrival: of all events in the inbox, and of those consumed that are not forgotten. */
  readonly eventIds: Set<string>;
  /** Infinity: by an event only. */
  wakeMs: number;
  epoch: number;
  writeVersion: number;
  owner: string | undefined;
  leaseUntilMs: number;
  lastWrite: { readonly epoch: number; readonly answer: WriteAnswer } | undefined;
}

/** Signals of a workflow that has not begun. */
export interface KeptSignals {
  events: { readonly event: InboxEvent; readonly untilMs: number }[];
}

/** A place in the order of wake times. */
export interface Wake {
  readonly wakeMs: number;
  readonly text: string;
  readonly kept: KeptWorkflow;
}

/** Two keys never have the same text: it holds where the name ends. */
export function keyText({ name, id }: WorkflowKey): string {
  return `${name.length}:${name}${id}`;
}

export function wakeOf(kept: KeptWorkflow): Wake {
  return { wakeMs: kept.wakeMs, text: keyText(kept.key), kept };
}

export function compareWakes(a: Wake, b: Wake): number {
  return a.wakeMs - b.wakeMs || (a.text < b.text ? -1 : a.text > b.text ? 1 : 0);
}

export function newWorkflow(key: WorkflowKey, workflow: NewWorkflow, nowMs: number): KeptWorkflow {
  const { name, id } = key;
  return {
    key: { name, id },
    state: newState(key, workflow, nowMs),
    journal: [],
    inbox: [],
    eventIds: new Set(),
    wakeMs: Infinity,
    epoch: 0,
    writeVersion: 0,
    owner: undefined,
    leaseUntilMs: -Infinity,
    lastWrite: undefined,
  };
}

/** Does to `kept` what an accepted write says; the lease and outgoing messages are not its business. */
export function changeWorkflow(kept: KeptWorkflow, { change, entries, consumed, nowMs }: WorkflowWrite): void {
  kept.state = changedState(kept.state, change, nowMs);
  kept.journal.push(...entries);
  kept.inbox = kept.inbox.filter(({ seq }) => !consumed.includes(seq));
  if (change.status === 'continued') {
    kept.journal = [];
    forgetConsumed(kept);
  }
  if (!hasEnded(kept.state.status)) return;
  kept.inbox = [];
  kept.eventIds.clear();
}

function forgetConsumed({ eventIds, inbox }: KeptWorkflow): void {
  const unread = new Set(inbox.map(({ eventId }) => eventId));
  const consumed = [...eventIds].filter((id) => !unread.has(id));
  for (const id of consumed.slice(0, -CONSUMED_IDS_KEPT)) eventIds.delete(id);
}

export function recordOf({ state, wakeMs }: KeptWorkflow): WorkflowRecord {
  return wakeMs === Infinity ? state : { ...state, wakeMs };
}

export function matches(record: WorkflowRecord, filter: WorkflowFilter): boolean {
  const { name, status, attributes = {}, createdFromMs = -Infinity, createdBeforeMs = Infinity, after } = filter;
  if (name !== undefined && record.name !== name) return false;
  if (status !== undefined && record.status !== status) return false;
  if (record.createdMs < createdFromMs || record.createdMs >= createdBeforeMs) return false;
  if (after !== undefined && !isBehind(record, after)) return false;
  return Object.entries(attributes).every(([key, value]) => record.attributes[key] === value);
}

type Place = Pick<WorkflowRecord, 'createdMs' | 'name' | 'id'>;

function isBehind(record: Place, after: Place): boolean {
  if (record.createdMs !== after.createdMs) return record.createdMs > after.createdMs;
  if (record.name !== after.name) return record.name > after.name;
  return record.id > after.id;
}
