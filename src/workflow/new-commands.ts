// From what the method has asked for to what is written down for it, and what is due of it when.
import { PulseworkError, toError } from '../core/errors.js';
import type { CommandEntry, JournalEntry, WorkflowWait } from '../core/workflow-journal.js';
import { journalError } from '../core/workflow-journal.js';
import type { OutgoingRow } from '../ports/workflow-store.js';
import type { ActivationParts } from './activation-parts.js';
import type { Command } from './command.js';
import type { Execution } from './execution.js';
import { unansweredEntry } from './remote-steps.js';
import type { StepFacts } from './step-end.js';
import { messageIdOf } from './workflow-ids.js';

type Parts = Pick<ActivationParts, 'clock' | 'rows' | 'onChild'>;

export interface NewEntries {
  readonly commands: readonly CommandEntry[];
  readonly outgoing: readonly OutgoingRow[];
  /** Of commands that are done by being written down. */
  readonly settled: readonly JournalEntry[];
}

/** For commands that have no entry yet, and for children that nobody waits for any more. */
export async function newEntries(execution: Execution, parts: Parts): Promise<NewEntries> {
  const asked = execution.commands.filter(({ recorded }) => !recorded);
  const nowMs = parts.clock.now();
  const outgoing: OutgoingRow[] = [];
  const settled: JournalEntry[] = [];
  for (const command of asked) {
    if (command.kind !== 'child' && command.kind !== 'publish') continue;
    const { at, work } = command;
    if (work.command === 'child') parts.onChild(work.child.name);
    try {
      outgoing.push(await messageOf(execution, command, parts));
      if (command.kind === 'publish') settled.push({ kind: 'completed', at, atMs: nowMs });
    } catch (error) {
      if (!(error instanceof PulseworkError)) throw error;
      settled.push({ kind: 'failed', at, atMs: nowMs, error: journalError(toError(error)) });
    }
  }
  // One that could not be started needs no end.
  const refused = new Set(settled.flatMap((entry) => (entry.kind === 'failed' ? entry.at : [])));
  const left = execution.abandoned.splice(0).filter(({ at }) => !refused.has(at));
  for (const command of left) outgoing.push(childCancel(execution, command, parts));
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
  parts: Pick<Parts, 'rows'>,
): Promise<OutgoingRow> {
  const messageId = messageIdOf(execution, at);
  if (work.command === 'publish') return parts.rows.message(work.publish, messageId);
  const { name, id, run } = execution.record;
  const { child } = work as Extract<Command['work'], { command: 'child' }>;
  const { input, attributes } = child;
  const parent = { name, id, run, at };
  const start = { v: 1, id: child.id, kind: 'start', input, attributes, parent } as const;
  return parts.rows.event(child.name, start, messageId);
}

function childCancel(execution: Execution, { at, work }: Command, parts: Parts): OutgoingRow {
  const { child } = work as Extract<Command['work'], { command: 'child' }>;
  const messageId = messageIdOf(execution, `${at}/cancel`);
  return parts.rows.event(child.name, { v: 1, id: child.id, kind: 'cancel', eventId: messageId }, messageId);
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

/** @param runs it is a step that runs here: it is over when its time limit has made it so */
export function waitOf(command: Command, runs: boolean): WorkflowWait {
  const { kind, name } = command;
  const untilMs = endOf(command, runs);
  return { command: kind, name, ...(untilMs !== undefined && Number.isFinite(untilMs) && { untilMs }) };
}

function endOf({ dueMs, nextMs, startedMs = 0, step, isSent }: Command, runs: boolean): number | undefined {
  if (step === undefined || isSent) return dueMs;
  if (!runs) return nextMs;
  // One that does not end when it is told to is given up after as long again.
  return step.timeoutMs === undefined ? undefined : startedMs + 2 * step.timeoutMs;
}
