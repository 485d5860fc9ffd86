// What the test kit tells its users of what they got wrong, and how steps are replaced.
import { consoleLogger, minutes } from 'pulsework';
import { replayHistory, testWorkflow, workflowCrashes } from 'pulsework/testing';
import { defineWorkflow } from 'pulsework/workflow';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const START = { id: '1', input: null };

function booking(result: z.ZodType = z.unknown(), version = 1) {
  return defineWorkflow({
    name: 'booking',
    version,
    input: z.null(),
    result,
    async run(flow) {
      await flow.step('book-hotel', () => 'h-1', { compensate: () => 'the real one' });
      await flow.sleep('a while', minutes(1));
      return flow.step('charge-card', () => 'ch-1');
    },
  });
}

describe('steps that are replaced', () => {
  async function warningsWith(steps: Readonly<Record<string, () => unknown>>) {
    const warnings: unknown[] = [];
    const warn = (message: string, fields: unknown): void => void warnings.push(message, fields);
    const test = await testWorkflow(booking(), {
      steps,
      logger: Object.assign(consoleLogger({ level: 'silent' }), { warn }),
    });
    await test.start(booking(), START);
    await test.ended(booking(), '1');
    await test.restart();
    await test.close();
    return warnings;
  }

  it('a name that no step has is warned of, once, with the steps that ran as they are', async () => {
    expect(await warningsWith({ 'charge-crad': () => 1, 'book-hotel': () => 2 })).toEqual([
      'testWorkflow: some of "steps" replaced nothing, and other steps ran as they are',
      { replacedNothing: 'charge-crad', ranAsTheyAre: 'charge-card' },
    ]);
  });

  it('nothing is said where all that ran was replaced, or all that is there replaced something', async () => {
    expect(await warningsWith({ 'charge-card': () => 1, 'book-hotel': () => 2, 'send-mail': () => 3 })).toEqual([]);
    expect(await warningsWith({ 'charge-card': () => 1 })).toEqual([]);
  });

  it('a compensation is replaced as `undo NAME`', async () => {
    const undone: string[] = [];
    const steps = {
      'charge-card': () => Promise.reject(new Error('stolen')),
      'undo book-hotel': () => void undone.push('undone'),
    };
    await using test = await testWorkflow(booking(), { steps });
    await test.start(booking(), START);
    await expect(test.result(booking(), '1')).rejects.toThrow('stolen');
    expect(undone).toEqual(['undone']);
  });
});

describe('a history', () => {
  async function historyOf() {
    await using test = await testWorkflow(booking());
    await test.start(booking(), START);
    await test.ended(booking(), '1');
    return await test.history(booking(), '1');
  }

  it('with a result that the definition would no longer take does not pass, as the running worker would be blocked', async () => {
    await expect(replayHistory(booking(z.number()), await historyOf())).rejects.toMatchObject({
      code: 'WORKFLOW_DIVERGED',
      message: expect.stringMatching(/what the method returned does not match the schema of "result"/) as unknown,
    });
    await replayHistory(booking(z.string()), await historyOf());
  });

  it('is for the definition of its own version, and is no text', async () => {
    const history = await historyOf();
    await expect(replayHistory(booking(z.unknown(), 2), history)).rejects.toThrow(
      'the history is of version 1, the definition of version 2; replay it with the definition of its own version',
    );
    await expect(replayHistory(booking(), JSON.stringify(history))).rejects.toThrow('give it JSON.parse(text)');
  });
});

it.each<[unknown, RegExp]>([
  [{ definitions: [booking()], events: [] }, /takes a function that makes the scenario, got an object/],
  [() => booking(), /"definitions" of the scenario must be a list, got undefined.*\n.*"events" of the scenario/s],
  [() => [booking()], /"scenario" must be an object/],
])('what is no scenario is said', async (given, message) => {
  const runs = workflowCrashes(given as Parameters<typeof workflowCrashes>[0]);
  await expect(runs.next()).rejects.toThrow(message);
});
