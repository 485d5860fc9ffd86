// The telemetry of a runtime, contained: what it throws is logged and changes nothing. Without telemetry every call here
// ends at once.
import { containRejection, describeValue, toError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { copyProperties, areProperties } from '../core/properties.js';
import type { MessageProperties } from '../core/properties.js';
import type { LogFields, Logger } from '../ports/logger.js';
import type { RuntimeView } from '../ports/runtime-view.js';
import type {
  BatchObserver,
  CallObserver,
  PublishObserver,
  PublishStart,
  RunObserver,
  RunStart,
  SettlementReport,
  Telemetry,
  TransactionCall,
} from '../ports/telemetry.js';
import type { WorkflowHooks } from '../ports/workflow-telemetry.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';
import { Once } from './once.js';

/** A publish that is observed, and what its message is sent with: read once, it cannot change under us. */
export interface ObservedPublish {
  readonly observer: PublishObserver;
  readonly properties: MessageProperties;
}

export class TelemetryHost {
  readonly #hooks: Telemetry;
  readonly #logger: Logger;
  #started = false;

  /** The hooks are read here, once: reading them runs the user's code too. */
  constructor(telemetry: Telemetry | undefined, logger: Logger) {
    this.#logger = logger;
    this.#hooks = telemetry === undefined ? {} : this.#hooksOf(telemetry);
  }

  /** For whoever runs workflows on this runtime; each call goes through `contain`. */
  get workflowHooks(): WorkflowHooks {
    return this.#hooks;
  }

  /** Whether it wants a report of each settlement. */
  get observesSettlements(): boolean {
    return this.#hooks.onSettled !== undefined;
  }

  start(runtime: RuntimeView): void {
    this.#started = true;
    this.contain('onStart', () => this.#hooks.onStart?.(runtime));
  }

  drain(): void {
    this.contain('onDrain', () => this.#hooks.onDrain?.());
  }

  close(): void {
    if (this.#started) this.contain('onClose', () => this.#hooks.onClose?.());
  }

  startRun(plan: HandlerPlan, record: DeliveryRecord): RunObserver | undefined {
    if (this.#hooks.startRun === undefined) return undefined;
    return this.contain('startRun', () => this.#hooks.startRun?.(runStart(plan, record)));
  }

  /** Fields of each log line about the run. */
  logFields(observer: RunObserver | undefined): LogFields | undefined {
    return observer && this.contain('logFields', () => observer.logFields);
  }

  /** `run`, once, as part of what `observer` observes: what it gives or throws comes out, whatever the observer does. */
  within<T>(observer: Pick<RunObserver, 'within'> | undefined, run: () => T): T {
    if (observer === undefined) return run();
    const once = new Once(run);
    try {
      observer.within(() => once.result());
      if (!once.hasRun) this.#failed('within', new Error('it did not call what it was given'));
    } catch (error) {
      if (!once.threw(error)) this.#failed('within', error);
    }
    return once.result();
  }

  /** Runs a batch handler; each record gets the observer of its own run. */
  aroundBatch(plan: HandlerPlan, records: readonly DeliveryRecord[], run: () => Promise<unknown>): Promise<unknown> {
    if (this.#hooks.startBatch === undefined) return run();
    const { name: handler, spec } = plan;
    const deliveries = records.map((record) => runStart(plan, record));
    const start = { handler, subscription: spec.subscription, deliveries };
    const batch = this.contain('startBatch', () => this.#hooks.startBatch?.(start));
    if (batch === undefined) return run();
    for (const [i, record] of records.entries()) record.observer = this.contain('startBatch', () => batch.runs[i]);
    return this.#observed(batch, run);
  }

  settled(observer: RunObserver | undefined, report: SettlementReport): void {
    if (observer !== undefined) this.contain('settled', () => observer.settled(report));
    if (this.observesSettlements) this.contain('onSettled', () => this.#hooks.onSettled?.(report));
  }

  settlementFailed(observer: RunObserver, call: string, error: Error, report: SettlementReport): void {
    this.contain('settlementFailed', () => observer.settlementFailed(call, error, report));
  }

  dropped(observer: RunObserver | undefined): void {
    if (observer !== undefined) this.contain('dropped', () => observer.dropped());
  }

  startAcknowledge(observer: RunObserver | undefined): CallObserver | undefined {
    if (observer === undefined) return undefined;
    return this.contain('startAcknowledge', () => observer.startAcknowledge?.());
  }

  startTransaction(observer: RunObserver | undefined, call: TransactionCall): CallObserver | undefined {
    if (observer === undefined) return undefined;
    return this.contain('startTransaction', () => observer.startTransaction?.(call));
  }

  startPublish(start: PublishStart): ObservedPublish | undefined {
    if (this.#hooks.startPublish === undefined) return undefined;
    const observer = this.contain('startPublish', () => this.#hooks.startPublish?.(start));
    if (observer === undefined) return undefined;
    const properties = this.contain('properties', () => readProperties(observer));
    return { observer, properties: properties ?? start.message.properties };
  }

  done(observer: CallObserver | undefined): void {
    if (observer !== undefined) this.contain('done', () => observer.done());
  }

  published(publish: ObservedPublish | undefined, id: MessageId): void {
    if (publish !== undefined) this.contain('done', () => publish.observer.done(id));
  }

  failed(observer: Pick<CallObserver, 'failed'> | undefined, error: Error): void {
    if (observer !== undefined) this.contain('failed', () => observer.failed(error));
  }

  #hooksOf(telemetry: Telemetry): Telemetry {
    const hook = <K extends keyof Telemetry>(name: K): { readonly [name in K]?: NonNullable<Telemetry[K]> } => {
      const found = this.contain(name, () => callable(telemetry, name));
      return found === undefined ? {} : ({ [name]: found } as { readonly [name in K]: NonNullable<Telemetry[K]> });
    };
    return {
      ...hook('onStart'),
      ...hook('startRun'),
      ...hook('startBatch'),
      ...hook('startPublish'),
      ...hook('onSettled'),
      ...hook('contextOf'),
      ...hook('startActivation'),
      ...hook('onWorkflow'),
      ...hook('onWorkflowCounts'),
      ...hook('onDrain'),
      ...hook('onClose'),
    };
  }

  async #observed(batch: BatchObserver, run: () => Promise<unknown>): Promise<unknown> {
    let error: Error | undefined;
    try {
      return await this.within(batch, run);
    } catch (thrown) {
      error = toError(thrown);
      throw thrown;
    } finally {
      this.contain('ended', () => batch.ended(error));
    }
  }

  /** What `call` gives; undefined where it throws, which is logged. */
  contain<T>(hook: string, call: () => T): T | undefined {
    try {
      const result = call();
      containRejection(result, (error) => this.#failed(hook, error));
      return result;
    } catch (error) {
      this.#failed(hook, error);
      return undefined;
    }
  }

  #failed(hook: string, error: unknown): void {
    this.#logger.error('telemetry failed', { hook, error: toError(error) });
  }
}

function callable<K extends keyof Telemetry>(telemetry: Telemetry, name: K): NonNullable<Telemetry[K]> | undefined {
  const found: unknown = telemetry[name];
  if (found === undefined) return undefined;
  if (typeof found === 'function') return found.bind(telemetry) as NonNullable<Telemetry[K]>;
  throw new TypeError(`it must be a function, got ${describeValue(found)}`);
}

/** A copy, checked after it was made: what was checked is what is sent. */
function readProperties(observer: PublishObserver): MessageProperties {
  const { properties } = observer;
  if (typeof properties === 'object' && (properties as unknown) !== null) {
    const copy = copyProperties(properties);
    if (areProperties(copy)) return copy;
  }
  throw new TypeError('the properties it gave are not an object of texts');
}

function runStart(plan: HandlerPlan, record: DeliveryRecord): RunStart {
  const { id, key, properties, redeliveryCount } = record.message;
  return {
    handler: plan.name,
    subscription: plan.spec.subscription,
    topic: record.originTopic,
    topicTemplate: plan.topicTemplate,
    id,
    key,
    properties,
    attempt: record.attempt,
    redeliveryCount,
    payloadBytes: record.payloadBytes,
  };
}
