// What `Workflows.start` is given, its defaults, and what is wrong with it.
import { OptionChecker, days, seconds } from '../core/options.js';
import type { WorkflowKey, WorkflowStore } from '../ports/workflow-store.js';
import { WORKFLOW_STORE_METHODS } from '../ports/workflow-store.js';
import { extenderOf } from '../runtime/extension.js';
import type { HandlerResolver } from '../runtime/handler-classes.js';
import type { Runtime } from '../runtime/runtime.js';
import type { Command } from './command.js';
import type { StepContext } from './flow.js';
import type { GivenDefinition, UnboundWorkflow } from './workflow-plans.js';
import { readDefinitions } from './workflow-plans.js';

export interface WorkflowsOptions {
  /** A running one. Workflows end with it: its drain lets running steps finish. */
  readonly runtime: Runtime;
  /** E.g. `memoryWorkflowStore()` in tests. Opened here, and closed with the runtime. */
  readonly store: WorkflowStore;
  /** Classes with `@Workflow` and results of `defineWorkflow`; several versions of one name side by side. */
  readonly definitions: readonly GivenDefinition[];
  /** Makes the instances of classes, e.g. `inversifyResolver(container)`. @default `new WorkflowClass()` */
  readonly resolve?: HandlerResolver | undefined;
  /** Workflows that are worked on at a time; those that only wait are not among them. @default 100 */
  readonly concurrency?: number | undefined;
  /** How long a workflow stays with a process that gives no sign of life. @default 30 s */
  readonly leaseMs?: number | undefined;
  /** How often the store is looked at for what is due: what another process left is found so much later at most. @default 5 s */
  readonly scanIntervalMs?: number | undefined;
  /** How long ended workflows are kept; then an id may be used again. @default 30 days */
  readonly retentionMs?: number | undefined;
}

export const DEFAULT_WORKFLOWS_OPTIONS = {
  concurrency: 100,
  leaseMs: seconds(30),
  scanIntervalMs: seconds(5),
  retentionMs: days(30),
} as const;

/** Another work for a step: undefined for its own. */
export type StepStubs = (workflow: WorkflowKey, step: Command) => ((context: StepContext) => unknown) | undefined;

/** What tests add. Under a symbol, so that it is no option. */
export const STEP_STUBS: unique symbol = Symbol('pulsework.step-stubs');

export interface ResolvedWorkflowsOptions {
  readonly runtime: Runtime;
  readonly store: WorkflowStore;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly scanIntervalMs: number;
  readonly retentionMs: number;
  readonly unbound: readonly UnboundWorkflow[];
  readonly stubs: StepStubs;
}

const NAMES = [
  'runtime',
  'store',
  'definitions',
  'resolve',
  'concurrency',
  'leaseMs',
  'scanIntervalMs',
  'retentionMs',
] as const satisfies readonly (keyof WorkflowsOptions)[];

/** @throws ConfigurationError with every problem of the options and of all definitions */
export function resolveWorkflowsOptions(
  options: WorkflowsOptions & { readonly [STEP_STUBS]?: StepStubs | undefined },
): ResolvedWorkflowsOptions {
  const check = new OptionChecker('workflows');
  check.object('options', options, '{ runtime, store, definitions }');
  check.throwIfAny();
  const { runtime, store, definitions, resolve } = options;
  check.unknownOptions(options, NAMES);
  check.required(options, { runtime: 'a running Runtime', store: 'a store such as memoryWorkflowStore()' });
  if ((runtime as unknown) !== undefined && extenderOf(runtime) === undefined)
    check.problem('"runtime" must be what Runtime.start() of this package gave');
  check.methods('store', store, ['open', 'close', ...WORKFLOW_STORE_METHODS], 'e.g. memoryWorkflowStore()');
  if (typeof resolve !== 'function') check.methods('resolve', resolve, ['resolve'], 'or a function');
  check.positiveInteger('concurrency', options.concurrency);
  check.durationMs('leaseMs', options.leaseMs, { minMs: seconds(1) });
  check.durationMs('scanIntervalMs', options.scanIntervalMs, { minMs: 1 });
  check.durationMs('retentionMs', options.retentionMs);
  const unbound = readDefinitions(definitions, resolve !== undefined, check);
  check.throwIfAny();
  return {
    runtime,
    store,
    unbound,
    concurrency: options.concurrency ?? DEFAULT_WORKFLOWS_OPTIONS.concurrency,
    leaseMs: options.leaseMs ?? DEFAULT_WORKFLOWS_OPTIONS.leaseMs,
    scanIntervalMs: options.scanIntervalMs ?? DEFAULT_WORKFLOWS_OPTIONS.scanIntervalMs,
    retentionMs: options.retentionMs ?? DEFAULT_WORKFLOWS_OPTIONS.retentionMs,
    stubs: options[STEP_STUBS] ?? (() => undefined),
  };
}
