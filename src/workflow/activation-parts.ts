// What activations share: the store, the clock, the definitions, and the ways out.
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { WorkflowKey, WorkflowRecord, WorkflowStore } from '../ports/workflow-store.js';
import type { Command } from './command.js';
import type { StepContext } from './flow.js';
import type { KeptExecutions } from './kept-executions.js';
import type { OutgoingRowsOptions } from './outgoing-rows.js';
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
  readonly outgoing: OutgoingRowsOptions;
  /** Resolves when all promises that can settle have done so. */
  turn(): Promise<void>;
  workflowFor(record: Pick<WorkflowRecord, 'name' | 'version'>): PlannedWorkflow | undefined;
  /** What a new run begins with. */
  newest(name: string): PlannedWorkflow | undefined;
  newSeed(): string;
  /** Another work for a step, in tests. */
  workFor(workflow: WorkflowKey, command: Command): ((context: StepContext) => unknown) | undefined;
  /** A workflow of that name is started as a child. */
  onChild(name: string): void;
  onOutgoing(): void;
  onEnded(key: WorkflowKey): void;
}
