// What a service does with one line of OpenTelemetry and one Node: it starts a runtime on the embedded broker, before an SDK
// is registered and after it, and looks at the spans and metrics of a retry and of a dead letter. It needs nothing but the
// packages beside it. Each thing that is not as expected is a line on standard output, and the exit code is 1 then.
import { EventEmitter, once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { SpanKind, SpanStatusCode, context, diag, DiagLogLevel, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { Runtime, defineHandler, fixedBackoff, success, topic } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { openTelemetry } from 'pulsework/otel';

const TREE = `
request
  send orders
    process orders attempt=1 outcome=retry settlement=redeliver ERROR CardDeclined linked
    process orders attempt=2 outcome=success settlement=acknowledge linked
      charge card
      send receipts
        process receipts attempt=1 outcome=success settlement=acknowledge linked
request
  send orders
    process orders attempt=1 outcome=retry settlement=redeliver ERROR CardDeclined linked
    process orders attempt=2 outcome=retry settlement=dead-letter ERROR CardDeclined linked
      send orders-billing-DLQ linked
        process orders-billing-DLQ attempt=1 outcome=success settlement=acknowledge linked linked
`.trim();

/** The sums of all series of a metric; of histograms how many were recorded. */
const METRICS = {
  'messaging.client.consumed.messages': 6,
  'messaging.client.operation.duration': 4,
  'messaging.client.sent.messages': 4,
  'messaging.process.duration': 6,
  'pulsework.attempts': 6,
  'pulsework.dead_letters': 1,
  'pulsework.deliveries.blocked': 0,
  'pulsework.deliveries.held': 0,
  'pulsework.deliveries.kept': 0,
  'pulsework.deliveries.running': 0,
  'pulsework.dependencies.down': 0,
  'pulsework.drain.duration': 1,
  'pulsework.failure.oldest_age': 0,
  'pulsework.keys.waiting': 0,
  'pulsework.outcomes': 6,
  'pulsework.run.oldest_age': 0,
  'pulsework.settlements': 6,
  'pulsework.subscription.backlog': 0,
  'pulsework.subscription.degraded': 0,
  'pulsework.subscription.paused': 0,
};

class CardDeclined extends Error {}

class AskedReader extends MetricReader {
  async onShutdown() {
    // Nothing is open.
  }

  async onForceFlush() {
    // Read when asked.
  }
}

const problems = [];

function expect(what, actual, expected) {
  const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value, undefined, 2));
  if (!isDeepStrictEqual(actual, expected))
    problems.push(`${what}: ${shown(actual)}\nbut expected: ${shown(expected)}`);
}

/** What an operator is to know; the rest is of no interest here. */
function loggerTo(warnings) {
  const silent = () => undefined;
  const keep = (message, fields) => {
    if (/opentelemetry|telemetry/i.test(message)) warnings.push(message);
    else if (!/^delivery |dead letter/.test(message))
      problems.push(`logged: ${message} ${JSON.stringify(fields ?? {})}`);
  };
  return { debug: silent, info: silent, warn: keep, error: keep };
}

const orders = topic('orders');
const receipts = topic('receipts');

/** @param ends tells of each receipt and each dead letter that was handled. */
async function startShop(ends, warnings) {
  const charge = async ({ payload, attempt }) => {
    if (payload === 'o-2' || attempt === 1) throw new CardDeclined('card declined');
    // Made after a turn of the loop: its parent is the run only where context goes on.
    await new Promise((resolve) => process.nextTick(resolve));
    trace.getTracer('app').startSpan('charge card').end();
    return success(receipts.message(payload));
  };
  const end = () => (ends.emit('end'), success());
  return Runtime.start({
    transport: embedded(),
    telemetry: openTelemetry(),
    logger: loggerTo(warnings),
    redelivery: { backoff: fixedBackoff(50), maxDeliveries: 2 },
    handlers: [
      defineHandler({ name: 'charge', source: orders, subscription: 'billing', handle: charge }),
      defineHandler({ name: 'mail', source: receipts, subscription: 'mail', handle: end }),
      defineHandler({ name: 'look', source: 'orders-billing-DLQ', subscription: 'operations', handle: end }),
    ],
  });
}

async function order(runtime, ends, id) {
  const ended = once(ends, 'end');
  await trace.getTracer('app').startActiveSpan('request', { kind: SpanKind.SERVER }, async (span) => {
    await runtime.publisher(orders).publish(id);
    span.end();
  });
  await ended;
}

