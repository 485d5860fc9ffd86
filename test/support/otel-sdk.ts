// The real OpenTelemetry SDK with everything kept in memory: spans as they end, metrics when asked for. Ids are seeded.
import type { TextMapPropagator } from '@opentelemetry/api';
import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import type { CollectionResult, DataPoint, Histogram } from '@opentelemetry/sdk-metrics';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { IdGenerator, ReadableSpan, Sampler, SpanProcessor } from '@opentelemetry/sdk-trace';
import { TracerProvider } from '@opentelemetry/sdk-trace';

/** Ids that count up, so that a failure shows the same ids each time. */
class CountedIds implements IdGenerator {
  #next = 0;

  generateTraceId(): string {
    return (++this.#next).toString(16).padStart(32, 'a');
  }

  generateSpanId(): string {
    return (++this.#next).toString(16).padStart(16, 'b');
  }
}

class AskedReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {
    // Nothing is open.
  }

  protected override async onForceFlush(): Promise<void> {
    // Read when asked.
  }
}

export interface Point {
  readonly value: number | Histogram;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export class OtelSdk {
  /** In the order in which they ended. */
  readonly spans: ReadableSpan[] = [];
  /** Their ids, in the order in which they started. */
  readonly startOrder: string[] = [];
  readonly tracerProvider: TracerProvider;
  readonly propagator: TextMapPropagator = new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
  });
  readonly #reader = new AskedReader();
  readonly meterProvider = new MeterProvider({ readers: [this.#reader] });

  constructor(sampler?: Sampler) {
    const recorder: SpanProcessor = {
      onStart: (span) => void this.startOrder.push(span.spanContext().spanId),
      onEnd: (span) => void this.spans.push(span),
      forceFlush: async () => undefined,
      shutdown: async () => undefined,
    };
    const idGenerator = new CountedIds();
    this.tracerProvider = new TracerProvider({ spanProcessors: [recorder], idGenerator, ...(sampler && { sampler }) });
  }

  /** Makes it the global one, as an application does. */
  register(): void {
    trace.setGlobalTracerProvider(this.tracerProvider);
    metrics.setGlobalMeterProvider(this.meterProvider);
    propagation.setGlobalPropagator(this.propagator);
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  }

  static unregister(): void {
    trace.disable();
    metrics.disable();
    propagation.disable();
    context.disable();
  }

  get started(): number {
    return this.startOrder.length;
  }

  span(name: string): ReadableSpan {
    const found = this.spans.filter((span) => span.name === name);
    if (found.length !== 1) throw new Error(`${found.length} spans are named ${name}: ${this.names.join(', ')}`);
    return found[0] as ReadableSpan;
  }

  get names(): string[] {
    return this.spans.map(({ name }) => name);
  }

  collect(): Promise<CollectionResult> {
    return this.#reader.collect();
  }

  /** The points of each metric that has any. */
  async points(): Promise<ReadonlyMap<string, readonly Point[]>> {
    const { resourceMetrics, errors } = await this.collect();
    if (errors.length > 0) throw new AggregateError(errors, 'collecting failed');
    const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    return new Map(
      all.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        (dataPoints as DataPoint<number | Histogram>[]).map(({ value, attributes }) => ({ value, attributes })),
      ]),
    );
  }
}
