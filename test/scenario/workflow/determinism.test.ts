// The code of a workflow against its journal: what is caught, what it says, and how it goes on.
import { minutes, seconds } from 'pulsework';
import { replayHistory, testWorkflow } from 'pulsework/testing';
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { z } from 'zod';

function version(number: number, run: (flow: Flow) => Promise<unknown>) {
  return defineWorkflow({ name: 'job', version: number, input: z.null(), run: (flow) => run(flow) });
}

const job = (run: (flow: Flow) => Promise<unknown>) => version(1, run);
const START = { id: '1', input: null };
const nap = (flow: Flow) => flow.sleep('nap', minutes(1));
const old = job(async (flow) => {
  await flow.step('charge', () => 1);
  await nap(flow);
  await flow.step('ship', () => 2);
  return 'ended';
});

const CHANGES: readonly [string, (flow: Flow) => Promise<unknown>, string][] = [
  [
    'another name',
    (flow) => flow.step('authorise', () => 1),
    'recorded step "charge", now step "authorise" (command 0)',
  ],
  ['another kind', (flow) => flow.sleep('charge', 1), 'recorded step "charge", now sleep "charge" (command 0)'],
  ['less', async (flow) => flow.step('charge', () => 1), 'recorded sleep "nap", now the method has ended (command 1)'],
  [
    'another order',
    async (flow) => (await nap(flow), await flow.step('charge', () => 1)),
    'recorded step "charge", now sleep "nap" (command 0)',
  ],
  [
    'an await that is not of flow',
    async (flow) => {
      await delay(200);
      await flow.step('charge', () => 1);
    },
    'the method waits for something that is not of flow',
  ],
  [
    'a wait for what nobody brings',
    async (flow) => {
      await flow.step('charge', () => 1);
      await new Promise(() => undefined);
    },
    'or that nobody will bring after step "charge"',
  ],
  ['a mistake', (flow) => (flow as unknown as { stepp: () => Promise<void> }).stepp(), 'the method threw TypeError'],
  ['a wrong call', (flow) => flow.step('charge', () => 1, { timeout: 5 } as never), 'unknown option "timeout"'],
];

it.each(CHANGES)(
  '%s blocks the workflow with what differs, and it goes on after a correction',
  async (_what, run, says) => {
    await using test = await testWorkflow(old);
    await test.start(old, START);
    const before = await test.history(old, '1');
    await test.restart(job(run));
    await test.advanceBy(minutes(5));

    expect(await test.describe('job', '1')).toMatchObject({
      status: 'blocked',
      error: { code: 'WORKFLOW_DIVERGED', message: expect.stringContaining(says) as string },
    });
    expect((await test.history('job', '1')).journal).toEqual(before.journal);
    await test.restart(old);
    expect(await test.result(old, '1')).toBe('ended');
    expect(test.steps).toEqual(['charge', 'ship']);
  },
);

it.each(CHANGES)('%s is caught by the replay of an exported history too', async (_what, run, says) => {
  await using test = await testWorkflow(old);
  await test.start(old, START);
  const history: unknown = JSON.parse(JSON.stringify(await test.history(old, '1')));

  await expect(replayHistory(job(run), history)).rejects.toMatchObject({
    code: 'WORKFLOW_DIVERGED',
    message: expect.stringContaining(says) as string,
  });
  await expect(replayHistory(old, history)).resolves.toBeUndefined();
});

it('the replay of an ended history compares how it ended', async () => {
  await using test = await testWorkflow(old);
  await test.start(old, START);
  await test.result(old, '1');
  const history = await test.history(old, '1');
  const other = job(async (flow) => {
    await flow.step('charge', () => 1);
    await nap(flow);
    await flow.step('ship', () => 2);
    return 'another end';
  });

  await expect(replayHistory(old, history)).resolves.toBeUndefined();
  await expect(replayHistory(other, history)).rejects.toThrow(
    /recorded the end completed "ended", now completed "another end"/,
  );
});

it('code that was patched goes the old way where the journal is older, and the new way elsewhere', async () => {
  const patched = job(async (flow) => {
    await flow.step('charge', () => 1);
    if (flow.patched('check-address')) await flow.step('check', () => 'ok');
    await nap(flow);
    if (flow.patched('insure')) await flow.step('insure', () => 'ok');
    await flow.step('ship', () => 2);
    return 'ended';
  });
  await using test = await testWorkflow(old);
  await test.start(old, START);
  const history = await test.history(old, '1');
  await test.restart(patched);
  await test.start(patched, { id: '2', input: null });
  await expect(replayHistory(patched, history)).resolves.toBeUndefined();

  expect(await test.result(patched, '1')).toBe('ended');
  expect(await test.result(patched, '2')).toBe('ended');
  expect(test.runs.filter(({ id }) => id === '1').map(({ step }) => step)).toEqual(['charge', 'insure', 'ship']);
  expect(test.runs.filter(({ id }) => id === '2').map(({ step }) => step)).toEqual([
    'charge',
    'check',
    'insure',
    'ship',
  ]);
  await expect(replayHistory(patched, await test.history(patched, '1'))).resolves.toBeUndefined();
  await expect(replayHistory(patched, await test.history(patched, '2'))).resolves.toBeUndefined();
});

it('a call of patched may be taken out again once no older workflow is left', async () => {
  const patched = job(async (flow) => {
    if (flow.patched('check')) await flow.step('check', () => 1);
    await nap(flow);
    return 'ended';
  });
  const after = job(async (flow) => {
    await flow.step('check', () => 1);
    await nap(flow);
    return 'ended';
  });
  await using test = await testWorkflow(patched);
  await test.start(patched, START);
  await test.restart(after);

  expect(await test.result(after, '1')).toBe('ended');
  expect(test.steps).toEqual(['check']);
});

it('a workflow goes on under its own version; one of a version that is not here is put off, not failed', async () => {
  const first = version(1, async (flow) => (await nap(flow), 'first'));
  const second = version(2, async (flow) => (await nap(flow), 'second'));
  await using test = await testWorkflow(first);
  await test.start(first, START);
  await test.restart(second);
  await test.start(second, { id: '2', input: null });
  expect(await test.result(second, '2')).toBe('second');
  expect((await test.describe(second, '1'))?.status).toBe('running');
  await test.restart([first, second]);

  expect(await test.result(first, '1')).toBe('first');
});

it('the result of a step is kept although the code behind it is wrong', async () => {
  const wrong = job(async (flow) => {
    const value = await flow.step('charge', () => 7);
    (value as unknown as () => void)();
  });
  const right = job((flow) => flow.step('charge', () => 8));
  await using test = await testWorkflow(wrong);
  await test.start(wrong, START);
  expect((await test.describe('job', '1'))?.status).toBe('blocked');
  await test.restart(right);

  expect(await test.result(right, '1')).toBe(7);
});

it('a result that does not match its schema blocks, and a blocked workflow can be terminated', async () => {
  const wrong = defineWorkflow({
    name: 'job',
    version: 1,
    input: z.null(),
    result: z.number(),
    run: async () => 'text' as never,
  });
  await using test = await testWorkflow(wrong);
  await test.start(wrong, START);
  expect(await test.describe('job', '1')).toMatchObject({
    status: 'blocked',
    error: { message: expect.stringMatching(/result/) as string },
  });
  await test.workflows.terminate('job', '1');
  await test.advanceBy(seconds(1));

  expect((await test.describe('job', '1'))?.status).toBe('terminated');
});
