// What an observer is told of workflows: a part of the telemetry port. Progress says what has happened, activations and steps are
// stretches of work that something else may belong to, such as a span. The machine contains whatever an observer throws.
import type { MessageProperties } from '../core/properties.js';
import type { JournalError, WorkflowStatus } from '../core/workflow-journal.js';
import type { WorkflowCount, WorkflowProgress } from './workflow-progress.js';

/** Each method is optional; as in `Telemetry`. */
export interface WorkflowHooks {
  /**
   * Of a message that is handled now and begins a workflow, or happens to one: what is kept with it to go on from, usually a
   * trace context. It comes back as `context` or among `causes`, in whatever process and however late.
   */
  contextOf?(properties: MessageProperties): MessageProperties;
  /** A process begins to work on a workflow. Undefined where nobody wants to know what becomes of it. */
  startActivation?(start: ActivationStart): ActivationObserver | undefined;
  /** Something has happened to a workflow, and is recorded. Only what this process does. */
  onWorkflow?(progress: WorkflowProgress): void;
  /** How many workflows the store has that have not ended, now and then; empty when the runtime closes. */
  onWorkflowCounts?(counts: readonly WorkflowCount[]): void;
}

/** From taking the workflow to letting go of it. */
export interface ActivationStart {
  /** Its name. */
  readonly workflow: string;
  readonly id: string;
  readonly run: number;
  readonly version: number;
  /** What `contextOf` gave when it began; empty where there was none. */
  readonly context: MessageProperties;
  /** What it gave for the events that wait to be taken: they woke it. */
  readonly causes: readonly MessageProperties[];
}

/** `ended` comes exactly once, after all of its steps have. */
export interface ActivationObserver {
  /** What a message that follows from it is to carry: its own properties, and usually a context. */
  propertiesOf(properties: MessageProperties): MessageProperties;
  startStep(start: StepStart): StepObserver | undefined;
  ended(end: ActivationEnd): void;
}

export interface ActivationEnd {
  /** How the workflow stands. `lost`: another process has it, or what was done could not be recorded. */
  readonly status: WorkflowStatus | 'continued' | 'lost';
  readonly error?: JournalError | undefined;
}

/** An attempt of a step, or of what undoes it. */
export interface StepStart {
  readonly command: 'step' | 'compensate';
  readonly name: string;
  readonly attempt: number;
}

export interface StepObserver {
  /** Calls `run` so that what it starts belongs to this attempt, and returns what it returns. */
  within<T>(run: () => T): T;
  ended(end: StepEnd): void;
}

export interface StepEnd {
  /**
   * `retry`: it is tried again. `failed`: it gave up. `stuck`: a compensation gave up. `cut`: it ended without a result, which
   * a cancellation, a drain or a lost lease did; it runs again.
   */
  readonly outcome: 'completed' | 'retry' | 'failed' | 'stuck' | 'cut';
  readonly error?: JournalError | undefined;
}
