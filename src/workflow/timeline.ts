// The journal as people read it: a line for each thing that happened, with the time since the run began. Pure.
import { durationText } from '../core/duration-text.js';
import type { JournalError, WorkflowWait } from '../core/workflow-journal.js';
import { hasEnded } from '../core/workflow-journal.js';
import type { ProgressCommand, WorkflowProgress } from '../ports/workflow-progress.js';
import type { WorkflowRecord } from '../ports/workflow-store.js';
import { commandText } from './command.js';
import { JournalTeller } from './progress.js';
import type { WorkflowHistory } from './workflow-handle.js';

/** Below it a step began at once. */
const SOON_MS = 100;

interface Line {
  readonly atMs: number;
  readonly what: string;
  readonly how: string;
}

/**
 * Several lines of text that end without a line break: a title, and below it what happened when, by whom it was asked for and how it came out.
 * @param history as `workflows.history` gave it, also through JSON
 */
export function workflowTimeline({ record, journal }: WorkflowHistory): string {
  const story = new JournalTeller().told(record, journal);
  const began = { atMs: record.runStartedMs, what: record.run > 1 ? `run ${record.run} begins` : 'started', how: '' };
  const lines = [began, ...linesOf(story), ...standing(record)];
  return [title(record), '', ...columns(lines, record.runStartedMs)].join('\n');
}

function title({ name, id, version, status, createdMs, runStartedMs, endedMs }: WorkflowRecord): string {
  const end = endedMs === undefined ? '' : ` after ${durationText(endedMs - createdMs)}`;
  const began = new Date(runStartedMs).toISOString();
  return `${name} ${JSON.stringify(id)}, version ${version}, ${status}${end}; times since ${began}`;
}

/**
 * What was done at once when it was asked for is told as done; an attempt that ended with nothing in between is one line, and
 * one that another followed without an end says so.
 */
function linesOf(story: readonly WorkflowProgress[]): readonly Line[] {
  const nexts = nextOfEach(story);
  return story.flatMap((progress, i) => {
    const next = nexts[i];
    if (progress.kind === 'asked' && next !== undefined && isAtOnce(progress, next)) return [];
    if (progress.kind === 'attempt-started' && next?.kind === 'attempt-started') {
      const { atMs, attempt } = progress;
      return { atMs, what: whatOf(progress), how: `attempt ${attempt} begins and is cut short` };
    }
    if (progress.kind === 'attempt-started' && isSame(progress, story[i + 1])) return [];
    const before = story[i - 1];
    const isWhole = before?.kind === 'attempt-started' && isSame(progress, before);
    return lineOf(progress, isWhole ? before.atMs : progress.atMs);
  });
}

/** For each what happens next of the same command. */
function nextOfEach(story: readonly WorkflowProgress[]): readonly (WorkflowProgress | undefined)[] {
  const later = new Map<number, WorkflowProgress>();
  return story
    .toReversed()
    .map((progress) => {
      if (!('at' in progress)) return undefined;
      const next = later.get(progress.at);
      later.set(progress.at, progress);
      return next;
    })
    .toReversed();
}

/** A step is written down before it begins: of milliseconds in between nobody needs a line. */
function isAtOnce({ atMs }: WorkflowProgress, next: WorkflowProgress): boolean {
  return next.atMs - atMs <= (next.kind === 'attempt-started' ? SOON_MS : 0);
}

/** Two things of one command. */
function isSame(progress: WorkflowProgress, other: WorkflowProgress | undefined): boolean {
  return other !== undefined && 'at' in progress && 'at' in other && progress.at === other.at;
}

function lineOf(progress: WorkflowProgress, atMs: number): Line | [] {
  if ('command' in progress) return { atMs, what: whatOf(progress), how: howOf(progress) };
  switch (progress.kind) {
    case 'started':
    case 'activated':
    case 'waiting':
    case 'continued':
    case 'blocked':
      return [];
    case 'cancelled':
      return { atMs, what: 'cancelled', how: 'what it waited for rejects' };
    case 'resumed':
      return { atMs, what: 'resumed', how: 'by a person' };
    case 'ended':
      return { atMs, what: progress.status, how: progress.error === undefined ? '' : errorText(progress.error) };
  }
}

