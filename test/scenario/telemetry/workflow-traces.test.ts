// The whole story of a workflow as a backend shows it: one trace, over waits and processes. The exported spans equal what is written
// down in `expected-workflows/`. After an intended change: npx vitest run --project framework test/scenario/telemetry/workflow-traces.test.ts -u
import { readdirSync } from 'node:fs';
import { SpanKind, trace } from '@opentelemetry/api';
import { days, defineHandler, fixedBackoff, hours, minutes, seconds, success } from 'pulsework';
import { openTelemetry } from 'pulsework/otel';
import type { WorkflowTest } from 'pulsework/testing';
import { testWorkflow } from 'pulsework/testing';
import type { Flow } from 'pulsework/workflow';
import { afterEach, expect, it } from 'vitest';
import { OtelSdk } from '../../support/otel-sdk.js';
import { traceTree } from '../../support/trace-tree.js';
import { PROMPT_WORKFLOWS, START, SURROUNDINGS, defineJob } from './workflow-trace-scenarios.js';

afterEach(() => OtelSdk.unregister());

const soon = { redelivery: { backoff: fixedBackoff(seconds(2)), maxDeliveries: 2 } };

/** What a step of the application does is a span of its own. */
const bank = async (what: string): Promise<void> => {
  trace.getTracer('app').startSpan(`bank ${what}`, { kind: SpanKind.CLIENT }).end();
};

type Scenario = readonly [string, (flow: Flow) => Promise<unknown>, (test: WorkflowTest) => Promise<unknown>];

const SCENARIOS: readonly Scenario[] = [
  [
    'completed-over-two-processes',
    async (flow) => {
      await flow.step('charge', () => bank('charges'));
      await flow.signal('packed');
      await flow.sleep('cool-off', days(14));
      await flow.publish('receipts', { id: flow.id });
      return 'done';
    },
    async (test) => {
      await test.start('job', START);
      await test.close();
      await test.restart();
      await test.signal('job', '1', 'packed');
      await test.result('job', '1');
    },
  ],
  [
    'failed-and-compensated',
    async (flow) => {
      await flow.step('charge', () => bank('charges'), { compensate: () => bank('refunds') });
      await flow.step(
        'reserve',
        ({ attempt }) => {
          throw new Error(`no stock ${attempt}`);
        },
        soon,
      );
    },
    async (test) => {
      await test.start('job', START);
      await test.ended('job', '1');
    },
  ],
  ...Object.entries(PROMPT_WORKFLOWS).map(([name, run]): Scenario => [
    name,
    run,
    async (test) => {
      await test.start('job', START);
      await test.result('job', '1');
    },
  ]),
  [
    'blocked',
    async (flow) => {
      await flow.sleep('nap', hours(1));
      (flow as unknown as { go: () => void }).go();
    },
    async (test) => {
      await test.start('job', START);
      await test.advanceBy(hours(1) + minutes(1));
    },
  ],
];

it('there is one for each file of expectations', () => {
  const files = readdirSync(new URL('expected-workflows/', import.meta.url)).map((file) => file.replace(/\.txt$/, ''));

  expect(files.sort()).toEqual(SCENARIOS.map(([name]) => name).sort());
});

it.each(SCENARIOS)('the trace of a workflow: %s', async (name, run, happen) => {
  const sdk = new OtelSdk();
  sdk.register();
  const job = defineJob('job', run);
  const mail = defineHandler({ name: 'Mail.send', source: 'receipts', subscription: 'mail', handle: () => success() });
  const test = await testWorkflow([job, ...SURROUNDINGS.definitions], {
    telemetry: openTelemetry(),
    handlers: [mail, ...SURROUNDINGS.handlers],
  });
  await trace.getTracer('app').startActiveSpan('request', { kind: SpanKind.SERVER }, async (span) => {
    await happen(test);
    span.end();
  });
  await test.close();

  expect(sdk.spans).toHaveLength(sdk.started);
  await expect(traceTree(sdk.spans, sdk)).toMatchFileSnapshot(`expected-workflows/${name}.txt`);
});
