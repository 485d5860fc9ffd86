// What is counted and measured of workflows, whose context their messages carry, and that telemetry changes nothing.
import { context, trace } from '@opentelemetry/api';
import { consoleLogger, days, fixedBackoff, hours, minutes, seconds } from 'pulsework';
import type { Telemetry } from 'pulsework';
import { openTelemetry } from 'pulsework/otel';
import type { TestWorkflowOptions } from 'pulsework/testing';
import { testWorkflow } from 'pulsework/testing';
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { OtelSdk } from '../../support/otel-sdk.js';

let sdk: OtelSdk;
beforeEach(() => {
  sdk = new OtelSdk();
  sdk.register();
});
afterEach(() => OtelSdk.unregister());

const define = (name: string, run: (flow: Flow) => Promise<unknown>) =>
  defineWorkflow({ name, version: 1, input: z.null(), run: (flow) => run(flow) });
const soon = { redelivery: { backoff: fixedBackoff(seconds(2)), maxDeliveries: 2 } };
const fail = (): never => {
  throw new Error('as it was to be');
};

const good = define('good', async (flow) => {
  await flow.step('charge', ({ attempt }) => (attempt === 1 ? fail() : 1), soon);
  await flow.sleep('nap', minutes(10));
});
const bad = define('bad', async (flow) => {
  await flow.step('charge', () => 1, { compensate: { run: fail, redelivery: { maxDeliveries: 1 } } });
  await flow.step('ship', fail, { redelivery: { maxDeliveries: 1 } });
});
const broken = define('broken', async () => (undefined as unknown as () => void)());

/** `{ attributes } value` of each point of a metric; of a histogram the sum. */
async function pointsOf(name: string): Promise<readonly string[]> {
  const points = (await sdk.points()).get(name) ?? [];
  const shown = points.map(({ attributes, value }) => {
    const words = Object.values(attributes).join(' ');
    return `${words} ${typeof value === 'number' ? value : `${value.count} ${value.sum}`}`;
  });
  return shown.toSorted();
}

async function played(options: TestWorkflowOptions = {}) {
  const test = await testWorkflow([good, bad, broken], { telemetry: openTelemetry(), ...options });
  for (const name of ['good', 'bad', 'broken']) await test.start(name, { id: '1', input: null });
  await test.start('good', { id: '2', input: null });
  return test;
}

it('workflows are counted by name, and by how they ended and how long that took', async () => {
  await using test = await played();
  await test.result('good', '1');

  expect(await pointsOf('pulsework.workflows.started')).toEqual(['bad 1', 'broken 1', 'good 2']);
  expect(await pointsOf('pulsework.workflows.ended')).toEqual(['good completed 2']);
  expect(await pointsOf('pulsework.workflow.duration')).toEqual(['good completed 2 1204']);
});

it('attempts of steps are counted by how they ended, compensations under a name of their own', async () => {
  await using test = await played();
  await test.result('good', '1');

  const attempts = ['bad charge completed 1', 'bad compensate charge stuck 1', 'bad ship failed 1'];
  expect(await pointsOf('pulsework.step.attempts')).toEqual([
    ...attempts,
    'good charge completed 2',
    'good charge retry 2',
  ]);
  expect((await pointsOf('pulsework.step.duration')).length).toBe(5);
});

it('how late a sleep was seen to be over is measured', async () => {
  const test = await played();
  await test.advanceBy(minutes(1));
  test.kill();
  await test.clock.advanceBy(hours(1));
  await test.restart();
  await test.result('good', '1');
  await test.close();

  const [late = ''] = await pointsOf('pulsework.workflow.timer.lateness');
  const [, count, sum] = late.split(' ').map(Number);
  expect(count).toBe(2);
  expect(sum).toBeGreaterThan(2 * 50 * 60);
});

it('those that have not ended are told by how they stand, once a minute, and read 0 where nobody is there any more', async () => {
  const test = await played();
  await test.restart();
  const open = await pointsOf('pulsework.workflows.open');
  await test.close();

  expect(open).toContain('bad stuck 1');
  expect(open).toContain('broken blocked 1');
  expect(open).toContain('good running 2');
  expect(open).toContain('good stuck 0');
  expect((await pointsOf('pulsework.workflows.open')).filter((point) => !point.endsWith(' 0'))).toEqual([]);
});

it('how many are worked on is told, and 0 once that is over', async () => {
  let during: readonly string[] = [];
  const busy = define('busy', (flow) =>
    flow.step('count', async () => void (during = await pointsOf('pulsework.workflows.active'))),
  );
  await using test = await testWorkflow(busy, { telemetry: openTelemetry() });
  await test.start(busy, { id: '1', input: null });
  await test.ended(busy, '1');

  expect(during).toEqual(['busy 1']);
  expect(await pointsOf('pulsework.workflows.active')).toEqual(['busy 0']);
});