function whatOf({ command, name }: ProgressCommand): string {
  return commandText({ kind: command, name });
}

function howOf(progress: Extract<WorkflowProgress, ProgressCommand>): string {
  switch (progress.kind) {
    case 'asked':
      return askedText(progress);
    case 'attempt-started':
      return `attempt ${progress.attempt} ${progress.sent === true ? 'is sent' : 'begins'}`;
    case 'attempt-failed': {
      const { attempt, durationMs, error, nextMs, atMs, spent } = progress;
      const free = spent ? '' : ' (not counted)';
      const again = `again in ${durationText(Math.max(0, nextMs - atMs))}`;
      return `attempt ${attempt} failed after ${durationText(durationMs)}${free}, ${again}: ${errorText(error)}`;
    }
    case 'completed':
      return completedText(progress);
    case 'failed':
    case 'stuck': {
      const given = progress.kind === 'stuck' ? 'gave up and waits for a person' : 'failed for good';
      const by = progress.attempt === undefined ? '' : `attempt ${progress.attempt} `;
      return `${by}${given} after ${durationText(progress.durationMs)}: ${errorText(progress.error)}`;
    }
  }
}

function askedText({ command, untilMs, atMs }: Extract<WorkflowProgress, { kind: 'asked' }>): string {
  const forMs = untilMs === undefined ? '' : ` ${durationText(Math.max(0, untilMs - atMs))}`;
  switch (command) {
    case 'sleep':
      return `sleeps${forMs}`;
    case 'signal':
      return forMs === '' ? 'is waited for' : `is waited for, at most${forMs}`;
    case 'child':
      return 'starts';
    case 'patched':
      return 'taken';
    case 'step':
    case 'compensate':
    case 'publish':
      return 'asked for';
  }
}

function completedText(progress: Extract<WorkflowProgress, { kind: 'completed' }>): string {
  const { command, attempt, durationMs, lateMs = 0, timedOut } = progress;
  const took = durationText(durationMs);
  const late = lateMs > 0 ? `, ${durationText(lateMs)} late` : '';
  if (timedOut === true) return `did not come within ${took}${late}`;
  switch (command) {
    case 'sleep':
      return `is over${late}`;
    case 'signal':
      return `came after ${took}`;
    case 'publish':
      return 'recorded, to be sent';
    case 'child':
      return `completed after ${took}`;
    case 'step':
    case 'compensate':
    case 'patched':
      return attempt === undefined ? `done after ${took}` : `attempt ${attempt} done after ${took}`;
  }
}

/** How one stands that has not ended. */
function standing({ status, waits, error, runStartedMs }: WorkflowRecord): readonly Line[] {
  if (hasEnded(status)) return [];
  const now = (what: string, how: string): Line => ({ atMs: Number.NaN, what, how });
  if (error !== undefined) return [now(status, errorText(error))];
  return waits.map((wait) =>
    now(`waits for ${commandText({ kind: wait.command, name: wait.name })}`, until(wait, runStartedMs)),
  );
}

function until({ untilMs }: WorkflowWait, startMs: number): string {
  return untilMs === undefined ? '' : `until ${durationText(Math.max(0, untilMs - startMs))}`;
}

function errorText({ name, code, message }: JournalError): string {
  const [first = ''] = message.split('\n');
  return `${code ?? name}: ${first}`;
}

function columns(lines: readonly Line[], startMs: number): readonly string[] {
  const shown = lines.map(({ atMs, ...line }) => ({
    ...line,
    time: Number.isNaN(atMs) ? 'now' : durationText(Math.max(0, atMs - startMs)),
  }));
  const timeWidth = Math.max(...shown.map(({ time }) => time.length));
  const whatWidth = Math.max(...shown.map(({ what }) => what.length));
  return shown.map(({ time, what, how }) => `  ${time.padEnd(timeWidth)}  ${what.padEnd(whatWidth)}  ${how}`.trimEnd());
}
