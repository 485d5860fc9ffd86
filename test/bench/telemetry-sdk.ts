// The SDK as a service registers it, in the process of one variant: spans that are sampled go to a batch processor, and
// nowhere from there; metrics are read when asked for.
import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { ExportResult } from '@opentelemetry/core';
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { MessageProperties } from '../../src/index.js';
import { MESSAGES } from './workload.js';

const SAMPLED_SHARE = 0.01;

let spansExported = 0;

const NOWHERE: SpanExporter = {
  export(spans: ReadableSpan[], done: (result: ExportResult) => void) {
    spansExported += spans.length;
    done({ code: ExportResultCode.SUCCESS });
  },
  shutdown: async () => undefined,
};

class AskedReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {
    // Nothing is open.
  }

  protected override async onForceFlush(): Promise<void> {
    // Read when asked.
  }
}

let tracing: TracerProvider | undefined;
let reader: AskedReader | undefined;

/** Once in a process, however often it is called. */
export function registerTracing(): void {
  if (tracing !== undefined) return;
  tracing = new TracerProvider({
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(SAMPLED_SHARE) }),
    spanProcessors: [new BatchSpanProcessor({ exporter: NOWHERE })],
  });
  trace.setGlobalTracerProvider(tracing);
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
}

/** Once in a process, however often it is called. */
export function registerMetrics(): void {
  if (reader !== undefined) return;
  reader = new AskedReader();
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
}

/** Fails where the spans, or the durations, of the round are not there: then nothing was measured. */
export async function checkRecorded(): Promise<void> {
  if (tracing !== undefined) {
    spansExported = 0;
    await tracing.forceFlush();
    if (spansExported === 0) throw new Error('no span was exported');
  }
  if (reader !== undefined) {
    const { resourceMetrics, errors } = await reader.collect();
    const recorded = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    if (errors.length > 0 || !recorded.some(({ descriptor }) => descriptor.name === 'messaging.process.duration'))
      throw new AggregateError(errors, 'no duration was recorded');
  }
}

/** The context of a traced sender that samples the same share, by ids that count up. */
const SENT_WITH: readonly MessageProperties[] = Array.from({ length: MESSAGES }, (_, n) => {
  const traceId = (n + 1).toString(16).padStart(32, 'a');
  const spanId = (n + 1).toString(16).padStart(16, 'b');
  return { traceparent: `00-${traceId}-${spanId}-${n % (1 / SAMPLED_SHARE) === 0 ? '01' : '00'}` };
});

export function sentWith(n: number): MessageProperties {
  return SENT_WITH[n % MESSAGES] ?? {};
}