function treeOf(spans) {
  const lines = [];
  const write = (span, indent) => {
    const { name, attributes, status, links } = span;
    const own = ['attempt', 'outcome', 'settlement'].map((key) => [key, attributes[`pulsework.${key}`]]);
    const parts = own.filter(([, value]) => value !== undefined).map(([key, value]) => `${key}=${value}`);
    if (status.code !== SpanStatusCode.UNSET) parts.push(SpanStatusCode[status.code], attributes['error.type']);
    parts.push(...links.map(() => 'linked'));
    lines.push([indent + name.replace('persistent://public/default/', ''), ...parts].join(' '));
    const { spanId } = span.spanContext();
    for (const child of spans) if (child.parentSpanContext?.spanId === spanId) write(child, `${indent}  `);
  };
  for (const span of spans) if (span.parentSpanContext === undefined) write(span, '');
  return lines.join('\n');
}

async function sumsOf(reader) {
  const { resourceMetrics, errors } = await reader.collect();
  for (const error of errors) problems.push(`collecting: ${error}`);
  // Others measure as well: the SDK itself does on newer lines.
  const ours = resourceMetrics.scopeMetrics.filter(({ scope }) => scope.name === 'pulsework');
  const all = ours.flatMap((scope) => scope.metrics).filter(({ dataPoints }) => dataPoints.length > 0);
  const sumOf = ({ dataPoints }) => dataPoints.reduce((sum, { value }) => sum + (value.count ?? value), 0);
  const sums = all.map((metric) => [metric.descriptor.name, sumOf(metric)]);
  return Object.fromEntries(sums.sort(([a], [b]) => (a < b ? -1 : 1)));
}

diag.setLogger(loggerTo(problems), DiagLogLevel.WARN);

// Started too early: says so, and nothing is made for any message, also not once there is an SDK.
const early = { ends: new EventEmitter(), warnings: [] };
const earlyRuntime = await startShop(early.ends, early.warnings);

const starts = [];
const noteStart = {
  onStart: (span) => starts.push(span.spanContext().spanId),
  onEnd: () => undefined,
  forceFlush: async () => undefined,
  shutdown: async () => undefined,
};
const exporter = new InMemorySpanExporter();
const resource = resourceFromAttributes({ 'service.name': 'shop' });
const tracerProvider = new TracerProvider({
  resource,
  spanProcessors: [noteStart, new SimpleSpanProcessor({ exporter })],
});
const reader = new AskedReader();
const meterProvider = new MeterProvider({ resource, readers: [reader] });
trace.setGlobalTracerProvider(tracerProvider);
metrics.setGlobalMeterProvider(meterProvider);
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

await order(earlyRuntime, early.ends, 'o-1');
await earlyRuntime.drain();
await tracerProvider.forceFlush();
expect(
  'warnings before the SDK',
  early.warnings.map((line) => line.split(',')[0]),
  ['no OpenTelemetry SDK is registered'],
);
const namesOf = (spans) => spans.map(({ name }) => name).sort();
expect('spans of what was started before the SDK', namesOf(exporter.getFinishedSpans()), ['charge card', 'request']);
expect('metrics of what was started before the SDK', await sumsOf(reader), {});
exporter.reset();
starts.length = 0;

// The SDK is there first: everything is there.
const shop = { ends: new EventEmitter(), warnings: [] };
const runtime = await startShop(shop.ends, shop.warnings);
await order(runtime, shop.ends, 'o-1');
await order(runtime, shop.ends, 'o-2');
// Gauges of what is closed are 0, and nothing where nobody ever asked for them.
await reader.collect();
await runtime.drain();
await tracerProvider.forceFlush();
const spans = exporter.getFinishedSpans();
const place = (span) => starts.indexOf(span.spanContext().spanId);
expect('warnings with an SDK', shop.warnings, []);
expect('spans without an end', starts.length - spans.length, 0);
expect('tree of spans', treeOf([...spans].sort((a, b) => place(a) - place(b))), TREE);
expect('metrics', await sumsOf(reader), METRICS);
const services = new Set(spans.map((span) => span.resource.attributes['service.name']));
expect('services', [...services], ['shop']);

await tracerProvider.shutdown();
await meterProvider.shutdown();
for (const problem of problems) console.log(problem);
if (problems.length === 0)
  console.log(`${process.version}: ${spans.length} spans, ${Object.keys(METRICS).length} metrics`);
else process.exitCode = 1;