it('names of steps that a method makes up are bounded', async () => {
  const many = define('many', async (flow) => {
    for (let n = 0; n < 4; n++) await flow.step(`charge ${n}`, () => n);
  });
  await using test = await testWorkflow(many, { telemetry: openTelemetry({ maxHandlers: 2 }) });
  await test.start(many, { id: '1', input: null });
  await test.ended(many, '1');

  expect(await pointsOf('pulsework.step.attempts')).toEqual([
    'many _other completed 2',
    'many charge 0 completed 1',
    'many charge 1 completed 1',
  ]);
});

it('what a step starts belongs to its span, and what is behind it does not', async () => {
  const seen: (string | undefined)[] = [];
  const look = (): void => void seen.push(trace.getActiveSpan()?.spanContext().spanId);
  const job = define('job', (flow) =>
    flow.step('charge', async () => {
      look();
      await Promise.resolve();
      look();
    }),
  );
  await using test = await testWorkflow(job, { telemetry: openTelemetry() });
  await test.start(job, { id: '1', input: null });
  await test.ended(job, '1');

  expect(new Set(seen)).toEqual(new Set([sdk.span('step charge').spanContext().spanId]));
});

it.each(['parent', 'link'] as const)('all of a workflow are in one trace (traceMode %s)', async (traceMode) => {
  const test = await testWorkflow(good, { telemetry: openTelemetry({ traceMode }) });
  await test.start(good, { id: '1', input: null });
  await test.close();
  await test.restart();
  await test.result(good, '1');
  await test.close();

  const own = sdk.spans.filter(({ name }) => /^(activate|step) /.test(name));
  expect(own).toHaveLength(5);
  expect(new Set(own.map((span) => span.spanContext().traceId)).size).toBe(1);
  const sent = sdk.span('send persistent://public/default/pulsework-workflow-good').spanContext().traceId;
  expect(own[0]?.spanContext().traceId === sent).toBe(traceMode === 'parent');
});

it('without a context manager the context of the message has to do', async () => {
  context.disable();
  await using test = await testWorkflow(good, { telemetry: openTelemetry() });
  await test.start(good, { id: '1', input: null });
  await test.result(good, '1');

  const traces = new Set(sdk.spans.map((span) => span.spanContext().traceId));
  expect(traces.size).toBe(1);
});

it('a message of a workflow never belongs to what is active where it is sent', async () => {
  const job = define('job', async (flow) => {
    await flow.sleep('nap', days(1));
    await flow.publish('receipts', 1);
  });
  const test = await testWorkflow(job, { telemetry: openTelemetry() });
  await trace.getTracer('app').startActiveSpan('elsewhere', async (span) => {
    await test.workflows.start(job, { id: '1', input: null });
    span.end();
  });
  await test.result(job, '1');
  await test.close();

  const sent = sdk.span('send persistent://public/default/receipts');
  const activations = sdk.spans.filter(({ name }) => name === 'activate job');
  expect(sent.parentSpanContext?.spanId).toBe(activations[1]?.spanContext().spanId);
  expect(sent.links).toEqual([]);
});

it('telemetry that throws at everything changes nothing, and what it threw is logged', async () => {
  const lines: string[] = [];
  const logger = consoleLogger({ level: 'error', write: (line) => lines.push(line) });
  const telemetry: Telemetry = {
    contextOf: fail,
    startActivation: fail,
    onWorkflow: fail,
    onWorkflowCounts: fail,
  };
  const observers: Telemetry = {
    startActivation: () => ({
      propertiesOf: fail,
      startStep: () => ({ within: fail, ended: fail }),
      ended: fail,
    }),
  };
  for (const each of [telemetry, observers]) {
    await using test = await testWorkflow(good, { telemetry: each, logger });
    await test.start(good, { id: '1', input: null });
    expect(await test.ended(good, '1')).toMatchObject({ status: 'completed' });
    expect(test.violations).toEqual([]);
  }

  for (const hook of ['contextOf', 'startActivation', 'onWorkflow', 'onWorkflowCounts', 'within', 'ended'])
    expect(lines.filter((line) => line.includes(`"hook":"${hook}"`))).not.toEqual([]);
});

it('without telemetry nothing is kept with a workflow, and its messages carry nothing', async () => {
  await using test = await testWorkflow(good);
  await trace.getTracer('app').startActiveSpan('elsewhere', async (span) => {
    await test.start(good, { id: '1', input: null });
    span.end();
  });

  expect(await test.describe(good, '1')).not.toHaveProperty('context');
});
