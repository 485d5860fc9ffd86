// The runtime: opens every subscription or none, runs handlers until it is told to drain, and closes everything.
import { endsWithin } from '../core/ends-within.js';
import { ConfigurationError, PulseworkError, toError } from '../core/errors.js';
import { OptionChecker } from '../core/options.js';
import { sourceText } from '../core/subscription-spec.js';
import type { Topic } from '../core/topic.js';
import type { TransactionalOptions } from '../core/transactional-options.js';
import { takesFrom } from '../core/topic-pattern.js';
import type { OutboxHealth, RuntimeControl, SubscriptionHealth } from '../ports/runtime-view.js';
import type { Subscription } from '../ports/transport.js';
import { systemGlobalGuard } from '../system/global-guard.js';
import { explain, explainable } from './explain.js';
import type { ExtensionGround, RuntimeExtension } from './extension.js';
import { extensible } from './extension.js';
import { startReport } from './explanation-text.js';
import type { HandlerResolver } from './handler-classes.js';
import { resolverOf } from './handler-classes.js';
import { openSubscription } from './joined-subscription.js';
import { Dependencies } from './dependencies.js';
import { Lifecycle, startFailed } from './lifecycle.js';
import type { RuntimeState } from './lifecycle.js';
import { PluginHost } from './plugin-host.js';
import { OutboxRelay } from './outbox/outbox-relay.js';
import { PortCalls } from './port-calls.js';
import { Publishers } from './publishers.js';
import type { RuntimeOptions } from './runtime-options.js';
import type { TransactionWork } from './runtime-transactions.js';
import { RuntimeTransactions } from './runtime-transactions.js';
import type { StartPlan } from './start-checks.js';
import { planMore, planStart } from './start-checks.js';
import type { SubscriptionHandle } from './subscription-handle.js';
import { SubscriptionRunner } from './subscription-runner.js';
import { TelemetryHost } from './telemetry-host.js';
import type { TopicPublisher } from './topic-publisher.js';
import { topicPublisher } from './topic-publisher.js';
import type { TopologyEntry } from './topology.js';
import { topologyOf } from './topology.js';

/** Past the deadline handlers have seen their signal abort; those that end now still get their success settled. */
const ABORT_GRACE_MS = 1_000;

export interface DrainReport {
  /** False when the deadline passed: what had not ended was told to, and its messages went back, uncounted. */
  readonly complete: boolean;
  /** Handlers that did not end even then: their runs go on while everything else is closed. */
  readonly stillRunning: readonly string[];
}

export class Runtime {
  /** Checks everything, opens everything, starts. All or nothing. */
  static async start(options: RuntimeOptions): Promise<Runtime> {
    const runtime = new Runtime(planStart(options), options.resolve);
    await runtime.#start();
    return runtime;
  }

  /** Resolves once the runtime has closed; rejects when a handler asked it to stop with `fatal`. */
  readonly closed: Promise<void>;
  #plan: StartPlan;
  readonly #resolver: ReturnType<typeof resolverOf>;
  readonly #lifecycle = new Lifecycle();
  readonly #calls: PortCalls;
  readonly #plugins: PluginHost;
  readonly #telemetry: TelemetryHost;
  readonly #publishers: Publishers;
  readonly #transactions: RuntimeTransactions;
  readonly #dependencies = new Dependencies();
  readonly #runners: SubscriptionRunner[] = [];
  readonly #extensions: RuntimeExtension[] = [];
  readonly #relay: OutboxRelay | undefined;
  #settleClosed!: { resolve: () => void; reject: (error: Error) => void };
  #draining: Promise<DrainReport> | undefined;
  /** Ends the wait of a drain under way. */
  #hurry: (() => void) | undefined;
  #fatal: Error | undefined;

