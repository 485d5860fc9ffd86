// Entry point `pulsework/workflow`: durable workflows on a runtime and a store.
export { Workflow, defineWorkflow } from './workflow/definition.js';
export type {
  WorkflowClass,
  WorkflowDefinition,
  WorkflowInput,
  WorkflowMethod,
  WorkflowOptions,
  WorkflowReference,
  WorkflowResult,
} from './workflow/definition.js';
export type {
  ChildOptions,
  Compensation,
  FailureOptions,
  Flow,
  RaceResult,
  RemoteCompensation,
  RemoteStep,
  SignalOptions,
  SignalPayload,
  StepContext,
  StepOptions,
  StepOutcome,
  StepPolicy,
} from './workflow/flow.js';
export { Workflows } from './workflow/workflows.js';
export { remoteStep, stepFailure, stepResult, workflowEvents } from './workflow/step-answers.js';
export type { RemoteStepCall, StepFailureOptions } from './workflow/step-answers.js';
export type { ListOptions, StartOptions } from './workflow/workflows.js';
export type { ResultOptions, SignalSendOptions, WorkflowHandle, WorkflowHistory } from './workflow/workflow-handle.js';
export type { WorkflowsOptions } from './workflow/workflows-options.js';
export { WorkflowError } from './workflow/workflow-errors.js';
export { workflowTimeline } from './workflow/timeline.js';
export type { ProgressEvent, ProgressOptions } from './workflow/progress-feed.js';
export type { ProgressCommand, WorkflowCount, WorkflowProgress } from './ports/workflow-progress.js';
export type {
  ActivationEnd,
  ActivationObserver,
  ActivationStart,
  StepEnd,
  StepObserver,
  StepStart,
  WorkflowHooks,
} from './ports/workflow-telemetry.js';
export type { DeterminismGuard } from './workflow/determinism.js';
export { memoryWorkflowStore } from './stores/memory/memory-workflow-store.js';
export type {
  CommandKind,
  JournalEntry,
  JournalError,
  WorkflowEndStatus,
  WorkflowStatus,
  WorkflowWait,
} from './core/workflow-journal.js';
export type {
  AcquireRequest,
  AcquiredWorkflow,
  DueQuestion,
  DueWorkflow,
  InboxEvent,
  KnownWorkflow,
  LeaseRequest,
  NewWorkflow,
  OutgoingRequest,
  OutgoingRow,
  TakenOutgoing,
  WorkflowChange,
  WorkflowEvent,
  WorkflowFilter,
  WorkflowKey,
  WorkflowParent,
  WorkflowRecord,
  WorkflowSnapshot,
  WorkflowStore,
  WorkflowWrite,
  WriteAnswer,
} from './ports/workflow-store.js';
