// Everything behind `Workflows`, put together over a runtime: the store, the activations, the relay and the event handlers.
import { toError } from '../core/errors.js';
import type { WorkflowKey, WorkflowRecord, WorkflowStore } from '../ports/workflow-store.js';
import type { ExtensionGround, RuntimeExtension } from '../runtime/extension.js';
import { PortCalls } from '../runtime/port-calls.js';
import type { ActivationParts } from './activation-parts.js';
import { Activations } from './activations.js';
import type { Command } from './command.js';
import { eventHandler } from './event-handler.js';
import type { MethodWatch } from './determinism.js';
import { methodWatch } from './determinism.js';
import type { StepContext } from './flow.js';
import { KeptExecutions } from './kept-executions.js';
import type { OutgoingRowsOptions } from './outgoing-rows.js';
import type { BoundWorkflows } from './workflow-plans.js';
import type { PlannedWorkflow } from './planned-workflow.js';
import { ProgressFeed } from './progress-feed.js';
import { Relay } from './relay.js';
import { WorkflowCounts } from './workflow-counts.js';
import { WorkflowTelemetry } from './workflow-telemetry.js';
import type { ResolvedWorkflowsOptions } from './workflows-options.js';

/** So that a lease survives two renewals that fail. */
const BEATS_PER_LEASE = 3;
const BLOCKED_PAGE = 100;
/** Names of children that are warned of: there are no more, unless they are computed. */
const MAX_ELSEWHERE = 100;

export class WorkflowMachine implements ActivationParts, RuntimeExtension {
  readonly clock: ActivationParts['clock'];
  readonly logger: ActivationParts['logger'];
  readonly random: () => number;
  readonly owner: string;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly kept: KeptExecutions;
  readonly feed: ProgressFeed;
  readonly telemetry: WorkflowTelemetry;
  readonly outgoing: OutgoingRowsOptions;
  readonly handlers: RuntimeExtension['handlers'];
  readonly names: readonly string[];
  readonly #options: ResolvedWorkflowsOptions;
  readonly #bound: BoundWorkflows;
  readonly #calls: PortCalls;
  readonly #activations: Activations;
  readonly #relay: Relay;
  readonly #counts: WorkflowCounts;
  /** Names of children that were told of. */
  readonly #elsewhere = new Set<string>();
  #releaseGlobals: (() => void) | undefined;
  /** Those who wait for the end of a workflow. */
  readonly #watchers = new Set<(key: WorkflowKey | undefined) => void>();

