// From entries of a journal to what is told of them. Pure.
import type { CommandKind, JournalEntry } from '../core/workflow-journal.js';
import type { WorkflowProgress } from '../ports/workflow-progress.js';
import type { WorkflowRecord } from '../ports/workflow-store.js';

/** What an entry does not say of its command. */
export interface CommandFacts {
  readonly at: number;
  readonly kind: CommandKind;
  readonly name: string;
  /** When the method asked for it. */
  readonly askedMs: number;
  /** When its last attempt began. */
  readonly startedMs: number | undefined;
  readonly dueMs?: number | undefined;
  readonly attempts: number;
}

export type ProgressRecord = Pick<WorkflowRecord, 'name' | 'id' | 'run' | 'createdMs'>;

/**
 * @param facts of the command that the entry is of, as they were before it; of a command that is asked for they are not needed
 * @returns undefined for an entry whose command is not known
 */
export function progressOf(
  { name: workflow, id, run, createdMs }: ProgressRecord,
  entry: JournalEntry,
  facts: CommandFacts | undefined,
): WorkflowProgress | undefined {
  const about = { workflow, id, run, atMs: entry.atMs };
  switch (entry.kind) {
    case 'command': {
      const { at, command, name, dueMs } = entry;
      return { ...about, kind: 'asked', at, command, name, ...(dueMs !== undefined && { untilMs: dueMs }) };
    }
    case 'cancelled':
    case 'resumed':
      return { ...about, kind: entry.kind };
    case 'ended': {
      const { status, error, atMs } = entry;
      return { ...about, kind: 'ended', status, durationMs: atMs - createdMs, ...(error !== undefined && { error }) };
    }
    case 'attempt':
    case 'attempt-failed':
    case 'completed':
    case 'failed':
    case 'stuck':
      return facts && { ...about, ...ofCommand(entry, facts) };
  }
}

type OfCommand = Extract<JournalEntry, { kind: 'attempt' | 'attempt-failed' | 'completed' | 'failed' | 'stuck' }>;

function ofCommand(entry: OfCommand, facts: CommandFacts) {
  const command = { at: facts.at, command: facts.kind, name: facts.name };
  const durationMs = entry.atMs - (facts.startedMs ?? facts.askedMs);
  const attempt = facts.attempts > 0 && { attempt: facts.attempts };
  switch (entry.kind) {
    case 'attempt': {
      const sent = entry.sent && ({ sent: true } as const);
      return { kind: 'attempt-started', ...command, attempt: entry.attempt, ...sent } as const;
    }
    case 'attempt-failed': {
      const { spent, nextMs, error } = entry;
      return { kind: entry.kind, ...command, attempt: entry.attempt, durationMs, spent, nextMs, error } as const;
    }
    case 'completed': {
      const isLate = facts.kind === 'sleep' || entry.timedOut === true;
      const late = isLate && facts.dueMs !== undefined && { lateMs: Math.max(0, entry.atMs - facts.dueMs) };
      return {
        kind: entry.kind,
        ...command,
        ...attempt,
        durationMs,
        ...late,
        ...(entry.timedOut && ({ timedOut: true } as const)),
      } as const;
    }
    case 'failed':
    case 'stuck':
      return { kind: entry.kind, ...command, ...attempt, durationMs, error: entry.error } as const;
  }
}

/** Tells a journal that is read without its method, one entry after the other. */
export class JournalTeller {
  readonly #byCommand = new Map<number, CommandFacts>();

  /** What the next entries say. */
  told(record: ProgressRecord, entries: readonly JournalEntry[]): readonly WorkflowProgress[] {
    return entries.flatMap((entry) => {
      const progress = progressOf(record, entry, this.#of(entry));
      this.#take(entry);
      return progress ?? [];
    });
  }

  /** Of the command of an entry, as they were before it. */
  #of(entry: JournalEntry): CommandFacts | undefined {
    return 'at' in entry ? this.#byCommand.get(entry.at) : undefined;
  }

  #take(entry: JournalEntry): void {
    if (entry.kind === 'command') {
      const { at, command: kind, name, atMs: askedMs, dueMs } = entry;
      this.#byCommand.set(at, { at, kind, name, askedMs, startedMs: undefined, dueMs, attempts: 0 });
    }
    const known = this.#of(entry);
    if (entry.kind === 'attempt' && known !== undefined)
      this.#byCommand.set(entry.at, { ...known, startedMs: entry.atMs, attempts: entry.attempt });
  }
}
