// What happens to workflows, one thing at a time, as observers and listeners are told of it: always after it was recorded, so
// that nothing is told that a crash could take back. Results, payloads and inputs are left out: they are in the history.
import type {
  CommandKind,
  JournalError,
  WorkflowEndStatus,
  WorkflowStatus,
  WorkflowWait,
} from '../core/workflow-journal.js';

/** One thing that the method asked for: which command of the run, of what kind, and its name. */
export interface ProgressCommand {
  readonly at: number;
  readonly command: CommandKind;
  readonly name: string;
}

export type WorkflowProgress = {
  /** The workflow's name. */
  readonly workflow: string;
  readonly id: string;
  /** 1, and one more after each `continueAsNew`. */
  readonly run: number;
  /** Epoch milliseconds. */
  readonly atMs: number;
} & (
  | { readonly kind: 'started'; readonly version: number }
  /** A process has taken it up: it replays, and goes on. */
  | { readonly kind: 'activated' }
  /** `untilMs`: when a sleep is over, or a signal is waited for no longer. A `compensate` says that something is to be undone. */
  | (ProgressCommand & { readonly kind: 'asked'; readonly untilMs?: number | undefined })
  /** An attempt of a step, or of what undoes it, begins. `sent`: a handler has the work, and its answer is waited for. */
  | (ProgressCommand & {
      readonly kind: 'attempt-started';
      readonly attempt: number;
      readonly sent?: true | undefined;
    })
  /** It failed and is tried again at `nextMs`. `spent`: it counts against `maxDeliveries`. */
  | (ProgressCommand & {
      readonly kind: 'attempt-failed';
      readonly attempt: number;
      /** Milliseconds since the attempt began. */
      readonly durationMs: number;
      readonly spent: boolean;
      readonly nextMs: number;
      readonly error: JournalError;
    })
  /** It has its result. */
  | (ProgressCommand & {
      readonly kind: 'completed';
      /** Of a step: the one that brought it. */
      readonly attempt?: number | undefined;
      /** Milliseconds since that attempt began; of what is no step, since it was asked for. */
      readonly durationMs: number;
      /** Of a wait that time has ended: milliseconds behind its time. */
      readonly lateMs?: number | undefined;
      /** The signal did not come. */
      readonly timedOut?: true | undefined;
    })
  /** It failed for good; or, `stuck`, a compensation gave up and waits for a person. */
  | (ProgressCommand & {
      readonly kind: 'failed' | 'stuck';
      readonly attempt?: number | undefined;
      readonly durationMs: number;
      readonly error: JournalError;
    })
  /** A cancellation reached the method. */
  | { readonly kind: 'cancelled' }
  /** A person has repaired what kept it stuck. */
  | { readonly kind: 'resumed' }
  /** Its process lets go of it until something happens, or until `wakeMs`. */
  | { readonly kind: 'waiting'; readonly waits: readonly WorkflowWait[]; readonly wakeMs?: number | undefined }
  /** Its code does not fit the journal. */
  | { readonly kind: 'blocked'; readonly error: JournalError }
  /** Its next run begins, with an empty journal. */
  | { readonly kind: 'continued' }
  | {
      readonly kind: 'ended';
      readonly status: WorkflowEndStatus;
      /** Milliseconds since its first run began. */
      readonly durationMs: number;
      readonly error?: JournalError | undefined;
    }
);

/** How many workflows of a name stand so, of those that have not ended. */
export interface WorkflowCount {
  readonly name: string;
  readonly status: WorkflowStatus;
  readonly count: number;
}
