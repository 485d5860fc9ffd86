// What `Workflows.start` is given, its defaults, and what is wrong with it.
import { OptionChecker, days, seconds } from '../core/options.js';
import type { GlobalGuard } from '../ports/global-guard.js';
import type { WorkflowKey, WorkflowStore } from '../ports/workflow-store.js';
import { WORKFLOW_STORE_METHODS } from '../ports/workflow-store.js';
import { extenderOf } from '../runtime/extension.js';
import type { HandlerResolver } from '../runtime/handler-classes.js';
import type { Runtime } from '../runtime/runtime.js';
import type { Command } from './command.js';
import type { DeterminismGuard } from './determinism.js';
import { DETERMINISM_GUARDS } from './determinism.js';
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
  /**
   * What is done about a method that uses `Date.now()`, `new Date()`, `Math.random()`, random ids, timers or `fetch` of its own:
   * `warn` logs each place once, `block` stops the workflow as blocked. Both put watching functions in the place of those
   * globals and make each promise of the process a little slower. @default 'off'; in tests with `testWorkflow` 'block'
   */
  readonly determinismGuard?: DeterminismGuard | undefined;
}

export const DEFAULT_WORKFLOWS_OPTIONS = {
  concurrency: 100,
  leaseMs: seconds(30),
  scanIntervalMs: seconds(5),
  retentionMs: days(30),
  determinismGuard: 'off',
} as const;

/** Another work for a step: undefined for its own. */
export type StepStubs = (workflow: WorkflowKey, step: Command) => ((context: StepContext) => unknown) | undefined;

/** What tests add. Under a symbol, so that it is no option. */
export const GLOBAL_GUARD: unique symbol = Symbol('pulsework.global-guard');
/** The same. */
export const STEP_STUBS: unique symbol = Symbol('pulsework.step-stubs');
/** The same: from how many entries on a workflow that waits is kept in memory. */
export const KEPT_FROM: unique symbol = Symbol('pulsework.kept-from');

export interface ResolvedWorkflowsOptions {
  readonly runtime: Runtime;
  readonly store: WorkflowStore;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly scanIntervalMs: number;
  readonly retentionMs: number;
  readonly determinismGuard: DeterminismGuard;
  /** In place of the system's. */
  readonly globalGuard: GlobalGuard | undefined;
  /** @default that of `KeptExecutions` */
  readonly keptFrom: number | undefined;
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
  'determinismGuard',
] as const satisfies readonly (keyof WorkflowsOptions)[];

/** @throws ConfigurationError with every problem of the options and of all definitions */
export function resolveWorkflowsOptions(
  options: WorkflowsOptions & {
    readonly [STEP_STUBS]?: StepStubs | undefined;
    readonly [GLOBAL_GUARD]?: GlobalGuard | undefined;
    readonly [KEPT_FROM]?: number | undefined;
  },
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
  check.oneOf('determinismGuard', options.determinismGuard, DETERMINISM_GUARDS);
  const unbound = readDefinitions(definitions, resolve !== undefined, check);
  check.throwIfAny();
  return {
    runtime,
    store,
    unbound,
    keptFrom: options[KEPT_FROM],
    concurrency: options.concurrency ?? DEFAULT_WORKFLOWS_OPTIONS.concurrency,
    leaseMs: options.leaseMs ?? DEFAULT_WORKFLOWS_OPTIONS.leaseMs,
    scanIntervalMs: options.scanIntervalMs ?? DEFAULT_WORKFLOWS_OPTIONS.scanIntervalMs,
    retentionMs: options.retentionMs ?? DEFAULT_WORKFLOWS_OPTIONS.retentionMs,
    determinismGuard: options.determinismGuard ?? DEFAULT_WORKFLOWS_OPTIONS.determinismGuard,
    globalGuard: options[GLOBAL_GUARD],
    stubs: options[STEP_STUBS] ?? (() => undefined),
  };
}
