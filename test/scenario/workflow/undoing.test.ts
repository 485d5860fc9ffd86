// Failure, cancellation and termination: what is undone, in which order, and what becomes of what runs meanwhile.
import { fixedBackoff, hours, minutes, seconds } from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

function workflow(run: (flow: Flow) => Promise<unknown>, name = 'job') {
  return defineWorkflow({ name, version: 1, input: z.null(), run: (flow) => run(flow) });
}

const START = { id: '1', input: null };
const AT_ONCE = { backoff: fixedBackoff(0) };

it('results are undone in the reverse order in which they came, each with its own result', async () => {
  const undone: string[] = [];
  const Job = workflow(async (flow) => {
    const ends: Record<string, () => void> = {};
    const slow = flow.step('slow', () => new Promise<string>((resolve) => (ends['slow'] = () => resolve('s'))), {
      compensate: (done) => void undone.push(`slow ${done}`),
    });
    await flow.step('quick', () => 'q', { compensate: (done) => void undone.push(`quick ${done}`) });
    await flow.step('plain', () => ends['slow']?.());
    await slow;
    throw flow.failure('no');
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' });
  expect(undone).toEqual(['slow s', 'quick q']);
});

it('a step that failed for good is not undone, those before it are', async () => {
  const undone: string[] = [];
  const Job = workflow(async (flow) => {
    await flow.step('a', () => 1, { compensate: () => void undone.push('a') });
    await flow.step('b', () => Promise.reject(new Error('no')), {
      compensate: () => void undone.push('b'),
      redelivery: { maxDeliveries: 1 },
    });
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' });
  expect(undone).toEqual(['a']);
});

it('a compensation that gives up leaves the workflow stuck, and it goes on from there after resume', async () => {
  let isRepaired = false;
  const undone: string[] = [];
  const Job = workflow(async (flow) => {
    await flow.step('first', () => 1, { compensate: () => void undone.push('first') });
    await flow.step('second', () => 2, {
      compensate: {
        run: () => {
          undone.push('second');
          if (!isRepaired) throw new Error('the bank is closed');
        },
        redelivery: { maxDeliveries: 2, ...AT_ONCE },
      },
    });
    throw flow.failure('no');
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  expect(await test.ended(Job, '1')).toBeUndefined();
  const stuck = await test.describe(Job, '1');
  expect(stuck).toMatchObject({ status: 'stuck', error: { message: 'the bank is closed' } });
  expect(stuck?.wakeMs).toBeUndefined();
  expect(undone).toEqual(['second', 'second']);
  test.kill();
  await test.restart();
  expect(undone).toHaveLength(2);

  isRepaired = true;
  await test.workflows.resume(Job, '1');
  await test.settled();
  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' });
  expect(undone).toEqual(['second', 'second', 'second', 'first']);
});

it('a cancelled workflow stops waiting, undoes what it did, and says so', async () => {
  const log: string[] = [];
  const Job = workflow(async (flow) => {
    await flow.step('a', () => 1, { compensate: () => void log.push('undo a') });
    try {
      await flow.sleep('long', hours(5));
    } catch (error) {
      log.push(`${(error as { code: string }).code} ${flow.cancelled.aborted}`);
      throw error;
    }
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(hours(1));
  await test.cancel(Job, '1');

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(log.at(0)).toBe('WORKFLOW_CANCELLED true');
  expect(log.filter((line) => line === 'undo a')).toHaveLength(1);
});

it('a cancelled workflow may still tidy up in its own way, and complete', async () => {
  const Job = workflow(async (flow) => {
    try {
      await flow.signal('never');
      return 'signalled';
    } catch {
      return flow.step('tidy', () => 'tidied');
    }
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.cancel(Job, '1');

  expect(await test.result(Job, '1')).toBe('tidied');
});

it('a step that runs is told of the cancellation; cut short it runs again, so that what it did is known and undone', async () => {
  const log: string[] = [];
  const Job = workflow(async (flow) => {
    const done = await flow.step(
      'charge',
      async ({ signal, attempt, idempotencyKey }) => {
        log.push(`charge ${attempt}`);
        if (attempt > 1) return idempotencyKey;
        return new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut'))));
      },
      { compensate: (key) => void log.push(`refund ${key}`) },
    );
    await flow.sleep('after', minutes(1));
    return done;
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.cancel(Job, '1');

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(log).toEqual(['charge 1', 'charge 2', 'refund job/1/1/0']);
});

it('the same across a crash between the cancellation and the repeat', async () => {
  const log: string[] = [];
  let hangs = true;
  const Job = workflow(async (flow) => {
    await flow.step(
      'charge',
      ({ attempt }) => (log.push(`charge ${attempt}`), hangs ? new Promise(() => undefined) : 1),
      {
        compensate: () => void log.push('refund'),
      },
    );
    await flow.sleep('after', minutes(1));
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.cancel(Job, '1');
  test.kill();
  hangs = false;
  await test.restart();

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(log).toEqual(['charge 1', 'charge 2', 'refund']);
});

it('a step that waits for its next attempt is not tried again after a cancellation', async () => {
  const Job = workflow((flow) =>
    flow.step('work', () => Promise.reject(new Error('busy')), { redelivery: { backoff: fixedBackoff(hours(1)) } }),
  );
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.cancel(Job, '1');

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(test.steps).toEqual(['work']);
});

it('a cancelled parent cancels the child it waits for', async () => {
  const log: string[] = [];
  const Child = workflow(async (flow) => {
    await flow.step('work', () => 1, { compensate: () => void log.push('child undone') });
    await flow.sleep('long', hours(9));
  }, 'child');
  const Parent = workflow((flow) => flow.child(Child, null, { id: 'c' }), 'parent');
  await using test = await testWorkflow([Parent, Child]);
  await test.start(Parent, START);
  await test.cancel(Parent, '1');

  await expect(test.result(Parent, '1')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  await expect(test.result(Child, 'c')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(log).toEqual(['child undone']);
});

it('a cancellation reaches the children that a parent has left running, and it ends with what it has returned', async () => {
  const Child = workflow((flow) => flow.sleep('long', hours(9)), 'child');
  const Parent = workflow((flow) => (void flow.child(Child, null, { id: 'c' }), Promise.resolve('returned')), 'parent');
  await using test = await testWorkflow([Parent, Child]);
  await test.start(Parent, START);
  expect((await test.describe(Parent, '1'))?.status).toBe('running');
  await test.cancel(Parent, '1');

  await expect(test.result(Child, 'c')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
  expect(await test.result(Parent, '1')).toBe('returned');
});

it('a failed parent cancels the children it has not waited for', async () => {
  const Child = workflow((flow) => flow.sleep('long', hours(9)), 'child');
  const Parent = workflow(async (flow) => {
    const child = flow.child(Child, null, { id: 'c' });
    await flow.sleep('a while', minutes(1));
    child.catch(() => undefined);
    throw flow.failure('no');
  }, 'parent');
  await using test = await testWorkflow([Parent, Child]);
  await test.start(Parent, START);

  await expect(test.result(Parent, '1')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' });
  await expect(test.result(Child, 'c')).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
});

it.each<[string, (flow: Flow, child: () => Promise<unknown>) => Promise<unknown>, unknown]>([
  ['at once', (_flow, child) => (void child(), Promise.resolve()), null],
  [
    'while the start of its own is refused',
    (flow, child) => {
      const told = flow.publish('told', 1);
      child().catch(() => undefined);
      return told;
    },
    'x'.repeat(6_000_000),
  ],
])('a parent that fails %s does not cancel a workflow that it has not started', async (_when, begin, input) => {
  const Other = workflow((flow) => flow.signal('end'), 'other');
  const Parent = workflow(async (flow) => {
    await begin(flow, () => flow.child('other', input, { id: 'shared' }));
    throw flow.failure('no');
  }, 'parent');
  await using test = await testWorkflow([Parent, Other]);
  await test.start(Other, { id: 'shared', input: null });
  await test.start(Parent, START);

  await expect(test.result(Parent, '1')).rejects.toThrow('no');
  await test.settled();
  expect((await test.describe(Other, 'shared'))?.status).toBe('running');
});

it('a terminated workflow ends at once, its step is told, and nothing is undone', async () => {
  const log: string[] = [];
  const Job = workflow(async (flow) => {
    await flow.step('a', () => 1, { compensate: () => void log.push('undone') });
    await flow.step('b', ({ signal }) => new Promise(() => signal.addEventListener('abort', () => log.push('told'))));
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.workflows.terminate(Job, '1');
  await test.settled();

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_TERMINATED' });
  expect(log).toEqual(['told']);
});

it('nobody works on a workflow under a lease that another process has taken', async () => {
  const log: string[] = [];
  const Job = workflow(async (flow) => {
    await flow.step('work', ({ attempt, signal }) => {
      log.push(`begins ${attempt}`);
      signal.addEventListener('abort', () => log.push(`told ${attempt}`));
      return attempt === 1 ? new Promise(() => undefined) : 'done';
    });
    return 'ended';
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  // The store does not answer the first process any more, which goes on running.
  const cut = test.isolateStore();
  await test.advanceBy(seconds(31));
  expect(log).toEqual(['begins 1', 'told 1']);
  cut();
  await test.advanceBy(minutes(2));

  expect(await test.result(Job, '1')).toBe('ended');
  expect(log).toEqual(['begins 1', 'told 1', 'begins 2']);
});
