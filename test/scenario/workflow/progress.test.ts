// What listeners are told of workflows: in order, after it was recorded, and without holding anything up.
import { hours, minutes, seconds } from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import type { ProgressEvent, WorkflowProgress } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { orderWorkflow, shop } from './order-workflow.js';

const trial = defineWorkflow({
  name: 'trial',
  version: 1,
  input: z.object({ attempts: z.number() }),
  async run(flow, { attempts }) {
    await flow.step('charge', ({ attempt }) => {
      if (attempt < attempts) throw new Error('busy');
    });
    await flow.sleep('nap', minutes(1));
    return 'done';
  },
});

function text(progress: ProgressEvent): string {
  if (progress.kind === 'missed') return `missed ${progress.count}`;
  if (progress.kind === 'ended') return `ended ${progress.status}`;
  if (!('command' in progress)) return progress.kind;
  const attempt = progress.kind.startsWith('attempt-') && 'attempt' in progress ? ` ${progress.attempt}` : '';
  return `${progress.kind} ${progress.command} ${progress.name}${attempt}`;
}

async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
  const told: T[] = [];
  for await (const event of events) told.push(event);
  return told;
}

it('a listener is told of everything in order, and its listening ends with the runtime', async () => {
  const test = await testWorkflow(trial);
  const events = test.workflows.events();
  await test.start(trial, { id: 'a', input: { attempts: 2 } });
  await test.result(trial, 'a');
  await test.close();
  const told = (await all(events)).filter((event) => event.kind !== 'missed');

  expect(told.map(text)).toEqual([
    'started',
    'activated',
    'asked step charge',
    'attempt-started step charge 1',
    'attempt-failed step charge 1',
    'waiting',
    'activated',
    'attempt-started step charge 2',
    'completed step charge',
    'asked sleep nap',
    'waiting',
    'activated',
    'completed sleep nap',
    'ended completed',
  ]);
  expect(new Set(told.map(({ workflow, id, run }) => `${workflow} ${id} ${run}`))).toEqual(new Set(['trial a 1']));
  const failed = told.find(({ kind }) => kind === 'attempt-failed');
  expect(failed).toMatchObject({ spent: true, durationMs: 0, error: { message: 'busy' } });
  expect(told.find(({ kind }) => kind === 'ended')).toMatchObject({ durationMs: seconds(61) });
});

it('a listener hears only what it asked for', async () => {
  const test = await testWorkflow([trial, orderWorkflow(shop())]);
  const one = test.workflows.events({ name: 'trial', id: 'b' });
  const other = test.workflows.events({ name: 'fulfil-order' });
  await test.start(trial, { id: 'a', input: { attempts: 1 } });
  await test.start(trial, { id: 'b', input: { attempts: 1 } });
  await test.close();

  const ids = (await all(one)).map((event) => (event.kind === 'missed' ? '' : event.id));
  expect(new Set(ids)).toEqual(new Set(['b']));
  expect(await all(other)).toEqual([]);
});

it('a slow listener misses the oldest and is told how many; workflows and other listeners do not wait for it', async () => {
  const test = await testWorkflow(trial);
  const slow = test.workflows.events({ buffer: 2 });
  const quick = test.workflows.events();
  await test.start(trial, { id: 'a', input: { attempts: 1 } });
  expect(await test.result(trial, 'a')).toBe('done');
  await test.close();

  expect((await all(slow)).map(text)).toEqual(['missed 8', 'completed sleep nap', 'ended completed']);
  expect(await all(quick)).toHaveLength(10);
});

it('a listening ends by its signal, by leaving the loop, and at once where the runtime has closed', async () => {
  const test = await testWorkflow(trial);
  const controller = new AbortController();
  const aborted = test.workflows.events({ signal: controller.signal });
  const next = aborted.next();
  controller.abort();
  expect(await next).toEqual({ done: true, value: undefined });
  const left = test.workflows.events();
  await test.start(trial, { id: 'a', input: { attempts: 1 } });
  for await (const event of left) {
    expect(event.kind).toBe('started');
    break;
  }
  expect(await left.next()).toEqual({ done: true, value: undefined });
  expect(await test.workflows.events({ signal: controller.signal }).next()).toMatchObject({ done: true });
  const { workflows } = test;
  await test.close();

  expect(await workflows.events().next()).toMatchObject({ done: true });
});

