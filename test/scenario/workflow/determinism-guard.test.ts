// The guard of methods at run time: what differs in each replay is found where it is used, and nothing else is.
import { randomUUID } from 'node:crypto';
import { Runtime, consoleLogger, minutes } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { replayHistory, testWorkflow } from 'pulsework/testing';
import type { Flow, WorkflowsOptions } from 'pulsework/workflow';
import { Workflows, defineWorkflow, memoryWorkflowStore } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

const job = (run: (flow: Flow) => Promise<unknown>) =>
  defineWorkflow({ name: 'job', version: 1, input: z.null(), run: (flow) => run(flow) });
const START = { id: '1', input: null };
const originalNow = Date.now;

const USES: readonly [string, (flow: Flow) => unknown, string][] = [
  ['the time', () => Date.now(), 'the method called Date.now() (determinism-guard.test.ts:'],
  ['a new Date', () => new Date().toISOString(), 'use new Date(flow.now())'],
  ['a random number', () => Math.random(), 'which differs in each replay; use flow.random()'],
  ['a random id', () => randomUUID(), 'use flow.random() or flow.uuid()'],
  ['a timer', () => void setTimeout(() => undefined, 1), 'use flow.sleep()'],
];

it.each(USES)('%s in a method blocks the workflow in tests, at its start and behind a wait', async (_, use, says) => {
  const atStart = job(async (flow) => flow.step('work', () => use(flow)));
  const outside = job(async (flow) => {
    use(flow);
    return flow.step('work', () => 1);
  });
  const behind = job(async (flow) => {
    await flow.sleep('nap', minutes(1));
    use(flow);
    return flow.step('work', () => 1);
  });
  const blocked = {
    status: 'blocked',
    error: { code: 'WORKFLOW_DIVERGED', message: expect.stringContaining(says) as string },
  };
  for (const wrong of [outside, behind]) {
    await using test = await testWorkflow(wrong);
    await test.start(wrong, START);
    await test.advanceBy(minutes(2));

    expect(await test.describe(wrong, '1')).toMatchObject(blocked);
    expect(test.steps).toEqual([]);
  }
  await using right = await testWorkflow(atStart);
  await right.start(atStart, START);
  expect(await right.ended(atStart, '1')).toMatchObject({ status: 'completed' });
});

it('steps, compensations, queries and handlers are left alone', async () => {
  const free = job(async (flow) => {
    flow.query('now', () => Date.now());
    await flow.step('charge', async () => (await Promise.resolve(), Date.now()), {
      compensate: () => void Math.random(),
    });
    throw flow.failure('as it was to be');
  });
  await using test = await testWorkflow(free);
  await test.start(free, START);

  expect(await test.ended(free, '1')).toMatchObject({ status: 'failed', error: { message: 'as it was to be' } });
  expect(test.steps).toEqual(['charge', 'undo charge']);
  expect(await test.query(free, '1', 'now')).toBeGreaterThan(0);
});

it('the replay of a history finds it where it changes nothing that is recorded', async () => {
  const right = job((flow) => flow.step('work', () => 1));
  const wrong = job((flow) => (Date.now(), flow.step('work', () => 1)));
  await using test = await testWorkflow(right);
  await test.start(right, START);
  const history = await test.history(right, '1');

  await expect(replayHistory(wrong, history)).rejects.toThrow(/the method called Date\.now\(\)/);
});

it('a test may do without, and afterwards everything is as it was, however the process ends', async () => {
  const wrong = job(async () => Date.now());
  const free = await testWorkflow(wrong, { determinismGuard: 'off' });
  await free.start(wrong, START);
  expect(await free.ended(wrong, '1')).toMatchObject({ status: 'completed' });
  await free.close();
  const test = await testWorkflow(wrong);
  expect(Date.now).not.toBe(originalNow);
  test.kill();
  expect(Date.now).toBe(originalNow);
  await test.restart();
  await test.close();

  expect(Date.now).toBe(originalNow);
});

async function ended(
  run: (flow: Flow) => Promise<unknown>,
  determinismGuard: WorkflowsOptions['determinismGuard'],
): Promise<readonly string[]> {
  const lines: string[] = [];
  const logger = consoleLogger({ level: 'warn', write: (line) => lines.push(line) });
  const runtime = await Runtime.start({ transport: embedded(), handlers: [], logger });
  const definitions = [job(run)];
  const workflows = await Workflows.start({ runtime, store: memoryWorkflowStore(), definitions, determinismGuard });
  for (const id of ['1', '2']) await (await workflows.start('job', { id, input: null })).result();
  await runtime.close();
  return lines;
}

it('outside tests it is off; asked for, it warns once of each place, and goes on', async () => {
  const run = async (flow: Flow): Promise<unknown> => (Date.now(), Date.now(), flow.step('work', () => 1));

  expect(await ended(run, undefined)).toEqual([]);
  expect(await ended(run, 'warn')).toEqual([
    expect.stringContaining('the method called Date.now() (determinism-guard.test.ts:') as string,
  ]);
  expect(Date.now).toBe(originalNow);
});

it('a start that fails leaves everything as it was', async () => {
  const runtime = await Runtime.start({
    transport: embedded(),
    handlers: [],
    logger: consoleLogger({ level: 'silent' }),
  });
  const options = { runtime, store: memoryWorkflowStore(), definitions: [job(async () => 1)] };
  await Workflows.start(options);
  const second = Workflows.start({ ...options, store: memoryWorkflowStore(), determinismGuard: 'warn' });

  await expect(second).rejects.toThrow(/names must be unique/);
  expect(Date.now).toBe(originalNow);
  await runtime.close();
});

it('a guard that is none is refused at start', async () => {
  await expect(ended(async () => 1, 'loud' as never)).rejects.toThrow(/"determinismGuard" must be/);
});
