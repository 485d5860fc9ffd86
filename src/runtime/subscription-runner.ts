// One handler on one open subscription: wires the parts of a message's journey and owns their end.
import { isClosed, toError } from '../core/errors.js';
import type { MessageKey } from '../core/message.js';
import type { Clock } from '../ports/clock.js';
import type { BlockedKey, SubscriptionHealth } from '../ports/runtime-view.js';
import type { Subscription } from '../ports/transport.js';
import { AckTimeoutTracker } from '../redelivery/ack-timeout-tracker.js';
import { ConsumerLoop } from './consumer-loop.js';
import { DeadLetterPublisher } from './dead-letter-publisher.js';
import type { Dependencies } from './dependencies.js';
import type { DeliveryRecord } from './delivery-record.js';
import { DeliveryPause } from './delivery-pause.js';
import { DeliveryRegistry } from './delivery-registry.js';
import { DeliveryRunner } from './delivery-runner.js';
import { Dispatcher } from './dispatcher.js';
import { FollowUps } from './follow-ups.js';
import { HandlerLog } from './handler-log.js';
import type { HandlerPlan } from './handler-plan.js';
import { OrderedNegativeAcks } from './ordered-negative-acks.js';
import { Outage } from './outage.js';
import { Pauses } from './pauses.js';
import type { PluginHost } from './plugin-host.js';
import type { PortCalls } from './port-calls.js';
import type { Publishers } from './publishers.js';
import { RecordedRuns } from './recorded-runs.js';
import { RetryLetterPublisher } from './retry-letter-publisher.js';
import type { ResolvedRuntimeOptions } from './runtime-options.js';
import type { SettlementReporterOptions } from './settlement-reporter.js';
import { SettlementReporter } from './settlement-reporter.js';
import { Settler } from './settler.js';
import type { TelemetryHost } from './telemetry-host.js';
import { TransactionalSettlement } from './transactional-settlement.js';

/** What all subscriptions of a runtime share. */
export interface RunnerContext {
  readonly options: ResolvedRuntimeOptions;
  readonly plugins: PluginHost;
  readonly telemetry: TelemetryHost;
  readonly publishers: Publishers;
  readonly calls: PortCalls;
  readonly dependencies: Dependencies;
  readonly fullName: (name: string) => string;
  readonly onFatal: (error: Error) => void;
}

export class SubscriptionRunner {
  readonly plan: HandlerPlan;
  readonly pauses: Pauses;
  readonly #subscription: Subscription;
  readonly #registry: DeliveryRegistry;
  readonly #orderedNegativeAcks: OrderedNegativeAcks;
  readonly #dispatcher: Dispatcher;
  readonly #deadLetters: DeadLetterPublisher;
  readonly #settler: Settler;
  readonly #outage: Outage;
  readonly #deliveryPause: DeliveryPause;
  readonly #runner: DeliveryRunner;
  readonly #clock: Clock;
  readonly #log: HandlerLog;
  readonly #loop: ConsumerLoop;
  readonly #calls: PortCalls;
  readonly #ackTimeouts: AckTimeoutTracker | undefined;
  #drained: Promise<void> | undefined;

