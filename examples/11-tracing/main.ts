// One order fails three times and becomes a dead letter. Its spans go to a collector through OpenTelemetry's own exporter;
// what arrived there is printed as a tree, and drawn where a file is named: `main.ts tracing.svg`.
import { writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { Runtime, consoleLogger, deadLetterTopicName, defineHandler, fixedBackoff, success, topic } from 'pulsework';
import { openTelemetry } from 'pulsework/otel'; // line 1
import { z } from 'zod';
import { startFailed, topics, transport } from '../broker.js';
import { Collector } from './collector.js';
import { pictureOf } from './picture.js';
import { registerSdk } from './sdk.js';
import { spanTree, treeLines } from './span-tree.js';

const orders = topic('orders', { payload: z.object({ id: z.string(), cents: z.int() }) });
const tracer = trace.getTracer('shop');

class BankTimeout extends Error {
  override readonly name = 'BankTimeout';
}

/** Spans that a handler makes stand below its own. */
async function charge(): Promise<never> {
  return tracer.startActiveSpan('charge card', { kind: SpanKind.CLIENT }, async (span) => {
    await wait(30);
    span.setAttribute('error.type', 'BankTimeout').setStatus({ code: SpanStatusCode.ERROR }).end();
    throw new BankTimeout('the bank did not answer');
  });
}

const billing = defineHandler({
  name: 'billing',
  source: orders,
  subscription: 'billing',
  redelivery: { maxDeliveries: 3, backoff: fixedBackoff(100) },
  handle: charge,
});

let seen: () => void = () => undefined;
const deadLetterSeen = new Promise<void>((resolve) => (seen = resolve));
const desk = defineHandler({
  name: 'dead-letter-desk',
  source: topic(deadLetterTopicName(orders.name, 'billing')),
  subscription: 'desk',
  handle: async () => {
    await wait(10);
    seen();
    return success();
  },
});

const collector = await Collector.start();
const sdk = registerSdk(collector.url); // before the runtime: it looks once for what records
const runtime = await Runtime.start({
  transport, // embedded, or the broker that PULSAR_URL names
  topics,
  telemetry: openTelemetry(), // line 2
  handlers: [billing, desk],
  logger: consoleLogger({ level: 'silent' }),
}).catch(startFailed);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void runtime.drain());

await tracer.startActiveSpan('POST /orders', { kind: SpanKind.SERVER }, async (span) => {
  await runtime.publisher(orders).publish({ id: 'A-1', cents: 4_200 });
  span.end();
});
await Promise.race([deadLetterSeen, runtime.closed]);
await runtime.drain();
await sdk.shutdown(); // after the runtime: it sends what is left
await collector.close();

const tree = spanTree(collector.spans);
const traces = new Set(collector.spans.map(({ traceId }) => traceId));
console.log(`service ${[...collector.services].join()}: ${tree.length} spans, ${traces.size} trace\n`);
console.log(treeLines(tree).join('\n'));

const [file] = process.argv.slice(2);
if (file !== undefined) writeFileSync(file, pictureOf(tree));
