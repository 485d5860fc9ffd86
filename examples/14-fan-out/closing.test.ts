// The tests of the closing: no broker, no waiting.
import { minutes, poison } from 'pulsework';
import type { CrashScenario } from 'pulsework/testing';
import { testWorkflow, workflowCrashes } from 'pulsework/testing';
import { expect, it } from 'vitest';
import type { Books } from './closing.js';
import { monthClosing } from './closing.js';

const accountsOf = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `acc-${n}`);

/** Books in which these accounts do not add up. */
function books(broken: readonly string[] = []) {
  const log: string[] = [];
  const own: Books = {
    lock: async (month) => void log.push(`lock ${month}`),
    unlock: async (month) => void log.push(`unlock ${month}`),
    add: async (_month, account) => (broken.includes(account) ? poison('no') : Number(account.slice(4))),
    write: async (_month, account) => void log.push(`write ${account}`),
    discard: async (_month, account) => void log.push(`discard ${account}`),
  };
  return { log, ...monthClosing(own) };
}

function started(accounts: readonly string[]) {
  return { id: 'm', input: { month: 'm', accounts: [...accounts] } };
}

it('adds up two hundred accounts, each once', { timeout: 60_000 }, async () => {
  const { log, statement, closing } = books();
  await using test = await testWorkflow([closing, statement]);
  await test.start(closing, started(accountsOf(200)));

  expect(await test.result(closing, 'm')).toEqual({ month: 'm', total: 19_900, failed: [] });
  expect(log).toHaveLength(201);
  expect(await test.published('closings')).toEqual([{ month: 'm', total: 19_900, failed: [] }]);
});

it('names the accounts that cannot be closed', async () => {
  const { statement, closing } = books(['acc-1', 'acc-4']);
  await using test = await testWorkflow([closing, statement]);
  await test.start(closing, started(accountsOf(6)));

  expect(await test.result(closing, 'm')).toEqual({ month: 'm', total: 10, failed: ['acc-1', 'acc-4'] });
});

it('leaves the month open when most of them cannot be closed', async () => {
  const { log, statement, closing } = books(['acc-0', 'acc-1']);
  await using test = await testWorkflow([closing, statement]);
  await test.start(closing, started(accountsOf(3)));

  await expect(test.result(closing, 'm')).rejects.toThrow(/most accounts cannot be closed/);
  expect(log).toEqual(['lock m', 'write acc-2', 'unlock m']);
});

it('cancelled in the middle, it cancels what it waits for and unlocks the month', async () => {
  const { log, statement, closing } = books();
  await using test = await testWorkflow([closing, statement], { steps: { add: () => new Promise(() => undefined) } });
  await test.start(closing, started(accountsOf(3)));
  await test.cancel(closing, 'm');

  await expect(test.result(closing, 'm')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(log).toEqual(['lock m', 'unlock m']);
});

it('closes the month once wherever the process dies', { timeout: 60_000 }, async () => {
  const scenario = (): CrashScenario & { readonly log: readonly string[] } => {
    const { log, statement, closing } = books();
    const { id, input: start } = started(accountsOf(2));
    const events = [{ afterMs: 1_000, workflow: closing, id, start }];
    return { definitions: [closing, statement], events, lastsMs: minutes(5), log };
  };
  for await (const { scenario: world, run } of workflowCrashes(scenario, { faults: ['process-gone'] })) {
    expect(run.violations).toEqual([]);
    expect(run.workflows.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
    expect([...new Set(world.log)].toSorted()).toEqual(['lock m', 'write acc-0', 'write acc-1']);
    expect(await run.messageIds('closings')).toHaveLength(1);
  }
});
