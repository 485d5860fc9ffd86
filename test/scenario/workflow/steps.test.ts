// Steps: how often they run, what their failures come to, and what a workflow sees of them.
import {
  consoleLogger,
  dependencyDown,
  defer,
  fixedBackoff,
  hours,
  minutes,
  poison,
  retryAfter,
  seconds,
  success,
} from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import type { WorkflowTest } from 'pulsework/testing';
import type { Flow, StepContext, StepOptions } from 'pulsework/workflow';
import { WorkflowError, defineWorkflow } from 'pulsework/workflow';
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

function workflow(run: (flow: Flow) => Promise<unknown>) {
  return defineWorkflow({ name: 'job', version: 1, input: z.unknown(), run: (flow) => run(flow) });
}

const START = { id: '1', input: null };

function oneStep(run: (context: StepContext) => unknown, options?: StepOptions<unknown>) {
  return workflow((flow) => flow.step('work', run, options));
}

it('a step that throws is tried again after the backoff of its policy, and gets the same idempotency key', async () => {
  const seen: StepContext[] = [];
  const Job = oneStep(
    (context) => {
      seen.push(context);
      if (seen.length < 3) throw new Error('busy');
      return 'done';
    },
    { redelivery: { maxDeliveries: 3, backoff: fixedBackoff(seconds(10)) } },
  );
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(seconds(20) - 1);
  expect(seen).toHaveLength(2);
  await test.advanceBy(1);

  expect(await test.result(Job, '1')).toBe('done');
  expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  expect(new Set(seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
});

it('a step that has failed as often as it may rejects with the last error as its cause', async () => {
  const caught: unknown[] = [];
  const Job = workflow(async (flow) => {
    try {
      return await flow.step('work', () => Promise.reject(new RangeError('no more')), {
        redelivery: { maxDeliveries: 2 },
      });
    } catch (error) {
      caught.push(error);
      return 'went on';
    }
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);

  expect(await test.result(Job, '1')).toBe('went on');
  expect(test.steps).toEqual(['work', 'work']);
  expect(caught.at(-1)).toBeInstanceOf(WorkflowError);
  expect(caught.at(-1)).toMatchObject({
    code: 'WORKFLOW_STEP_FAILED',
    step: 'work',
    cause: { name: 'RangeError', message: 'no more' },
  });
});

it('poison gives a step up at once', async () => {
  const Job = oneStep(() => poison('card is stolen'));
  await using test = await testWorkflow(Job);
  await test.start(Job, START);

  await expect(test.result(Job, '1')).rejects.toThrow(/card is stolen/);
  expect(test.steps).toEqual(['work']);
});

it('retryAfter waits exactly that long, and spends an attempt', async () => {
  let runs = 0;
  const Job = oneStep(() => (++runs === 1 ? retryAfter(hours(3), 'closed') : retryAfter(1)), {
    redelivery: { maxDeliveries: 2 },
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(hours(3) - 1);
  expect(runs).toBe(1);
  await test.advanceBy(1);
  expect(runs).toBe(2);

  await expect(test.result(Job, '1')).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' });
});

it('dependencyDown and defer spend no attempt; the waits for what is down double up to a minute', async () => {
  const times: number[] = [];
  let began = 0;
  const Job = oneStep(
    () => {
      times.push(test.clock.now() - began);
      if (times.length <= 9) return dependencyDown('bank');
      return times.length === 10 ? defer(minutes(5)) : 'done';
    },
    { redelivery: { maxDeliveries: 1 } },
  );
  await using test = await testWorkflow(Job);
  began = test.clock.now();
  await test.start(Job, START);

  expect(await test.result(Job, '1')).toBe('done');
  const waits = times.slice(1).map((at, i) => (at - (times[i] ?? 0)) / 1000);
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 300]);
});

it.each([
  ['an outcome for handlers', () => success(), /success\(\), which is for handlers/],
  ['a Date', () => ({ at: new Date(0) }), /must be plain data.*\.at is an instance of Date/],
  ['NaN', () => [Number.NaN], /\[0\] is NaN|\.0 is NaN/],
  ['a Map', () => new Map(), /an instance of Map/],
])('a step that returns %s fails for good and says why', async (_what, run, says) => {
  const Job = oneStep(run);
  await using test = await testWorkflow(Job);
  await test.start(Job, START);

  await expect(test.result(Job, '1')).rejects.toThrow(says);
  expect(test.steps).toEqual(['work']);
});

it('past its time limit a step is told, and counts as failed once it has ended', async () => {
  const ends: string[] = [];
  const Job = oneStep(
    async ({ signal, attempt }) => {
      if (attempt === 2) return 'done';
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      ends.push((signal.reason as Error).message);
      return 'too late';
    },
    { timeoutMs: seconds(5), redelivery: { backoff: fixedBackoff(0) } },
  );
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(seconds(5) - 1);
  expect(ends).toEqual([]);
  await test.advanceBy(1);

  expect(await test.result(Job, '1')).toBe('done');
  expect(ends).toEqual(['step "work" did not end within 5 s']);
});

it('a step that does not end even then is given up after as long again, and runs no second time before', async () => {
  let running = 0;
  let most = 0;
  const Job = oneStep(
    ({ attempt }) => {
      most = Math.max(most, ++running);
      return attempt === 2 ? 'done' : new Promise(() => undefined);
    },
    { timeoutMs: seconds(5), redelivery: { backoff: fixedBackoff(0) } },
  );
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(seconds(10) - 1);
  expect(running).toBe(1);
  await test.advanceBy(1);

  expect(await test.result(Job, '1')).toBe('done');
});

it('a step whose process dies is in doubt: it runs again, before anything that came meanwhile', async () => {
  const log: string[] = [];
  let hangs = true;
  const Job = workflow(async (flow) => {
    const done = await flow.step(
      'work',
      ({ attempt }) => (log.push(`work ${attempt}`), hangs ? new Promise(() => undefined) : 'done'),
    );
    const more = await flow.signal('more');
    return [done, more];
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.signal(Job, '1', 'more', 7);
  test.kill();
  hangs = false;
  await test.restart();

  expect(await test.result(Job, '1')).toEqual(['done', 7]);
  expect(log).toEqual(['work 1', 'work 2']);
  expect(test.violations).toEqual([]);
});

/** Ends the process in the middle of the step, each time it has begun again. @param beganMs where the step says that it has */
async function killAgainAndAgain(test: WorkflowTest, beganMs: readonly number[]): Promise<void> {
  for (let died = 0; died < 12; died++) {
    const begun = beganMs.length;
    test.kill();
    await test.restart();
    while (beganMs.length === begun) await test.advanceBy(seconds(10));
  }
}

describe('a step that ends its process again and again', () => {
  let beganMs: number[] = [];
  let kills = true;
  beforeEach(() => ([beganMs, kills] = [[], true]));
  const Job = (now: () => number) =>
    workflow(async (flow) => {
      const done = await flow.step('work', () => (beganMs.push(now()), kills ? new Promise(() => undefined) : 'done'));
      return [done, await flow.signal('more')];
    });

  it('is left alone for longer and longer, and so is what came meanwhile', async () => {
    const warnings: string[] = [];
    const warn = (message: string): void => void warnings.push(message);
    const logger = Object.assign(consoleLogger({ level: 'silent' }), { warn });
    const job = Job(() => test.clock.now());
    await using test = await testWorkflow(job, { logger });
    await test.start(job, START);
    await killAgainAndAgain(test, beganMs);
    const gapsMs = beganMs.slice(1).map((ms, i) => ms - (beganMs[i] ?? 0));
    // A process that follows finds what the last one left once its lease is over; from 128 s on the waits are longer than that.
    for (const [i, gapMs] of gapsMs.slice(7).entries()) {
      const longestMs = Math.min(minutes(10), seconds(128) * 2 ** i);
      expect(gapMs).toBeGreaterThanOrEqual(longestMs / 2);
      expect(gapMs).toBeLessThanOrEqual(longestMs + minutes(2));
    }
    expect(warnings).toContain('workflow waits: attempts of a step left nothing behind, one after the other');

    await test.signal(job, '1', 'more', 7);
    test.kill();
    kills = false;
    await test.restart();
    expect((await test.describe(job, '1'))?.waits).toMatchObject([{ command: 'step', name: 'work' }]);
    expect(await test.result(job, '1')).toEqual(['done', 7]);
    expect(test.violations).toEqual([]);
  });

  it('does not hide that code does not fit', async () => {
    const parcel = (then: string) =>
      workflow(async (flow) => {
        const work = flow.step('work', () => (beganMs.push(test.clock.now()), new Promise(() => undefined)));
        await flow.signal('more');
        await flow.step(then, () => 'done');
        return work;
      });
    const job = parcel('then');
    await using test = await testWorkflow(job);
    await test.start(job, START);
    await killAgainAndAgain(test, beganMs);
    // It is taken, and followed, while the step runs: the next process finds both, and has to wait.
    await test.signal(job, '1', 'more');
    await test.settled();
    test.kill();
    await test.restart(parcel('else'));
    expect(await test.describe(job, '1')).toMatchObject({
      status: 'blocked',
      error: { message: expect.stringContaining('recorded step "then", now step "else"') as unknown },
    });
  });

  it('is ended by terminate while it is left alone', async () => {
    const job = Job(() => test.clock.now());
    await using test = await testWorkflow(job);
    await test.start(job, START);
    await killAgainAndAgain(test, beganMs);
    test.kill();
    await test.restart();
    const begun = beganMs.length;
    expect((await test.describe(job, '1'))?.waits[0]?.untilMs).toBeGreaterThan(test.clock.now());
    await test.workflows.terminate(job, '1');
    await test.settled();
    expect((await test.describe(job, '1'))?.status).toBe('terminated');
    expect(beganMs).toHaveLength(begun);
  });
});

it('steps that are asked for together run together; each result is recorded when it comes', async () => {
  const ends: (() => void)[] = [];
  const Job = workflow((flow) =>
    flow.all(
      ['a', 'b', 'c'].map((name) =>
        flow.step(name, () => new Promise<string>((resolve) => ends.push(() => resolve(name)))),
      ),
    ),
  );
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  expect(test.steps).toEqual(['a', 'b', 'c']);
  ends[2]?.();
  await test.settled();
  test.kill();
  ends.length = 0;
  await test.restart();
  expect(test.steps).toEqual(['a', 'b', 'c', 'a', 'b']);
  for (const end of ends) end();

  expect(await test.result(Job, '1')).toEqual(['a', 'b', 'c']);
});

it('a drain lets a running step finish and records it; the next process does not run it again', async () => {
  let end: (value: string) => void = () => undefined;
  const Job = workflow(async (flow) => {
    const a = await flow.step('a', () => new Promise<string>((resolve) => (end = resolve)));
    return [a, await flow.step('b', () => 'b')];
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  const draining = test.runtime.drain();
  await test.settled();
  end('a');
  await test.advanceBy(1);
  await draining;
  expect(test.steps).toEqual(['a']);
  test.kill();
  await test.restart();

  expect(await test.result(Job, '1')).toEqual(['a', 'b']);
  expect(test.steps).toEqual(['a', 'b']);
});

it('past the deadline of a drain a step is told to end; without a result it runs again elsewhere', async () => {
  const Job = oneStep(({ signal, attempt }) =>
    attempt > 1
      ? 'done'
      : new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  );
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  const draining = test.runtime.drain({ deadlineMs: seconds(10) });
  await test.advanceBy(seconds(12));
  expect(await draining).toMatchObject({ complete: false });
  test.kill();
  await test.restart();

  expect(await test.result(Job, '1')).toBe('done');
});

it('undefined as a result, and a step without one, survive a restart', async () => {
  const Job = workflow(async (flow) => {
    const nothing = await flow.step('nothing', (): string | undefined => undefined);
    await flow.sleep('nap', minutes(1));
    return { isUndefined: nothing === undefined };
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  test.kill();
  await test.restart();

  expect(await test.result(Job, '1')).toEqual({ isUndefined: true });
});
