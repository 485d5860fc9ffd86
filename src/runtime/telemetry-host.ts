// The telemetry of a runtime, contained: what it throws is logged and changes nothing. Without telemetry every call here
// ends at once.
import { containRejection, toError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { areProperties } from '../core/properties.js';
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
} from '../ports/telemetry.js';
import type { DeliveryRecord } from './delivery-record.js';
import type { HandlerPlan } from './handler-plan.js';

export class TelemetryHost {
  readonly #telemetry: Telemetry | undefined;
  readonly #logger: Logger;
  #started = false;

  constructor(telemetry: Telemetry | undefined, logger: Logger) {
    this.#telemetry = telemetry;
    this.#logger = logger;
  }

  /** Whether it wants a report of each settlement. */
  get observesSettlements(): boolean {
    return this.#telemetry?.onSettled !== undefined;
  }

  start(runtime: RuntimeView): void {
    this.#started = true;
    this.#contain('onStart', () => this.#telemetry?.onStart?.(runtime));
  }

  drain(): void {
    this.#contain('onDrain', () => this.#telemetry?.onDrain?.());
  }

  close(): void {
    if (this.#started) this.#contain('onClose', () => this.#telemetry?.onClose?.());
  }

  startRun(plan: HandlerPlan, record: DeliveryRecord): RunObserver | undefined {
    if (this.#telemetry?.startRun === undefined) return undefined;
    return this.#contain('startRun', () => this.#telemetry?.startRun?.(runStart(plan, record)));
  }

  /** Fields of each log line about the run. */
  logFields(observer: RunObserver | undefined): LogFields | undefined {
    return observer && this.#contain('logFields', () => observer.logFields);
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
    if (this.#telemetry?.startBatch === undefined) return run();
    const { name: handler, spec } = plan;
    const deliveries = records.map((record) => runStart(plan, record));
    const start = { handler, subscription: spec.subscription, deliveries };
    const batch = this.#contain('startBatch', () => this.#telemetry?.startBatch?.(start));
    if (batch === undefined) return run();
    for (const [i, record] of records.entries()) record.observer = this.#contain('startBatch', () => batch.runs[i]);
    return this.#observed(batch, run);
  }

  settled(observer: RunObserver | undefined, report: SettlementReport): void {
    if (observer !== undefined) this.#contain('settled', () => observer.settled(report));
    if (this.observesSettlements) this.#contain('onSettled', () => this.#telemetry?.onSettled?.(report));
  }

  settlementFailed(observer: RunObserver, call: string, error: Error, report: SettlementReport): void {
    this.#contain('settlementFailed', () => observer.settlementFailed(call, error, report));
  }

  dropped(observer: RunObserver | undefined): void {
    if (observer !== undefined) this.#contain('dropped', () => observer.dropped());
  }

  startAcknowledge(observer: RunObserver | undefined): CallObserver | undefined {
    if (observer?.startAcknowledge === undefined) return undefined;
    return this.#contain('startAcknowledge', () => observer.startAcknowledge?.());
  }

  startPublish(start: PublishStart): PublishObserver | undefined {
    if (this.#telemetry?.startPublish === undefined) return undefined;
    return this.#contain('startPublish', () => {
      const observer = this.#telemetry?.startPublish?.(start);
      if (observer === undefined || areProperties(observer.properties)) return observer;
      throw new TypeError('the properties it gave are not an object of texts');
    });
  }

  done(observer: CallObserver | undefined): void {
    if (observer !== undefined) this.#contain('done', () => observer.done());
  }

  published(observer: PublishObserver | undefined, id: MessageId): void {
    if (observer !== undefined) this.#contain('done', () => observer.done(id));
  }

  failed(observer: Pick<CallObserver, 'failed'> | undefined, error: Error): void {
    if (observer !== undefined) this.#contain('failed', () => observer.failed(error));
  }

  async #observed(batch: BatchObserver, run: () => Promise<unknown>): Promise<unknown> {
    let error: Error | undefined;
    try {
      return await this.within(batch, run);
    } catch (thrown) {
      error = toError(thrown);
      throw thrown;
    } finally {
      this.#contain('ended', () => batch.ended(error));
    }
  }

  #contain<T>(hook: string, call: () => T): T | undefined {
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

/** A call that is made at most once, and its result for whoever asks. */
class Once<T> {
  readonly #call: () => T;
  #ended: { readonly value: T } | { readonly error: unknown } | undefined;

  constructor(call: () => T) {
    this.#call = call;
  }

  get hasRun(): boolean {
    return this.#ended !== undefined;
  }

  threw(error: unknown): boolean {
    return this.#ended !== undefined && 'error' in this.#ended && this.#ended.error === error;
  }

  /** @throws what the call threw. */
  result(): T {
    this.#ended ??= this.#make();
    if ('error' in this.#ended) throw this.#ended.error;
    return this.#ended.value;
  }

  #make(): { readonly value: T } | { readonly error: unknown } {
    try {
      return { value: this.#call() };
    } catch (error) {
      return { error };
    }
  }
}

function runStart(plan: HandlerPlan, record: DeliveryRecord): RunStart {
  const { id, key, properties, redeliveryCount } = record.message;
  return {
    handler: plan.name,
    subscription: plan.spec.subscription,
    topic: record.originTopic,
    id,
    key,
    properties,
    attempt: record.attempt,
    redeliveryCount,
    payloadBytes: record.payloadBytes,
  };
}