  constructor(plan: HandlerPlan, subscription: Subscription, shared: RunnerContext) {
    const { publishers, calls, fullName, onFatal } = shared;
    const { clock, maxLogRepeats: maxRepeats } = shared.options;
    const { name: handler, redact } = plan;
    const logger = new HandlerLog({ logger: shared.options.logger, handler, redact, maxRepeats, clock });
    const context = { ...shared, options: { ...shared.options, logger } };
    this.#log = logger;
    this.plan = plan;
    this.#subscription = subscription;
    this.#calls = calls;
    this.#clock = clock;
    this.pauses = new Pauses(plan.name, logger, subscription);
    this.#outage = this.#newOutage(context);
    this.#deliveryPause = this.#newDeliveryPause();
    this.#orderedNegativeAcks = new OrderedNegativeAcks({
      subscription,
      clock,
      brokerKeepsOrder: (message) => this.#loop.connections.keepsOrder(message),
      takeBehind: (record) => this.#loop.takeBehind(record),
    });
    this.#registry = this.#newRegistry(context);
    const followUps = new FollowUps(plan, { publishers, fullName, clock, calls });
    this.#dispatcher = this.#newDispatcher(context, followUps);
    this.#deadLetters = this.#newDeadLetters(context);
    this.#settler = this.#newSettler(context, followUps);
    this.#ackTimeouts = this.#newAckTimeouts(context);
    this.#runner = this.#newRunner(context, this.#settler);
    this.#loop = new ConsumerLoop({
      plan,
      subscription,
      registry: this.#registry,
      orderedNegativeAcks: this.#orderedNegativeAcks,
      runner: this.#runner,
      settler: this.#settler,
      pauses: this.pauses,
      outage: this.#outage,
      deliveryPause: this.#deliveryPause,
      clock,
      logger,
      onFatal,
    });
  }

  start(): void {
    this.#loop.start();
  }

  pause(): void {
    if (this.pauses.set('operator', true)) this.#outage.handOver();
  }

  resume(): void {
    if (this.pauses.set('operator', false)) this.#loop.pump();
  }

  blockedKeys(): readonly BlockedKey[] {
    return this.#loop.blockedKeys.list();
  }

  release(key: MessageKey): boolean {
    return this.#loop.release(key);
  }

  skip(key: MessageKey): boolean {
    return this.#loop.skip(key);
  }

  /** Runs of the handler going on now. */
  get running(): number {
    return this.#loop.running;
  }

  health(): SubscriptionHealth {
    const degradedBy = this.#degradedBy();
    const pausedBy = this.pauses.reasons;
    const working = degradedBy !== undefined ? 'degraded' : pausedBy.length > 0 ? 'paused' : 'running';
    return {
      handler: this.plan.name,
      subscription: this.plan.spec.subscription,
      topics: this.plan.spec.pattern === undefined ? this.plan.spec.topics : this.#loop.connections.attached,
      state: this.#drained === undefined ? working : 'draining',
      reason: degradedBy ?? this.#ended(),
      pausedBy,
      dependenciesDown: this.#outage.down,
      running: this.running,
      oldestRunMs: this.#since(this.#registry.oldestRunMs),
      lastDeliveryMs: this.#runner.lastRunMs,
      held: this.#registry.heldCount,
      oldestFailureMs: this.#since(this.#registry.oldestFailureMs),
      kept: this.#loop.kept,
      blocked: this.#loop.blocked,
      waitingKeys: this.#loop.waitingKeys,
      fullKey: this.#loop.limits.fullKey,
      throttled: this.#loop.limits.throttled,
      deliveryPause: this.#deliveryPause.health,
      backlog: this.#asked('backlog', () => this.#subscription.backlog?.()),
    };
  }

  /** Nothing is wrong with it, but who waits for messages waits in vain. */
  #ended(): string | undefined {
    const hasEnded = this.#asked('end', () => this.#subscription.hasReachedEnd?.());
    if (hasEnded !== true) return undefined;
    return 'all of its topics were terminated, and everything on them is acknowledged';
  }

  /** What a transport throws here must not take the rest of the health with it. */
  #asked<T>(what: string, ask: () => T): T | undefined {
    try {
      return ask();
    } catch (error) {
      this.#log.warn(`the ${what} could not be told`, { handler: this.plan.name, error: toError(error) });
      return undefined;
    }
  }

  /** Takes no more; resolves when nothing runs and nothing is being settled. */
  drain(): Promise<void> {
    this.#drained ??= this.#loop.drain();
    this.#dispatcher.flush();
    return this.#drained;
  }

  /** Tells running handlers to end, with `reason` on their signals. */
  interrupt(reason: Error): void {
    this.#dispatcher.interruptAll(reason);
  }

  /** Gives back what is unsettled and closes the subscription; never unsubscribes. */
  async close(): Promise<void> {
    this.#loop.end();
    this.#dispatcher.close();
    this.#settler.close();
    this.#deliveryPause.close();
    this.#registry.close();
    this.#orderedNegativeAcks.close();
    this.#ackTimeouts?.close();
    const closing = `closing subscription ${this.plan.spec.subscription}`;
    await this.#calls.run(closing, () => this.#subscription.close()).finally(() => this.#log.close());
  }

  #newOutage({ dependencies }: RunnerContext): Outage {
    return new Outage({
      pauses: this.pauses,
      dependencies,
      names: this.plan.outage.map(({ dependency }) => dependency),
      maxInFlight: this.plan.maxInFlight,
      onBack: () => this.#loop.pump(),
    });
  }

  #newDeliveryPause(): DeliveryPause {
    const { plan, pauses } = this;
    return new DeliveryPause({ plan, pauses, clock: this.#clock, onTaking: () => this.#loop.pump() });
  }

  #newRegistry({ options: { clock, logger, duplicateWindowMs } }: RunnerContext): DeliveryRegistry {
    const { name: handler, ackTimeoutMs, transactional } = this.plan;
    return new DeliveryRegistry({
      clock,
      duplicateWindowMs,
      brokerCounts: ackTimeoutMs === undefined && transactional === undefined,
      isConnected: (message) => this.#loop.connections.has(message),
      holdsAgain: (message) => this.plan.ordering === 'none' || this.#orderedNegativeAcks.failedBefore(message),
      redeliver: (ids) => this.#redeliver(ids),
      onReleased: () => this.#loop.pump(),
      onRequestFailed: (error, { length: deliveries }) =>
        logger.warn('asking for redelivery failed; it is asked again', { handler, deliveries, error }),
    });
  }

  #newDispatcher({ options, plugins, telemetry, calls }: RunnerContext, followUps: FollowUps): Dispatcher {
    const { clock, logger, currentDelivery, environment } = options;
    const processName = `${environment.host}:${environment.processId}`;
    const shared = { clock, calls, logger, processName, random: environment.random };
    return new Dispatcher({
      plan: this.plan,
      plugins,
      telemetry,
      currentDelivery,
      clock,
      logger,
      idempotency: (record) => ({
        ...shared,
        prepare: (message, index) => followUps.prepare(record, message, index),
        provenanceOf: (message, index) => followUps.provenanceOf(record, message, index),
      }),
      mayStart: (record) => this.#loop.mayJoinBatch(record),
      onAbandoned: (count) => this.#abandoned(count),
    });
  }

  #newRunner({ options, telemetry, calls }: RunnerContext, settler: Settler): DeliveryRunner {
    const { plan } = this;
    const { clock, logger, attemptStore: store } = options;
    const mayStart = (record: DeliveryRecord): boolean => this.#loop.mayStart(record);
    return new DeliveryRunner({
      plan,
      registry: this.#registry,
      dispatcher: this.#dispatcher,
      settler,
      ackTimeouts: this.#ackTimeouts,
      recordedRuns: store && new RecordedRuns({ store, plan, calls, clock, logger, mayStart }),
      telemetry,
      clock,
      logger,
      onOutcome: (record, outcome) => this.#outage.probed(record, outcome),
    });
  }

  #newDeadLetters({ options, publishers, telemetry, calls, fullName }: RunnerContext): DeadLetterPublisher {
    const { clock, logger, environment, transport } = options;
    const shared = { plan: this.plan, publishers, calls, fullName, telemetry, clock, logger, environment };
    return new DeadLetterPublisher({ ...shared, maxMessageBytes: transport.maxMessageBytes });
  }

  #newSettler(context: RunnerContext, followUps: FollowUps): Settler {
    const { options, plugins, telemetry, publishers, calls } = context;
    const { clock, logger, environment } = options;
    const { plan } = this;
    const onSettled: SettlementReporterOptions['onSettled'] = (made) => this.#deliveryPause.settled(made);
    return new Settler({
      plan,
      subscription: this.#subscription,
      registry: this.#registry,
      orderedNegativeAcks: this.#orderedNegativeAcks,
      followUps,
      transactions: this.#newTransactions(context, followUps),
      deadLetters: this.#deadLetters,
      retryLetters: new RetryLetterPublisher(plan, publishers, clock),
      calls,
      reporter: new SettlementReporter({ plan, plugins, telemetry, logger, clock, onSettled }),
      telemetry,
      clock,
      random: environment.random,
      heldFull: () => this.#loop.limits.full,
    });
  }

  #newTransactions(context: RunnerContext, followUps: FollowUps): TransactionalSettlement | undefined {
    const { plan } = this;
    if (plan.transactional === undefined) return undefined;
    const { transport } = context.options;
    const [subscription, registry, orderedNegativeAcks] = [
      this.#subscription,
      this.#registry,
      this.#orderedNegativeAcks,
    ];
    const { calls, telemetry } = context;
    const shared = { plan, transport, followUps, calls, telemetry };
    return new TransactionalSettlement({ ...shared, subscription, registry, orderedNegativeAcks });
  }

  #newAckTimeouts({ options }: RunnerContext): AckTimeoutTracker | undefined {
    const { ackTimeoutMs: timeoutMs, ackTimeoutBackoff: backoff, name: handler } = this.plan;
    if (timeoutMs === undefined) return undefined;
    const { clock, logger, environment } = options;
    return new AckTimeoutTracker({
      clock,
      timeoutMs,
      backoff,
      random: environment.random,
      redeliver: async (ids) => {
        logger.warn('a run exceeds the ack timeout; the message is asked back and the run goes on', {
          handler,
          deliveries: ids.length,
          ackTimeoutMs: timeoutMs,
        });
        await this.#redeliver(ids);
        for (const id of ids) this.#registry.askedBack(id);
      },
      onRequestFailed: (error) =>
        logger.warn('asking for redelivery failed; it is asked again', {
          handler,
          error,
        }),
      onBackoffFailed: (error) =>
        logger.error('the ack timeout backoff failed; nothing was added', {
          handler,
          error,
        }),
    });
  }

  async #redeliver(ids: Parameters<Subscription['redeliver']>[0]): Promise<void> {
    try {
      await this.#calls.run('asking for redelivery', () => this.#subscription.redeliver(ids));
    } catch (error) {
      // A closed subscription has given them back: there is nothing left to ask for.
      if (!isClosed(error)) throw error;
    }
  }

  #since(momentMs: number | undefined): number | undefined {
    return momentMs === undefined ? undefined : this.#clock.now() - momentMs;
  }

  #degradedBy(): string | undefined {
    if (this.#loop.ended) return 'the subscription ended by itself; nothing more is received';
    if (this.pauses.has('abandoned-runs')) return 'more handlers than "concurrency" did not end in time';
    const { blocked, connections } = this.#loop;
    if (connections.suspended.length > 0)
      return `the broker of ${connections.suspended.join(', ')} cannot keep the order of a key that failed ("orderedNegativeAck: required"): nothing is taken from there`;
    if (blocked > 0) return `given up and waiting for a person: ${blocked}`;
    return this.#deadLetters.degraded;
  }

  /** More handlers that did not end than may run at a time: taking more would only add to them. */
  #abandoned(count: number): void {
    if (!this.pauses.set('abandoned-runs', count > this.plan.concurrency)) return;
    if (this.pauses.has('abandoned-runs')) this.#outage.handOver();
    this.#loop.pump();
  }
}
