// Whether an SDK is there, found out once at start: without one, the work for spans and numbers would go nowhere.
import type { Meter, Tracer } from '@opentelemetry/api';
import { ROOT_CONTEXT, TraceFlags, context, createContextKey, createNoopMeter, trace } from '@opentelemetry/api';

/** Not sampled: the usual samplers then drop the probe too. One that takes everything exports one short span. */
const PROBE_PARENT = {
  traceId: '70726f6265206f662070756c73617221',
  spanId: '70726f6265000001',
  traceFlags: TraceFlags.NONE,
  isRemote: true,
};

/** Without an SDK a span is its parent: there is nothing that makes ids. */
export function makesSpans(tracer: Tracer): boolean {
  const probe = tracer.startSpan('pulsework probe', {}, trace.setSpanContext(ROOT_CONTEXT, PROBE_PARENT));
  probe.end();
  return probe.spanContext().spanId !== PROBE_PARENT.spanId;
}

export function makesMetrics(meter: Meter): boolean {
  return meter !== createNoopMeter();
}

/** Whether what is active follows a call: without a context manager nothing is ever active. */
export function carriesContext(): boolean {
  const probe = ROOT_CONTEXT.setValue(createContextKey('pulsework probe'), true);
  return context.with(probe, () => context.active() === probe);
}
