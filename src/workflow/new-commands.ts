// From what the method has asked for to what is written down for it, and what is due of it when.
import { toError } from '../core/errors.js';
import type { CommandEntry, JournalEntry, WorkflowWait } from '../core/workflow-journal.js';
import { journalError } from '../core/workflow-journal.js';
import type { OutgoingRow, WorkflowParent } from '../ports/workflow-store.js';
import type { ActivationParts } from './activation-parts.js';
import type { Command } from './command.js';
import type { Execution } from './execution.js';
import type { OutgoingRows } from './outgoing-rows.js';
import { unansweredEntry } from './remote-steps.js';
import type { StepFacts } from './step-end.js';
import { messageIdOf } from './workflow-ids.js';

type Parts = Pick<ActivationParts, 'clock' | 'newest' | 'onChild'>;

/** They are for people, and written down each time. */
const MAX_WAITS = 100;

export interface NewEntries {
  readonly commands: readonly CommandEntry[];
  readonly outgoing: readonly OutgoingRow[];
  /** Of commands that are done by being written down. */
  readonly settled: readonly JournalEntry[];
}

/** For commands that have no entry yet, and for children that nobody waits for any more. */
export async function newEntries(execution: Execution, rows: OutgoingRows, parts: Parts): Promise<NewEntries> {
  const asked = execution.commands.filter(({ recorded }) => !recorded);
  const nowMs = parts.clock.now();
  const outgoing: OutgoingRow[] = [];
  const settled: JournalEntry[] = [];
  for (const command of asked) {
    if (command.kind !== 'child' && command.kind !== 'publish') continue;
    const { at, work } = command;
    if (work.command === 'child') parts.onChild(work.child.name);
    try {
      outgoing.push(await messageOf(execution, command, rows, parts));
      if (command.kind === 'publish') settled.push({ kind: 'completed', at, atMs: nowMs });
    } catch (error) {
      settled.push({ kind: 'failed', at, atMs: nowMs, error: journalError(toError(error)) });
    }
  }
  for (const command of execution.abandoned.splice(0)) outgoing.push(...childCancel(execution, command, rows));
  return { commands: asked.map((command) => commandEntry(command, nowMs)), outgoing, settled };
}

function commandEntry({ at, name, work }: Command, atMs: number): CommandEntry {
  const entry = { kind: 'command', at, command: work.command, name, atMs } as const;
  if (work.command === 'child') return { ...entry, child: work.child.id };
  if (work.command === 'sleep') {
    const { until } = work;
    return { ...entry, dueMs: until instanceof Date ? until.getTime() : atMs + until };
  }
  if (work.command === 'signal' && work.timeoutMs !== undefined) return { ...entry, dueMs: atMs + work.timeoutMs };
  return entry;
}

/** What a publish, or the start of a child, sends. @throws PulseworkError PUBLISH_REFUSED when it can never be sent */
async function messageOf(
  execution: Execution,
  { at, work }: Command,
  rows: OutgoingRows,
  parts: Pick<Parts, 'newest'>,
): Promise<OutgoingRow> {
  const messageId = messageIdOf(execution, at);
  if (work.command === 'publish') return rows.message(work.publish, messageId);
  const { child } = work as Extract<Command['work'], { command: 'child' }>;
  const { input, attributes } = child;
  const parent = parentIn(execution, at);
  const version = parts.newest(child.name)?.options.version;
  const start = { v: 1, id: child.id, kind: 'start', version, input, attributes, parent } as const;
  return rows.event(child.name, start, messageId);
}

/** Nothing where it cannot be sent: then the start of that child could not either. */
function childCancel(execution: Execution, { at, work }: Command, rows: OutgoingRows): OutgoingRow[] {
  const { child } = work as Extract<Command['work'], { command: 'child' }>;
  const eventId = messageIdOf(execution, `${at}/cancel`);
  const parent = parentIn(execution, at);
  try {
    return [rows.event(child.name, { v: 1, id: child.id, kind: 'cancel', eventId, parent }, eventId)];
  } catch {
    return [];
  }
}

/** @param at of the command that started the child */
function parentIn({ record: { name, id, run } }: Execution, at: number): WorkflowParent {
  return { name, id, run, at };
}

/** The wait that was over first. */
export function dueEntry(execution: Execution, facts: StepFacts): JournalEntry | undefined {
  const { nowMs } = facts;
  const due = execution.open.filter(({ dueMs = Infinity }) => dueMs <= nowMs);
  const first = due.reduce<Command | undefined>(
    (earliest, command) => ((command.dueMs ?? 0) < (earliest?.dueMs ?? Infinity) ? command : earliest),
    undefined,
  );
  if (first === undefined) return undefined;
  if (first.step !== undefined) return unansweredEntry(first, facts);
  const entry = { kind: 'completed', at: first.at, atMs: nowMs } as const;
  return first.kind === 'signal' ? { ...entry, timedOut: true } : entry;
}

/** When the next wait is over, or the next step is to run. @param which of the steps @default all */
export function wakeMsOf(execution: Execution, which: (command: Command) => boolean = () => true): number | undefined {
  const times = execution.open.flatMap((command) => {
    if (command.step === undefined || command.isSent) return command.dueMs ?? [];
    return command.stuck || !which(command) ? [] : command.nextMs;
  });
  return times.length === 0 ? undefined : Math.max(0, Math.min(...times));
}

/** The step that is left alone longest, of those that have left nothing behind again and again. */
export function lostStep(execution: Execution, nowMs: number): Command | undefined {
  const waiting = execution.open.filter(({ inDoubt, isSent, nextMs }) => inDoubt && !isSent && nextMs > nowMs);
  return waiting.toSorted((one, other) => other.nextMs - one.nextMs)[0];
}

/** The first of what is waited for. @param runs a step that runs here: it is over when its time limit has made it so */
export function waitsOf(open: readonly Command[], runs: (command: Command) => boolean): readonly WorkflowWait[] {
  return open.slice(0, MAX_WAITS).map((command) => {
    const { kind, name } = command;
    const untilMs = endOf(command, runs(command));
    return { command: kind, name, ...(untilMs !== undefined && Number.isFinite(untilMs) && { untilMs }) };
  });
}

function endOf({ dueMs, nextMs, startedMs = 0, step, isSent }: Command, runs: boolean): number | undefined {
  if (step === undefined || isSent) return dueMs;
  if (!runs) return nextMs;
  // One that does not end when it is told to is given up after as long again.
  return step.timeoutMs === undefined ? undefined : startedMs + 2 * step.timeoutMs;
}
