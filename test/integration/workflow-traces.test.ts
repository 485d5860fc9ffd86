// The same workflows as on the embedded broker, over the wire on a real Pulsar: the exported spans equal the same files.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { SpanKind, trace } from '@opentelemetry/api';
import { afterEach, expect, vi } from 'vitest';
import { Runtime, consoleLogger } from 'pulsework';
import { openTelemetry } from 'pulsework/otel';
import { wire } from 'pulsework/wire';
import { Workflows, memoryWorkflowStore } from 'pulsework/workflow';
import { PROMPT_WORKFLOWS, START, SURROUNDINGS, defineJob } from '../scenario/telemetry/workflow-trace-scenarios.js';
import { OtelSdk } from '../support/otel-sdk.js';
import { test } from '../support/real-pulsar/integration-test.js';
import { traceTree } from '../support/trace-tree.js';

let cleanUp: () => Promise<unknown> = async () => undefined;
afterEach(async () => {
  OtelSdk.unregister();
  await cleanUp();
  cleanUp = async () => undefined;
});

test.for(Object.entries(PROMPT_WORKFLOWS))('the trace of a workflow: %s', async ([name, run], { pulsar }) => {
  const sdk = new OtelSdk();
  sdk.register();
  const namespace = `public/workflow-traces-${randomUUID()}`;
  await pulsar.admin.createNamespace(namespace);
  const { definitions, handlers } = SURROUNDINGS;
  const logger = consoleLogger({ level: 'silent' });
  const transport = wire({ serviceUrl: pulsar.serviceUrl });
  const runtime = await Runtime.start({ transport, telemetry: openTelemetry(), namespace, handlers, logger });
  cleanUp = async () => {
    await runtime.close();
    await pulsar.admin.deleteNamespace(namespace);
  };
  const all = [defineJob('job', run), ...definitions];
  const workflows = await Workflows.start({ runtime, store: memoryWorkflowStore(), definitions: all });

  await trace.getTracer('app').startActiveSpan('request', { kind: SpanKind.SERVER }, async (span) => {
    const handle = await workflows.start('job', START);
    await handle.result();
    span.end();
  });
  await vi.waitUntil(() => sdk.spans.length === sdk.started, { timeout: 60_000, interval: 10 });
  await runtime.drain();

  const rename = (text: string): string => text.replaceAll(namespace, 'public/default');
  const expected = new URL(`../scenario/telemetry/expected-workflows/${name}.txt`, import.meta.url);
  expect(sdk.spans).toHaveLength(sdk.started);
  expect(traceTree(sdk.spans, { startOrder: sdk.startOrder, rename })).toBe(readFileSync(expected, 'utf8'));
});
