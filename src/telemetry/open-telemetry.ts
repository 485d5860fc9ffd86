// OpenTelemetry behind the telemetry port: looks at start for what records, and makes spans and numbers only for that.
import type { Attributes } from '@opentelemetry/api';
import { metrics, propagation, trace } from '@opentelemetry/api';
import { toError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { formatMessageId } from '../core/message-id.js';
import type { MessageProperties } from '../core/properties.js';
import { VERSION } from '../core/version.js';
import type { RuntimeView } from '../ports/runtime-view.js';
import type {
  BatchObserver,
  BatchStart,
  CallObserver,
  PublishObserver,
  PublishStart,
  RunObserver,
  RunStart,
  SettlementReport,
  Telemetry,
  TransactionCall,
} from '../ports/telemetry.js';
import type { WorkflowCount, WorkflowProgress } from '../ports/workflow-progress.js';
import type { ActivationObserver, ActivationStart } from '../ports/workflow-telemetry.js';
import type { CallSpan } from './call-span.js';
import { MessageCarrier } from './message-carrier.js';
import { Metering } from './metering.js';
import { MetricBook } from './metric-book.js';
import type { SettlingCalls } from './observed-run.js';
import { ObservedBatch, ObservedRun } from './observed-run.js';
import type { OpenTelemetryOptions, ResolvedOptions } from './open-telemetry-options.js';
import { resolveOpenTelemetryOptions } from './open-telemetry-options.js';
import { carriesContext, makesMetrics, makesSpans } from './recording.js';
import { DESTINATION_PARTITION_ID, MESSAGE_ID } from './semconv.js';
import { Tracing } from './tracing.js';
import { WorkflowMetering } from './workflow-metering.js';

/**
 * Traces and metrics of one runtime: `Runtime.start({ telemetry: openTelemetry(), ... })`. An SDK must be registered
 * before that; without one nothing is traced or measured, at no cost, and a warning says so.
 * @throws ConfigurationError that lists every wrong or unknown option.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  return new OpenTelemetry(resolveOpenTelemetryOptions(options));
}

class OpenTelemetry implements Telemetry {
  readonly #options: ResolvedOptions;
  readonly #settling: SettlingCalls;
  #open = 0;
  #tracing: Tracing | undefined;
  #metering: Metering | undefined;
  #workflows: WorkflowMetering | undefined;
  #now: () => number = () => 0;
  #drainStartedMs: number | undefined;
  #failed: (hook: string, error: unknown) => void = () => undefined;

  constructor(options: ResolvedOptions) {
    this.#options = options;
    const asks = options.settleSpans !== 'off' || options.acknowledgeDuration;
    this.#settling = {
      acknowledge: asks ? (run) => this.#startAcknowledge(run) : undefined,
      transaction: (run, call) => this.#startTransaction(run, call),
    };
  }

  onStart(runtime: RuntimeView): void {
    this.#open += 1;
    if (this.#open > 1) {
      runtime.logger.error(
        'one openTelemetry() was given to two runtimes; give each its own, or gauges show one of them',
      );
      return;
    }
    this.#now = () => runtime.clock.now();
    this.#failed = (hook, error) => runtime.logger.error('telemetry failed', { hook, error: toError(error) });
    this.#drainStartedMs = undefined;
    // Numbers first: a propagator may throw.
    this.#metering = this.#newMetering(runtime);
    this.#tracing = this.#newTracing(runtime);
    if (this.#tracing === undefined && this.#metering === undefined) {
      const rule = 'register an SDK before Runtime.start, and see that "npm ls @opentelemetry/api" shows one version';
      runtime.logger.warn(`no OpenTelemetry SDK is registered, so nothing is traced or measured; ${rule}`);
    }
  }

  startRun(start: RunStart): RunObserver | undefined {
    if (this.#tracing === undefined && this.#metering === undefined) return undefined;
    const span = this.#made('startRun', () => this.#tracing?.startRun(start));
    return new ObservedRun(start, span, this.#metering?.runStarted(start), this.#settling);
  }

  startBatch(start: BatchStart): BatchObserver | undefined {
    if (this.#tracing === undefined && this.#metering === undefined) return undefined;
    const spans = this.#made('startBatch', () => this.#tracing?.startBatch(start));
    const runs = start.deliveries.map(
      (delivery, i) => new ObservedRun(delivery, spans?.runs[i], this.#metering?.runStarted(delivery), this.#settling),
    );
    return new ObservedBatch(spans?.batch, runs);
  }

  startPublish(start: PublishStart): PublishObserver | undefined {
    if (this.#tracing === undefined && this.#metering === undefined) return undefined;
    const { topic, message, run } = start;
    const follows = run instanceof ObservedRun ? run.span : undefined;
    const span = this.#made('startPublish', () => this.#tracing?.startPublish(start, follows));
    const metering = this.#metering;
    const startedMs = this.#now();
    return {
      properties: span?.properties ?? message.properties,
      done: (id) => {
        metering?.published(topic, startedMs, undefined);
        span?.call.done(() => storedAttributes(id));
      },
      failed: (error) => {
        metering?.published(topic, startedMs, error);
        span?.call.failed(error);
      },
    };
  }

  onSettled(report: SettlementReport): void {
    this.#metering?.settled(report);
  }

  contextOf(properties: MessageProperties): MessageProperties {
    return this.#tracing?.workflows.contextOf(properties) ?? {};
  }

  startActivation(start: ActivationStart): ActivationObserver | undefined {
    const ended = this.#workflows?.activationStarted(start.workflow);
    const span = this.#made('startActivation', () => this.#tracing?.workflows.startActivation(start));
    return ended === undefined ? span : withEnd(span, ended);
  }

  onWorkflow(progress: WorkflowProgress): void {
    this.#workflows?.happened(progress);
  }

  onWorkflowCounts(counts: readonly WorkflowCount[]): void {
    this.#workflows?.counted(counts);
  }

  onDrain(): void {
    this.#drainStartedMs ??= this.#now();
  }

  onClose(): void {
    this.#open = Math.max(0, this.#open - 1);
    if (this.#open > 0) return;
    const [tracing, metering, started] = [this.#tracing, this.#metering, this.#drainStartedMs];
    this.#tracing = undefined;
    this.#metering = undefined;
    this.#workflows = undefined;
    metering?.close(started === undefined ? undefined : this.#now() - started);
    tracing?.close();
  }

  /** Spans that a sampler or a span processor throws at are not there; the numbers are all the same. */
  #made<T>(hook: string, make: () => T | undefined): T | undefined {
    try {
      return make();
    } catch (error) {
      this.#failed(hook, error);
      return undefined;
    }
  }

  #newTracing({ logger }: RuntimeView): Tracing | undefined {
    const { tracerProvider, propagator } = this.#options;
    const tracer = (tracerProvider ?? trace.getTracerProvider()).getTracer('pulsework', VERSION);
    if (!makesSpans(tracer)) return undefined;
    const used = propagator ?? {
      inject: propagation.inject.bind(propagation),
      extract: propagation.extract.bind(propagation),
      fields: () => propagation.fields(),
    };
    if (used.fields().length === 0) {
      const rule = 'propagation.setGlobalPropagator(new W3CTraceContextPropagator()), or the option "propagator"';
      logger.warn(
        `no OpenTelemetry propagator is registered, so each trace ends where a message is published; ${rule}`,
      );
    }
    if (!carriesContext()) {
      const rule = 'context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())';
      logger.warn(`no OpenTelemetry context manager is registered, so spans made in handlers stand apart; ${rule}`);
    }
    return new Tracing(tracer, new MessageCarrier(used, this.#failed), this.#options);
  }

  #newMetering(runtime: RuntimeView): Metering | undefined {
    const provider = this.#options.meterProvider ?? metrics.getMeterProvider();
    if (!makesMetrics(provider.getMeter('pulsework', VERSION))) return undefined;
    this.#workflows = new WorkflowMetering(provider.getMeter('pulsework', VERSION), this.#options);
    return new Metering(MetricBook.of(provider), runtime, this.#options);
  }

  #startAcknowledge({ start, span, meter }: ObservedRun): CallObserver {
    const { settleSpans, acknowledgeDuration } = this.#options;
    const tracing = span === undefined || settleSpans === 'off' ? undefined : this.#tracing;
    const startedMs = this.#now();
    const open = (at?: number): CallSpan | undefined =>
      span && this.#made('startAcknowledge', () => tracing?.startAcknowledge(start, span, at));
    const made = settleSpans === 'all' ? open() : undefined;
    const measure = (error: Error | undefined): void => {
      if (acknowledgeDuration) meter?.acknowledged(startedMs, error);
    };
    return {
      done: () => {
        measure(undefined);
        made?.done();
      },
      failed: (error) => {
        measure(error);
        (made ?? open(startedMs))?.failed(error);
      },
    };
  }

  #startTransaction({ start, span, meter }: ObservedRun, call: TransactionCall): CallObserver {
    const made = span && this.#made('startTransaction', () => this.#tracing?.startTransaction(call, start, span));
    return {
      done: () => {
        meter?.transactionCall(call, undefined);
        made?.done();
      },
      failed: (error) => {
        meter?.transactionCall(call, error);
        made?.failed(error);
      },
    };
  }
}

/** The number first: a span processor may throw. */
function withEnd(span: ActivationObserver | undefined, ended: () => void): ActivationObserver {
  return {
    propertiesOf: (properties) => span?.propertiesOf(properties) ?? properties,
    startStep: (start) => span?.startStep(start),
    ended: (end) => {
      ended();
      span?.ended(end);
    },
  };
}

function storedAttributes(id: MessageId): Attributes {
  const partition = id.partition >= 0 && { [DESTINATION_PARTITION_ID]: String(id.partition) };
  return { [MESSAGE_ID]: formatMessageId(id), ...partition };
}
