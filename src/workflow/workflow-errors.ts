// Errors of workflows: what the method catches, what `result()` rejects with, and how a journal gives one back.
import { PulseworkError } from '../core/errors.js';
import type { ErrorCode } from '../core/errors.js';
import type { JournalError } from '../core/workflow-journal.js';
import type { WorkflowKey } from '../ports/workflow-store.js';

/** An error of a workflow. `code` says of what kind. */
export class WorkflowError extends PulseworkError {
  override readonly name = 'WorkflowError';
  /** Of the workflow; undefined for one that is only to be thrown. */
  readonly workflow: WorkflowKey | undefined;
  /** Of the step or child that failed. */
  readonly step: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    about: {
      readonly workflow?: WorkflowKey | undefined;
      readonly step?: string | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(code, message, about);
    this.workflow = about.workflow;
    this.step = about.step;
  }
}

/** `"fulfil-order" "A-1"`, for messages. */
export function keyOf({ name, id }: WorkflowKey): string {
  return `${JSON.stringify(name)} ${JSON.stringify(id)}`;
}

/** An error as it was when it was written down: the same in the first run and in each replay. */
export function recordedCause({ name, message, code, stack }: JournalError): Error {
  const error = new Error(message);
  for (const [field, value] of Object.entries({ name, stack: stack ?? `${name}: ${message}`, code }))
    if (value !== undefined) Object.defineProperty(error, field, { value, configurable: true, writable: true });
  return error;
}

export function stepFailed(step: string, error: JournalError): WorkflowError {
  const message = `step ${JSON.stringify(step)} failed for good: ${error.message}`;
  return new WorkflowError('WORKFLOW_STEP_FAILED', message, { step, cause: recordedCause(error) });
}

export function childFailed(child: string, error: JournalError): WorkflowError {
  const message = `child ${JSON.stringify(child)} did not complete: ${error.message}`;
  return new WorkflowError('WORKFLOW_FAILED', message, { step: child, cause: recordedCause(error) });
}

export function workflowCancelled(): WorkflowError {
  return new WorkflowError('WORKFLOW_CANCELLED', 'the workflow was cancelled');
}

export function isCancellation(error: unknown): boolean {
  return error instanceof WorkflowError && error.code === 'WORKFLOW_CANCELLED';
}

/** The code does not fit the journal, or cannot be replayed at all: the workflow stands still until it is corrected. */
export function diverged(difference: string): WorkflowError {
  return new WorkflowError('WORKFLOW_DIVERGED', difference);
}

/** Errors that say that the code is wrong, not that the business failed: nothing is undone for them. */
export function isBroken(error: unknown): error is Error {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof SyntaxError;
}

export function methodProblem(error: Error): WorkflowError {
  const message = `the method threw ${error.name}: ${error.message}`;
  return new WorkflowError('WORKFLOW_DIVERGED', message, { cause: error });
}