it('options that are wrong are refused, all of them', async () => {
  await using test = await testWorkflow(trial);

  expect(() => test.workflows.events({ buffer: 0, limit: 5, signal: 'x' } as never)).toThrow(
    /unknown option "limit".*"buffer" must be.*"signal"/s,
  );
});

it('what a listener hears is recorded: what the store does not get is not told', async () => {
  let cut = (): void => undefined;
  const job = defineWorkflow({
    name: 'job',
    version: 1,
    input: z.null(),
    async run(flow) {
      await flow.signal('go');
      cut();
      await flow.sleep('nap', hours(1));
    },
  });
  const test = await testWorkflow(job);
  await test.start(job, { id: 'a', input: null });
  const events = test.workflows.events();
  cut = () => void test.isolateStore();
  await test.signal(job, 'a', 'go');
  await test.advanceBy(minutes(5));
  await test.close();

  expect((await all(events)).map(text)).toEqual(['activated']);
});

async function follow(events: AsyncIterable<WorkflowProgress>, told: WorkflowProgress[]): Promise<'ended'> {
  for await (const progress of events) told.push(progress);
  return 'ended';
}

it('one workflow is followed from its beginning to its end, over processes that worked on it', async () => {
  await using test = await testWorkflow(orderWorkflow(shop()));
  await test.start('fulfil-order', { id: 'o', input: { id: 'o', amount: 1 } });
  test.kill();
  await test.restart();
  const told: WorkflowProgress[] = [];
  const following = follow(test.workflows.handle('fulfil-order', 'o').events(), told);
  await test.settled();
  await test.signal('fulfil-order', 'o', 'packed', { by: 'dock-3' });
  await test.advanceBy(hours(1));
  await test.cancel('fulfil-order', 'o');
  await test.advanceBy(hours(1));
  expect(await following).toBe('ended');

  expect(told.map(text)).toEqual([
    'started',
    'asked step charge',
    'attempt-started step charge 1',
    'completed step charge',
    'asked step reserve',
    'attempt-started step reserve 1',
    'completed step reserve',
    'asked signal packed',
    'completed signal packed',
    'asked sleep cool-off',
    'cancelled',
    'asked compensate reserve',
    'attempt-started compensate reserve 1',
    'completed compensate reserve',
    'asked compensate charge',
    'attempt-started compensate charge 1',
    'completed compensate charge',
    'ended cancelled',
  ]);
});

it('following ends with its signal and with the runtime, and waits for a workflow that has not begun', async () => {
  const test = await testWorkflow(trial);
  const controller = new AbortController();
  const [first, second]: [WorkflowProgress[], WorkflowProgress[]] = [[], []];
  const handle = test.workflows.handle(trial, 'later');
  const aborted = follow(handle.events({ signal: controller.signal }), first);
  const closed = follow(handle.events(), second);
  await test.settled();
  controller.abort();
  expect(await aborted).toBe('ended');
  await test.start(trial, { id: 'later', input: { attempts: 1 } });
  await test.close();
  expect(await closed).toBe('ended');

  expect(first).toEqual([]);
  expect(second.map(text)).toContain('asked sleep nap');
});

it('a workflow that continues as new is followed from run to run', async () => {
  const loop = defineWorkflow({
    name: 'loop',
    version: 1,
    input: z.number(),
    async run(flow, left) {
      await flow.sleep('month', hours(1));
      return left === 0 ? 'over' : flow.continueAsNew(left - 1);
    },
  });
  await using test = await testWorkflow(loop);
  const told: WorkflowProgress[] = [];
  await test.start(loop, { id: 'l', input: 1 });
  const following = follow(test.workflows.handle(loop, 'l').events(), told);
  await test.result(loop, 'l');
  expect(await following).toBe('ended');

  expect(told.map((each) => `${each.run} ${text(each)}`)).toEqual([
    '1 started',
    '1 asked sleep month',
    '1 continued',
    '2 asked sleep month',
    '2 completed sleep month',
    '2 ended completed',
  ]);
});
