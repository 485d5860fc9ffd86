// The tests of the approval: days in a moment, and the check of changed code against a history that is kept beside it.
import { readFileSync } from 'node:fs';
import { days, hours } from 'pulsework';
import type { CrashScenario } from 'pulsework/testing';
import { replayHistory, testWorkflow, workflowCrashes } from 'pulsework/testing';
import type { WorkflowDefinition } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import type { Expense, Office } from './approval.js';
import { expenseApproval } from './approval.js';

const EXPENSE: Expense = { id: 'E-1', amount: 40 };
const START = { id: EXPENSE.id, input: EXPENSE };

/** An office that writes down what happens, and its workflow, which waits a day each time. */
function office() {
  const log: string[] = [];
  const own: Office = {
    hold: async () => void log.push('held'),
    giveBack: async () => void log.push('given back'),
    ask: async (who) => void log.push(`asked ${who}`),
    remind: async (who) => void log.push(`reminded ${who}`),
    payOut: async () => void log.push('paid'),
  };
  return { log, approval: expenseApproval(own, days(1)) };
}

it('is paid out when the manager approves', async () => {
  const { log, approval } = office();
  await using test = await testWorkflow(approval);
  await test.start(approval, START);
  expect(await test.query(approval, 'E-1', 'asked')).toBe('manager');
  await test.signal(approval, 'E-1', 'decision', { by: 'manager', approved: true });

  expect(await test.result(approval, 'E-1')).toEqual({ by: 'manager', approved: true });
  expect(log).toEqual(['held', 'asked manager', 'paid']);
});

it('goes to the director after a reminder, and whoever answers then counts', async () => {
  const { log, approval } = office();
  await using test = await testWorkflow(approval);
  await test.start(approval, START);
  await test.advanceBy(days(1) - 1);
  expect(log.at(-1)).toBe('asked manager');
  await test.advanceBy(1);
  expect(log.at(-1)).toBe('reminded manager');
  await test.advanceBy(days(1));
  expect(await test.query(approval, 'E-1', 'asked')).toBe('director');
  await test.signal(approval, 'E-1', 'decision', { by: 'manager', approved: true });

  expect(await test.result(approval, 'E-1')).toMatchObject({ by: 'manager' });
  expect(log).toEqual(['held', 'asked manager', 'reminded manager', 'asked director', 'paid']);
});

it('gives the money back when somebody refuses, and when nobody answers', async () => {
  const { log, approval } = office();
  await using test = await testWorkflow(approval);
  await test.start(approval, START);
  await test.start(approval, { id: 'E-2', input: EXPENSE });
  await test.signal(approval, 'E-1', 'decision', { by: 'manager', approved: false });
  await expect(test.result(approval, 'E-1')).rejects.toThrow(/refused by manager/);
  const began = test.clock.now();

  await expect(test.result(approval, 'E-2')).rejects.toThrow(/nobody decided/);
  expect(test.clock.now() - began).toBeGreaterThan(days(4) - hours(1));
  expect(log.filter((line) => line === 'given back')).toHaveLength(2);
  expect(log).not.toContain('paid');
});

it('holds and pays once wherever the process dies', async () => {
  const scenario = (): CrashScenario & { readonly log: readonly string[] } => {
    const { log, approval } = office();
    const decision = { signal: 'decision', payload: { by: 'manager', approved: true } };
    const events = [
      { afterMs: 1_000, workflow: approval, id: 'E-1', start: EXPENSE },
      { afterMs: hours(1), workflow: approval, id: 'E-1', ...decision },
    ];
    return { definitions: [approval], events, log };
  };
  for await (const { scenario: world, run } of workflowCrashes(scenario, { faults: ['process-gone'] })) {
    expect(run.violations).toEqual([]);
    expect(run.workflows.map(({ status }) => status)).toEqual(['completed']);
    expect([...new Set(world.log)]).toEqual(['held', 'asked manager', 'paid']);
  }
});

/** Of an expense that has begun with the code of today. Made by `JSON.stringify(await workflows.history(approval, 'E-1'))`. */
const history: unknown = JSON.parse(readFileSync(new URL('history.json', import.meta.url), 'utf8'));

/** The approval of tomorrow: the budget is looked at before anybody is asked. */
function changed(approval: WorkflowDefinition, isPatched: boolean): WorkflowDefinition {
  const { name, options, run } = approval;
  return defineWorkflow({
    name,
    ...options,
    async run(flow, input) {
      if (!isPatched || flow.patched('budget')) await flow.step('check budget', () => 'enough');
      return run(flow, input as never);
    },
  });
}

it('an incompatible change of the code is caught by the kept history and by the running process; a patched one passes both', async () => {
  const { log, approval } = office();
  const [incompatible, patched] = [changed(approval, false), changed(approval, true)];
  const differs = /recorded step "hold", now step "check budget" \(command 0\)/;
  await using test = await testWorkflow(approval);
  await test.start(approval, START);

  await expect(replayHistory(approval, history)).resolves.toBeUndefined();
  await expect(replayHistory(incompatible, history)).rejects.toThrow(differs);
  await test.restart(incompatible);
  // It sleeps until something happens; what happens to it while it is blocked is not lost.
  await test.signal(incompatible, 'E-1', 'decision', { by: 'manager', approved: true });
  expect(await test.describe(approval, 'E-1')).toMatchObject({
    status: 'blocked',
    error: { code: 'WORKFLOW_DIVERGED', message: expect.stringMatching(differs) as string },
  });

  await expect(replayHistory(patched, history)).resolves.toBeUndefined();
  await test.restart(patched);
  expect(await test.result(patched, 'E-1')).toMatchObject({ approved: true });
  await test.start(patched, { id: 'E-2', input: EXPENSE });
  expect(log).toEqual(['held', 'asked manager', 'paid', 'held', 'asked manager']);
  expect(test.steps).toContain('check budget');
});
