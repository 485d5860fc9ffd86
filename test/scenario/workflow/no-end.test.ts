// What a test is told of a workflow that does not end: what it waits for, who has to bring that, and what was warned of.
import { days, defineHandler, poison, success, topic } from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import type { TestWorkflowOptions, WorkflowTest } from 'pulsework/testing';
import type { Flow, WorkflowDefinition } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

const labels = topic('labels', { payload: z.number() });
const forgetful = defineHandler({
  name: 'Labels.print',
  source: labels,
  subscription: 'printer',
  handle: () => success(),
});

const hang = (): Promise<never> => new Promise(() => undefined);

async function toldOf(
  run: (flow: Flow) => Promise<unknown>,
  happen: (test: WorkflowTest, job: WorkflowDefinition) => Promise<unknown> = async () => undefined,
  options: TestWorkflowOptions = {},
): Promise<string> {
  const job = defineWorkflow({ name: 'job', version: 1, input: z.null(), run: (flow) => run(flow) });
  await using test = await testWorkflow(job, options);
  await test.start(job, { id: '1', input: null });
  await happen(test, job);
  const end: unknown = await test.result(job, '1').catch((error: unknown) => error);
  return (end as Error).message;
}

it('it waits for a signal, and one that came was dropped', async () => {
  const run = (flow: Flow) => flow.signal('packed', { payload: z.object({ by: z.string() }) });
  expect(await toldOf(run)).toBe('the workflow is running and does not end: it waits for signal "packed"');
  expect(await toldOf(run, (test, job) => test.signal(job, '1', 'packed', { by: 7 }))).toBe(
    'the workflow is running and does not end: it waits for signal "packed"; ' +
      'the last warning was: workflow signal dropped: it does not match the schema (by: Invalid input: expected string, received number)',
  );
});

it('it waits for a handler that has not answered', async () => {
  const run = (flow: Flow) => flow.step('label', { topic: labels, input: 1 });
  expect(await toldOf(run, undefined, { handlers: [forgetful] })).toBe(
    'the workflow is running and does not end: ' +
      'it waits for step "label", to which no handler has answered by stepResult or stepFailure',
  );
});

it('it waits for a child of a name that nobody here has defined', async () => {
  const told = await toldOf((flow) => flow.child('jobb', 1, { id: 'c' }));
  expect(told).toBe(
    'the workflow is running and does not end: it waits for child "jobb"; the last warning was: ' +
      'a child is waited for whose workflow has no definition here: another process has to have it',
  );
});

it('it runs a step that does not end', async () => {
  const told = await toldOf((flow) => flow.step('read', hang));
  expect(told).toBe(
    'the workflow is running and does not end: it waits for step "read", which awaits something that virtual time does not bring',
  );
});

it.each([
  ['its time limit', (flow: Flow) => flow.step('read', hang, { timeoutMs: days(2), redelivery: { maxDeliveries: 1 } })],
  [
    'a sleep that it races with',
    (flow: Flow) => flow.race({ read: flow.step('read', hang), limit: flow.sleep('limit', days(2)) }),
  ],
])('it runs a step that does not end, and %s is waited for', async (_what, run) => {
  const job = defineWorkflow({
    name: 'job',
    version: 1,
    input: z.null(),
    run: (flow) =>
      Promise.resolve(run(flow)).then(
        () => flow.failure('late'),
        () => 'ended',
      ),
  });
  await using test = await testWorkflow(job);
  await test.start(job, { id: '1', input: null });
  const beganMs = test.clock.now();
  await test.ended(job, '1');
  const { journal } = await test.history(job, '1');
  expect(journal.some(({ kind, atMs }) => kind !== 'command' && atMs >= beganMs + days(2))).toBe(true);
});

it('a handler that gave the work up is named', async () => {
  const gaveUp = { ...forgetful, handle: () => poison('no paper') };
  const told = await toldOf((flow) => flow.step('label', { topic: labels, input: 1 }), undefined, {
    handlers: [gaveUp],
  });
  expect(told).toContain('the last warning was: ');
  expect(told).toContain('no paper');
});

it('of one that is blocked or stuck, why', async () => {
  expect(await toldOf(() => new Promise(() => undefined))).toMatch(
    /^the workflow is blocked and does not end: the method waits for/,
  );
  const stuck = async (flow: Flow) => {
    await flow.step('charge', () => 1, { compensate: () => poison('the bank is closed') });
    throw flow.failure('no');
  };
  expect(await toldOf(stuck)).toBe('the workflow is stuck and does not end: the bank is closed');
});

it('one that was never started is not there', async () => {
  const job = defineWorkflow({ name: 'job', version: 1, input: z.null(), run: () => Promise.resolve(1) });
  await using test = await testWorkflow(job);
  await expect(test.result(job, '2')).rejects.toThrow(
    'there is no workflow "job" "2": it was not started, or its start was refused',
  );
});

it('one that real time has brought to its end after all has a result', async () => {
  const job = defineWorkflow({
    name: 'job',
    version: 1,
    input: z.null(),
    run: (flow) => flow.step('read', () => new Promise((resolve) => setImmediate(() => resolve(1)))),
  });
  await using test = await testWorkflow(job);
  await test.start(job, { id: '1', input: null });
  expect(await test.result(job, '1')).toBe(1);
});

it('options that do not exist, and steps that are replaced by no function, are refused', async () => {
  const job = defineWorkflow({ name: 'job', version: 1, input: z.null(), run: async () => undefined });
  const options = { stebs: {}, steps: { pack: 'done' } } as unknown as TestWorkflowOptions;

  await expect(testWorkflow(job, options)).rejects.toMatchObject({
    code: 'CONFIGURATION_INVALID',
    problems: [
      expect.stringContaining('unknown option "stebs", did you mean "steps"?'),
      expect.stringContaining('"steps.pack" must be a function, got "done"'),
    ],
  });
});