  constructor(options: ResolvedWorkflowsOptions, bound: BoundWorkflows, ground: ExtensionGround) {
    const { clock, logger, environment, callTimeoutMs, transport } = ground.options;
    const { leaseMs, scanIntervalMs, concurrency, retentionMs } = options;
    this.clock = clock;
    this.logger = logger;
    this.leaseMs = leaseMs;
    this.kept = new KeptExecutions(options.keptFrom);
    this.telemetry = new WorkflowTelemetry(ground.telemetry);
    this.feed = new ProgressFeed(this.telemetry);
    this.outgoing = { clock, fullName: ground.fullName, maxMessageBytes: () => transport.maxMessageBytes };
    this.random = environment.random;
    // What another process appends to the inbox of a workflow that runs here is seen with the next beat.
    this.heartbeatMs = Math.min(leaseMs / BEATS_PER_LEASE, scanIntervalMs);
    this.owner = `${environment.host}:${environment.processId}-${this.newSeed()}`;
    this.names = [...new Set(bound.workflows.map(({ name }) => name))];
    this.#options = options;
    const guard = options.globalGuard ?? ground.globalGuard;
    const watch = methodWatch(options.determinismGuard, guard, logger);
    this.#bound = watch === undefined ? bound : watched(bound, watch);
    if (watch !== undefined) this.#releaseGlobals = guard.install();
    this.#calls = new PortCalls(clock, callTimeoutMs);
    this.#relay = new Relay({ parts: this, publish: (pending) => ground.publishers.publishAll([pending], undefined) });
    const { names } = this;
    this.#counts = new WorkflowCounts({
      store: (what, call) => this.store(what, call),
      clock,
      logger,
      telemetry: this.telemetry,
      names,
    });
    const onScan = (): void => {
      this.#relay.wake();
      this.#counts.look();
    };
    this.#activations = new Activations({ parts: this, names, concurrency, scanIntervalMs, retentionMs, onScan });
    this.handlers = names.map((name) =>
      eventHandler(name, {
        store: (what, call) => this.store(what, call),
        clock,
        logger,
        newSeed: () => this.newSeed(),
        feed: this.feed,
        telemetry: this.telemetry,
        storeName: options.store.name,
        versions: this.versions(name),
        onEvent: (key) => this.#activations.wake(key),
      }),
    );
  }

  get scanIntervalMs(): number {
    return this.#options.scanIntervalMs;
  }

  /** The store is open, and so are the subscriptions. */
  start(): void {
    this.logger.info('workflows started; what another process worked on is taken over once its lease is over', {
      workflows: this.names,
      store: this.#options.store.name,
      leaseMs: this.leaseMs,
    });
    this.#activations.start();
    void this.#retryBlocked();
  }

  async drain(): Promise<void> {
    await this.#activations.drain();
    await this.#relay.drain();
  }

  interrupt(reason: Error): void {
    this.#activations.interrupt(reason);
  }

  async close(): Promise<void> {
    this.abandon();
    try {
      await this.store('closing the workflow store', (store) => store.close());
      await this.#bound.close();
    } finally {
      this.#calls.close();
    }
  }

  /** Nothing goes on here any more; the store stays open. */
  abandon(): void {
    this.#activations.abandon();
    this.#relay.close();
    this.feed.close();
    this.#counts.close();
    this.#releaseGlobals?.();
    for (const watcher of this.#watchers) watcher(undefined);
  }

  store<T>(what: string, call: (store: WorkflowStore) => Promise<T>): Promise<T> {
    return this.#calls.run(what, () => call(this.#options.store));
  }

  turn(): Promise<void> {
    return new Promise((resolve) => this.clock.nextTurn(resolve));
  }

  /** The newest first. */
  versions(name: string): readonly PlannedWorkflow[] {
    const own = this.#bound.workflows.filter((workflow) => workflow.name === name);
    return own.toSorted((a, b) => b.options.version - a.options.version);
  }

  workflowFor({ name, version }: Pick<WorkflowRecord, 'name' | 'version'>): PlannedWorkflow | undefined {
    return this.#bound.workflows.find((workflow) => workflow.name === name && workflow.options.version === version);
  }

  newest(name: string): PlannedWorkflow | undefined {
    return this.versions(name)[0];
  }

  newSeed(): string {
    const part = (): string => Math.floor(this.random() * 2 ** 32).toString(36);
    return `${part()}${part()}`;
  }

  workFor(workflow: WorkflowKey, command: Command): ((context: StepContext) => unknown) | undefined {
    return this.#options.stubs(workflow, command);
  }

  onChild(name: string): void {
    if (this.names.includes(name) || this.#elsewhere.has(name) || this.#elsewhere.size >= MAX_ELSEWHERE) return;
    this.#elsewhere.add(name);
    const about = { workflow: name, here: this.names };
    this.logger.warn(
      'a child is waited for whose workflow has no definition here: another process has to have it',
      about,
    );
  }

  onOutgoing(): void {
    this.#relay.wake();
  }

  onEnded(key: WorkflowKey): void {
    for (const watcher of this.#watchers) watcher(key);
  }

  /** @param onEnd called with each workflow that ends in this process, and with undefined when it closes */
  watch(onEnd: (key: WorkflowKey | undefined) => void): () => void {
    this.#watchers.add(onEnd);
    return () => void this.#watchers.delete(onEnd);
  }

  /** A deploy may have corrected them. Those that this does not find are tried again later all the same. */
  async #retryBlocked(): Promise<void> {
    try {
      for (const name of this.names) {
        let after: WorkflowRecord | undefined;
        do {
          const filter = { name, status: 'blocked', after, limit: BLOCKED_PAGE } as const;
          const page = await this.store('looking for blocked workflows', (store) => store.list(filter));
          for (const { id } of page) this.#activations.wake({ name, id });
          after = page.length === BLOCKED_PAGE ? page.at(-1) : undefined;
        } while (after !== undefined);
      }
    } catch (error) {
      this.logger.warn('blocked workflows could not be looked for', { error: toError(error) });
    }
  }
}

function watched(bound: BoundWorkflows, watch: (workflow: string) => MethodWatch): BoundWorkflows {
  return { ...bound, workflows: bound.workflows.map((workflow) => ({ ...workflow, watch: watch(workflow.name) })) };
}
