// OpenTelemetry's SDK for a soak: spans are sampled and counted, metrics are read each second, callbacks are counted.
import type { Meter, MeterOptions, MeterProvider as MeterProviderApi } from '@opentelemetry/api';
import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import { toError } from '../../../src/core/errors.js';
import { SpanAccount } from './span-account.js';

const SAMPLED_SHARE = 0.25;
const READ_EVERY_MS = 1_000;
/** What one provider needs, however many runtimes report to it: one for counts, one for gauges. */
const CALLBACKS = 2;
/** Far above what the handlers of a soak can make. */
const MAX_SERIES = 500;
/** What a closed subscription has none of. */
const EMPTY_AFTER_CLOSE = /^pulsework\.(deliveries|keys|dependencies|run|failure)\./;

class AskedReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {
    // Nothing is open.
  }

  protected override async onForceFlush(): Promise<void> {
    // Read when asked.
  }
}

export class SoakTelemetry {
  readonly spans = new SpanAccount();
  readonly #reader = new AskedReader();
  readonly #problems = new Set<string>();
  #callbacks = 0;
  #collections = 0;
  #series = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Registers it, as an application does, and reads metrics from then on. */
  start(): void {
    const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(SAMPLED_SHARE) });
    trace.setGlobalTracerProvider(new TracerProvider({ sampler, spanProcessors: [this.spans] }));
    metrics.setGlobalMeterProvider(this.#counting(new MeterProvider({ readers: [this.#reader] })));
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    this.#timer = setInterval(() => void this.#read(), READ_EVERY_MS);
  }

  get collections(): number {
    return this.#collections;
  }

  get series(): number {
    return this.#series;
  }

  /** Once every runtime is closed. Gives what does not hold. */
  async stop(): Promise<readonly string[]> {
    clearInterval(this.#timer);
    for (const [name, value] of await this.#read()) {
      if (EMPTY_AFTER_CLOSE.test(name) && value !== 0)
        this.#problems.add(`${name} is ${JSON.stringify(value)} after close`);
    }
    if (this.#callbacks > CALLBACKS)
      this.#problems.add(`${this.#callbacks} observable callbacks are left after close, ${CALLBACKS} serve a provider`);
    if (this.#series > MAX_SERIES) this.#problems.add(`${this.#series} series, more than ${MAX_SERIES}`);
    return [...this.#problems];
  }

  async #read(): Promise<readonly (readonly [name: string, value: unknown])[]> {
    const { resourceMetrics, errors } = await this.#reader.collect();
    for (const error of errors) this.#problems.add(`metrics could not be read: ${toError(error).message}`);
    const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    const points = all.flatMap(({ descriptor, dataPoints }) =>
      dataPoints.map(({ value }) => [descriptor.name, value] as const),
    );
    this.#collections += 1;
    this.#series = points.length;
    return points;
  }

  /** The SDK gives the same meter for the same name: its methods are replaced once. */
  #counting(provider: MeterProvider): MeterProviderApi {
    const counted = new WeakSet<Meter>();
    return {
      getMeter: (name: string, version?: string, options?: MeterOptions): Meter => {
        const meter = provider.getMeter(name, version, options);
        if (!counted.has(meter)) this.#count(meter);
        counted.add(meter);
        return meter;
      },
    };
  }

  #count(meter: Meter): void {
    const add = meter.addBatchObservableCallback.bind(meter);
    const remove = meter.removeBatchObservableCallback.bind(meter);
    meter.addBatchObservableCallback = (...args) => {
      this.#callbacks += 1;
      add(...args);
    };
    meter.removeBatchObservableCallback = (...args) => {
      this.#callbacks -= 1;
      remove(...args);
    };
  }
}
