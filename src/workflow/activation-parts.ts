// What activations share: the store, the clock, the definitions, and the ways out.
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { OutgoingRow, WorkflowKey, WorkflowRecord, WorkflowStore } from '../ports/workflow-store.js';
import type { ChildEnd, EventMessage } from './event-message.js';
import type { Command, PublishWork } from './command.js';
import type { StepContext } from './flow.js';
import type { KeptExecutions } from './kept-executions.js';
import type { PlannedWorkflow } from './planned-workflow.js';
import type { ProgressFeed } from './progress-feed.js';
import type { WorkflowTelemetry } from './workflow-telemetry.js';

export interface ActivationParts {
  /** A call to the store, with a time limit. */
  store<T>(what: string, call: (store: WorkflowStore) => Promise<T>): Promise<T>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** For the lease: this process. */
  readonly owner: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly kept: KeptExecutions;
  readonly feed: ProgressFeed;
  readonly telemetry: WorkflowTelemetry;
  /** Resolves when all promises that can settle have done so. */
  turn(): Promise<void>;
  workflowFor(record: Pick<WorkflowRecord, 'name' | 'version'>): PlannedWorkflow | undefined;
  /** What a new run begins with. */
  newest(name: string): PlannedWorkflow | undefined;
  newSeed(): string;
  /** Another work for a step, in tests. */
  workFor(workflow: WorkflowKey, command: Command): ((context: StepContext) => unknown) | undefined;
  /** A message of `flow.publish`. @throws PulseworkError PUBLISH_REFUSED */
  publishRow(publish: PublishWork, messageId: string): Promise<OutgoingRow>;
  /** The full name of the topic of events of the workflow `name`. @throws PulseworkError PUBLISH_REFUSED */
  replyTo(name: string): string;
  /** An event for the workflow `name`. */
  eventRow(name: string, event: EventMessage, messageId: string): OutgoingRow;
  /** For the parent, if there is one. */
  parentRows(record: WorkflowRecord, end: Pick<ChildEnd, 'value' | 'error'>): OutgoingRow[];
  onOutgoing(): void;
  onEnded(key: WorkflowKey): void;
}
