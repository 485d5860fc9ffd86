// What a workflow writes down of itself, as plain data that survives JSON. A journal is only ever added to: replaying the
// method over it brings the workflow back to where it stood.
import { cutStack, errorMessage, errorName, errorStack } from './failure-report.js';
import { isError } from './errors.js';

/**
 * `ended` ones are final. `blocked`: the code does not fit the journal; it goes on after a corrected deploy. `stuck`: a
 * compensation gave up; it goes on after `resume`.
 */
export type WorkflowStatus = 'running' | 'blocked' | 'stuck' | WorkflowEndStatus;
export type WorkflowEndStatus = 'completed' | 'failed' | 'cancelled' | 'terminated';

export const WORKFLOW_STATUSES = [
  'running',
  'blocked',
  'stuck',
  'completed',
  'failed',
  'cancelled',
  'terminated',
] as const satisfies readonly WorkflowStatus[];

export function hasEnded(status: WorkflowStatus): status is WorkflowEndStatus {
  return status !== 'running' && status !== 'blocked' && status !== 'stuck';
}

/** What the method can ask for that is written down. `compensate` is asked for by the machine, after the method has failed. */
export type CommandKind = 'step' | 'compensate' | 'sleep' | 'signal' | 'child' | 'publish' | 'patched';

/** An error as a journal keeps it. */
export interface JournalError {
  readonly name: string;
  readonly message: string;
  readonly code?: string | undefined;
  readonly stack?: string | undefined;
}

/** Times are epoch milliseconds; `at` is the number of the command, in the order in which the method asked. */
export type JournalEntry =
  /** The method asked for something. */
  | {
      readonly kind: 'command';
      readonly at: number;
      readonly command: CommandKind;
      readonly name: string;
      readonly atMs: number;
      /** When a sleep is over, or a signal is waited for no longer. */
      readonly dueMs?: number | undefined;
      /** The id of a child. */
      readonly child?: string | undefined;
    }
  /**
   * A step is about to run. Without an entry of the step behind it, how it ended is unknown: it is in doubt. `sent`: it runs
   * elsewhere, and its work is sent with this entry.
   */
  | {
      readonly kind: 'attempt';
      readonly at: number;
      readonly attempt: number;
      readonly atMs: number;
      readonly sent?: true | undefined;
    }
  /** It failed and is tried again. `spent`: it counts against `maxDeliveries`. */
  | {
      readonly kind: 'attempt-failed';
      readonly at: number;
      readonly attempt: number;
      readonly atMs: number;
      readonly spent: boolean;
      readonly nextMs: number;
      readonly error: JournalError;
    }
  /** A command has its result; absent where that is `undefined`. `timedOut`: a signal did not come. */
  | {
      readonly kind: 'completed';
      readonly at: number;
      readonly atMs: number;
      readonly value?: unknown;
      readonly timedOut?: true | undefined;
    }
  /** A command failed for good. */
  | { readonly kind: 'failed'; readonly at: number; readonly atMs: number; readonly error: JournalError }
  /** A cancellation reached the method. */
  | { readonly kind: 'cancelled'; readonly atMs: number }
  /** A compensation gave up: the workflow is stuck. */
  | { readonly kind: 'stuck'; readonly at: number; readonly atMs: number; readonly error: JournalError }
  /** A person has repaired what kept it stuck: the compensation has all its attempts again. */
  | { readonly kind: 'resumed'; readonly atMs: number }
  | {
      readonly kind: 'ended';
      readonly atMs: number;
      readonly status: WorkflowEndStatus;
      readonly value?: unknown;
      readonly error?: JournalError | undefined;
    };

export type CommandEntry = Extract<JournalEntry, { kind: 'command' }>;

/** Something that a person may look at: what the workflow waits for now. */
export interface WorkflowWait {
  readonly command: CommandKind;
  readonly name: string;
  /** When the wait is over by itself; absent where it has no end. */
  readonly untilMs?: number | undefined;
}

export function journalError(error: unknown): JournalError {
  if (!isError(error)) return { name: 'Error', message: `a value that is no Error was thrown: ${String(error)}` };
  const { code } = error as { readonly code?: unknown };
  return {
    name: errorName(error),
    message: errorMessage(error),
    ...(typeof code === 'string' && { code }),
    stack: cutStack(errorStack(error)),
  };
}