  private constructor(plan: StartPlan, resolver: HandlerResolver | undefined) {
    const { clock, callTimeoutMs, logger, transport } = plan.options;
    this.#plan = plan;
    extensible(this, (extensionOf) => this.#extend(extensionOf));
    explainable(this, plan.plans, { recordsAttempts: plan.options.attemptStore !== undefined });
    this.#resolver = resolverOf(resolver);
    this.#calls = new PortCalls(clock, callTimeoutMs);
    this.#plugins = new PluginHost(plan.plugins, { logger, clock, closeLimitMs: callTimeoutMs });
    this.#telemetry = new TelemetryHost(plan.options.telemetry, logger);
    const parts = { calls: this.#calls, plugins: this.#plugins, telemetry: this.#telemetry };
    this.#publishers = new Publishers(transport, parts);
    const { outbox, environment } = plan.options;
    const { random } = environment;
    const shared = { transport, publishers: this.#publishers, calls: this.#calls, clock, random };
    this.#transactions = new RuntimeTransactions({ ...shared, fullName: plan.fullName });
    if (outbox !== undefined) {
      const { fullName } = plan;
      this.#relay = new OutboxRelay({ ...parts, store: outbox.store, transport, clock, logger, random, fullName });
    }
    this.closed = new Promise((resolve, reject) => (this.#settleClosed = { resolve, reject }));
    // Nobody has to watch `closed`; the failure is logged too.
    this.closed.catch(() => undefined);
  }

  get state(): RuntimeState {
    return this.#lifecycle.state;
  }

  /** Which handler takes from and sends to which topics. */
  get topology(): readonly TopologyEntry[] {
    return topologyOf(this.#plan.plans);
  }

  health(): readonly SubscriptionHealth[] {
    return this.#runners.map((runner) => runner.health());
  }

  /** Undefined without the option `outbox`. */
  outboxHealth(): OutboxHealth | undefined {
    return this.#relay?.health();
  }

  /** @throws PulseworkError SUBSCRIPTION_NOT_FOUND when no handler has this subscription on this topic. */
  subscription(subscription: string, topic: string): SubscriptionHandle {
    const name = this.#plan.fullName(topic);
    const runner = this.#runners.find(
      ({ plan }) => plan.spec.subscription === subscription && takesFrom(plan.spec, name),
    );
    if (runner !== undefined) return runner;
    throw new PulseworkError(
      'SUBSCRIPTION_NOT_FOUND',
      `no handler has subscription ${JSON.stringify(subscription)} on topic ${name}`,
    );
  }

  /** Publishes outside handlers. The runtime keeps one producer per topic. */
  publisher<In>(topic: Topic<In>): TopicPublisher<In> {
    return topicPublisher(topic, {
      publishers: this.#publishers,
      clock: this.#plan.options.clock,
      fullName: this.#plan.fullName,
      requireOpen: () => this.#lifecycle.require('publish()', 'running', 'draining'),
    });
  }

  /**
   * Publishes outside handlers, all of it or nothing: commits once `work` has resolved, aborts when it throws, and then throws
   * the same. A drain waits for it.
   * @param options.timeoutMs milliseconds until it is aborted; readers of its topics wait for it. @default 10 s
   * @throws TransportError TRANSACTION_ABORTED, TRANSACTION_ENDED: nothing of it counts; TRANSACTION_OUTCOME_UNKNOWN: all or
   *   nothing of it does; NOT_SUPPORTED, TRANSACTIONS_UNAVAILABLE and the like: `work` was not called.
   *   PulseworkError ILLEGAL_STATE once the runtime has closed.
   */
  async transaction<T>(work: TransactionWork<T>, options?: TransactionalOptions): Promise<T> {
    this.#lifecycle.require('transaction()', 'running', 'draining');
    return this.#transactions.run(work, options);
  }

  /**
   * Takes no more messages, lets handlers finish until the deadline, gives back the rest uncounted, closes. Never
   * unsubscribes. Calling it again gives the same promise.
   * @param options.deadlineMs milliseconds; `Infinity` for no limit. @default the runtime's `drainDeadlineMs`
   */
  drain(options: { readonly deadlineMs?: number | undefined } = {}): Promise<DrainReport> {
    if (this.#draining !== undefined) return this.#draining;
    this.#lifecycle.require('drain()', 'running');
    const check = new OptionChecker('drain');
    check.options(options, ['deadlineMs']);
    check.durationMs('deadlineMs', options.deadlineMs, { infinite: true });
    check.throwIfAny();
    this.#lifecycle.move('draining');
    // Before it begins: a plugin that drains in its `onDrain` gets the same promise.
    let begin!: (report: Promise<DrainReport>) => void;
    this.#draining = new Promise((resolve) => (begin = resolve));
    begin(this.#drain(options.deadlineMs ?? this.#plan.options.drainDeadlineMs));
    return this.#draining;
  }

  /** Drains without waiting: running handlers are interrupted at once, also when a drain is under way already. */
  close(): Promise<DrainReport> {
    if (this.#draining === undefined) return this.drain({ deadlineMs: 0 });
    this.#hurry?.();
    return this.#draining;
  }

  async #start(): Promise<void> {
    this.#lifecycle.move('starting');
    try {
      await this.#bindClasses();
      await this.#openAttemptStore();
      await this.#openTables();
      const transactional = this.#plan.plans.find((plan) => plan.transactional !== undefined);
      if (transactional !== undefined) await this.#transactions.check(transactional.name);
      for (const plan of this.#plan.plans) await this.#open(plan);
      const control = this.#control();
      this.#telemetry.start(control);
      await this.#plugins.start(control);
    } catch (error) {
      await this.#closeAll();
      this.#lifecycle.move('failed');
      this.#settleClosed.reject(toError(error));
      throw error;
    }
    this.#lifecycle.move('running');
    for (const runner of this.#runners) runner.start();
    this.#relay?.start();
    this.#plan.options.logger.info('runtime started', {
      transport: this.#plan.options.transport.name,
      handlers: this.#plan.plans.map(({ name }) => name),
    });
    for (const handler of explain(this).handlers)
      this.#plan.options.logger.info('handler started', startReport(handler));
  }

  /** All or nothing, as a start. @throws ConfigurationError, PulseworkError START_FAILED, ILLEGAL_STATE */
  async #extend(extensionOf: (ground: ExtensionGround) => RuntimeExtension): Promise<void> {
    this.#lifecycle.require('an extension', 'running');
    const { options, fullName } = this.#plan;
    const ground = { options, publishers: this.#publishers, telemetry: this.#telemetry, fullName };
    const extension = extensionOf({ ...ground, globalGuard: systemGlobalGuard });
    const { plan, added } = planMore(this.#plan, extension.handlers);
    const before = this.#runners.length;
    try {
      for (const each of added) await this.#open(each);
      this.#lifecycle.require('an extension', 'running');
    } catch (error) {
      await Promise.all(this.#runners.splice(before).map((runner) => runner.close()));
      throw error;
    }
    this.#plan = plan;
    explainable(this, plan.plans, { recordsAttempts: options.attemptStore !== undefined });
    this.#extensions.push(extension);
    for (const runner of this.#runners.slice(before)) runner.start();
  }

  async #bindClasses(): Promise<void> {
    const problems: string[] = [];
    for (const handlers of this.#plan.classes) {
      try {
        handlers.bind(await this.#resolver.resolve(handlers.handlerClass));
      } catch (error) {
        if (error instanceof ConfigurationError) problems.push(...error.problems);
        else throw startFailed(`class ${handlers.handlerClass.name} could not be resolved`, error);
      }
    }
    if (problems.length > 0) throw new ConfigurationError(problems);
  }

  /** Before any subscription: what an earlier process left must be known when its messages arrive. */
  async #openAttemptStore(): Promise<void> {
    const { attemptStore: store, logger } = this.#plan.options;
    if (store === undefined) return;
    try {
      const { records, suspects } = await this.#calls.run('opening the attempt store', () => store.open());
      logger.info('attempt store opened', { store: store.name, records, suspects });
    } catch (error) {
      throw startFailed(`attempt store ${store.name}`, error);
    }
  }

  /** What an earlier process left in an outbox is relayed at once, and handlers write at once: the tables must be there. */
  async #openTables(): Promise<void> {
    const { outbox } = this.#plan.options;
    const stores = this.#plan.plans.flatMap(({ effects }) => effects?.store ?? []);
    const places = [
      ...(outbox === undefined ? [] : [['outbox', outbox.store] as const]),
      ...[...new Set(stores)].map((store) => ['effect store', store] as const),
    ];
    for (const [kind, store] of places)
      try {
        await this.#calls.run(`opening the ${kind}`, () => store.open());
      } catch (error) {
        throw startFailed(`${kind} ${store.name}`, error);
      }
  }

  async #open(plan: StartPlan['plans'][number]): Promise<void> {
    const { options, fullName } = this.#plan;
    const what = `subscription ${JSON.stringify(plan.spec.subscription)} on ${sourceText(plan.spec)}`;
    let opening: Promise<Subscription> | undefined;
    try {
      const subscription = await this.#calls.run(`opening ${what}`, () => (opening = openSubscription(plan, options)));
      const parts = {
        plugins: this.#plugins,
        telemetry: this.#telemetry,
        publishers: this.#publishers,
        calls: this.#calls,
      };
      const shared = { options, ...parts, dependencies: this.#dependencies, fullName };
      this.#runners.push(
        new SubscriptionRunner(plan, subscription, { ...shared, onFatal: (error) => this.#stopFor(plan.name, error) }),
      );
    } catch (error) {
      // One that opens after its time limit belongs to nobody.
      void opening?.then((late) => late.close()).catch(() => undefined);
      throw startFailed(`handler ${JSON.stringify(plan.name)} cannot start: ${what}`, error);
    }
  }

  /** What plugins and telemetry get. */
  #control(): RuntimeControl {
    const { clock, logger, transport } = this.#plan.options;
    return {
      clock,
      logger,
      transport: transport.name,
      health: () => this.health(),
      outboxHealth: () => this.outboxHealth(),
      drain: async () => this.drain(),
      close: async () => this.close(),
    };
  }

  #stopFor(handler: string, error: Error): void {
    const message = `handler ${JSON.stringify(handler)} asked to stop: ${error.message}`;
    this.#fatal ??= new PulseworkError('HANDLER_REQUESTED_STOP', message, { cause: error });
    this.#plan.options.logger.error('runtime stops', { handler, error });
    if (this.#lifecycle.state === 'running') void this.drain();
  }

  async #drain(deadlineMs: number): Promise<DrainReport> {
    const { clock, logger } = this.#plan.options;
    logger.info('runtime drains', { deadlineMs });
    this.#telemetry.drain();
    const handled = Promise.all([
      this.#plugins.drain(),
      ...this.#runners.map((runner) => runner.drain()),
      ...this.#extensions.map((extension) => extension.drain()),
    ]);
    // Afterwards: what the last handlers added may still go.
    const quiet = handled.then(() => Promise.all([this.#transactions.idle(), this.#relay?.drain()]));
    const hurried = new Promise<void>((resolve) => (this.#hurry = resolve));
    const complete = await endsWithin(clock, quiet, deadlineMs, hurried);
    if (!complete) {
      const reason = new PulseworkError(
        'DRAIN_DEADLINE_PASSED',
        'the runtime drains and its deadline has passed; the message goes back to the broker',
      );
      for (const part of [...this.#runners, ...this.#extensions, this.#transactions]) part.interrupt(reason);
      await endsWithin(clock, quiet, ABORT_GRACE_MS);
      this.#plugins.warnOfDraining();
    }
    const stillRunning = this.#runners.filter((runner) => runner.running > 0).map(({ plan }) => plan.name);
    if (stillRunning.length > 0)
      logger.warn('handlers had not ended when the runtime closed', { handlers: stillRunning });
    await this.#closeAll();
    this.#finish();
    return { complete, stillRunning };
  }

  #finish(): void {
    this.#lifecycle.move(this.#fatal === undefined ? 'closed' : 'failed');
    this.#plan.options.logger.info('runtime closed', { state: this.#lifecycle.state });
    if (this.#fatal === undefined) this.#settleClosed.resolve();
    else this.#settleClosed.reject(this.#fatal);
  }

  /** Closes what is open, in the reverse order of opening. What fails to close is logged and passed over. */
  async #closeAll(): Promise<void> {
    const { transport } = this.#plan.options;
    await Promise.all(
      this.#runners.map((runner) =>
        this.#closing(`subscription ${runner.plan.spec.subscription}`, () => runner.close()),
      ),
    );
    await Promise.all(this.#extensions.map((extension) => this.#closing('extension', () => extension.close())));
    // Past the deadline what is on its way is not waited for: the next leader publishes it again.
    if (this.#relay !== undefined) await endsWithin(this.#plan.options.clock, this.#relay.drain(), ABORT_GRACE_MS);
    await this.#closing('publishers', () => this.#publishers.close());
    await this.#closing('transport', () => this.#calls.run('closing the transport', () => transport.close()));
    const { attemptStore } = this.#plan.options;
    if (attemptStore !== undefined)
      await this.#closing('attempt store', () =>
        this.#calls.run('closing the attempt store', () => attemptStore.close()),
      );
    await this.#closing('resolver', () => this.#calls.run('closing the resolver', () => this.#resolver.close()));
    await this.#plugins.close();
    this.#telemetry.close();
    this.#calls.close();
  }

  async #closing(what: string, close: () => Promise<void>): Promise<void> {
    try {
      await close();
    } catch (error) {
      this.#plan.options.logger.warn(`${what} did not close`, { error: toError(error) });
    }
  }
}
