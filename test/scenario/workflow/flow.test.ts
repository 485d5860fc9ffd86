// What else a method can ask for: signals, races, children, values that look random, beginning anew.
import { days, hours, minutes, seconds, topic } from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import type { Flow } from 'pulsework/workflow';
import { defineWorkflow } from 'pulsework/workflow';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

function workflow(run: (flow: Flow, input: number) => Promise<unknown>, name = 'job') {
  return defineWorkflow({ name, version: 1, input: z.number(), run });
}

const START = { id: '1', input: 0 };

it('signals of one name are consumed once each, in the order of their arrival, also by waits that began before', async () => {
  const Job = workflow(async (flow) => {
    const both = await flow.all([flow.signal('n'), flow.signal('n')]);
    await flow.sleep('nap', minutes(1));
    return [...both, await flow.signal('n'), await flow.signal('other')];
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  for (const n of [1, 2, 3]) await test.signal(Job, '1', 'n', n);
  await test.signal(Job, '1', 'other', 'x');

  expect(await test.result(Job, '1')).toEqual([1, 2, 3, 'x']);
});

it('two signals that come of one thing, under one event id, both come', async () => {
  const Job = workflow(async (flow) => [await flow.signal('paid'), await flow.signal('shipped')]);
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  for (const name of ['paid', 'shipped', 'paid']) await test.signal(Job, '1', name, name, { eventId: 'order-7' });

  expect(await test.result(Job, '1')).toEqual(['paid', 'shipped']);
});

it('a signal sent again under the same event id comes once', async () => {
  const Job = workflow(async (flow) => [await flow.signal('n'), await flow.signal('n')]);
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  for (const [value, eventId] of [
    [1, 'a'],
    [1, 'a'],
    [2, 'b'],
  ] as const)
    await test.workflows.signal(Job, '1', 'n', value, { eventId });

  expect(await test.result(Job, '1')).toEqual([1, 2]);
});

it('a signal that does not match the schema of the wait is dropped, and the wait goes on', async () => {
  const Job = workflow((flow) => flow.signal('n', { payload: z.number() }));
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.signal(Job, '1', 'n', 'text');
  await test.signal(Job, '1', 'n', 5);

  expect(await test.result(Job, '1')).toBe(5);
});

it('a signal reaches a workflow while a step runs, and the step is waited for before the end', async () => {
  let end: (value: string) => void = () => undefined;
  const log: string[] = [];
  const Job = workflow(async (flow) => {
    const step = flow.step('long', () => new Promise<string>((resolve) => (end = resolve)));
    const first = await flow.race({ step, stop: flow.signal('stop') });
    log.push(first.winner);
    return first;
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.signal(Job, '1', 'stop', 'now');
  expect(log).toContain('stop');
  expect((await test.describe(Job, '1'))?.status).toBe('running');
  end('late');

  expect(await test.result(Job, '1')).toEqual({ winner: 'stop', value: 'now' });
});

it('what lost a race takes no signal from whoever waits next', async () => {
  const Job = workflow(async (flow) => {
    const first = await flow.race({ a: flow.signal('a'), nap: flow.sleep('nap', minutes(1)) });
    return [first.winner, await flow.signal('a')];
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(minutes(1));
  await test.signal(Job, '1', 'a', 'for the second');
  test.kill();
  await test.restart();

  expect(await test.result(Job, '1')).toEqual(['nap', 'for the second']);
});

it.each<[string, (flow: Flow) => Promise<unknown>]>([
  ['all', (flow) => flow.all([flow.signal('a'), flow.signal('b')])],
  ['race', (flow) => flow.race({ a: flow.signal('a'), b: flow.signal('b') })],
  ['all of races', (flow) => flow.all([flow.race({ a: flow.signal('a'), b: flow.signal('b') }), flow.signal('c')])],
])('what is waited for in `%s` that lost a race takes no signal either', async (_what, inner) => {
  const Job = workflow(async (flow) => {
    const { winner } = await flow.race({ inner: inner(flow), late: flow.sleep('late', minutes(1)) });
    return [winner, await flow.signal('a')];
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(minutes(2));
  await test.signal(Job, '1', 'a', 7);

  expect(await test.result(Job, '1')).toEqual(['late', 7]);
});

it('a race that is over can be waited for again with others', async () => {
  const Job = workflow(async (flow) => {
    const race = flow.race({ a: flow.signal('a'), b: flow.signal('b') });
    const first = await race;
    return [first, ...(await flow.all([race, flow.signal('c')]))];
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  for (const name of ['a', 'c']) await test.signal(Job, '1', name, name);

  const won = { winner: 'a', value: 'a' };
  expect(await test.result(Job, '1')).toEqual([won, won, 'c']);
});

it('what lost a race and is raced again blocks the workflow, instead of never coming', async () => {
  const Job = workflow(async (flow) => {
    const a = flow.signal('a');
    await flow.race({ a, nap: flow.sleep('nap', minutes(1)) });
    return flow.race({ a, nap: flow.sleep('nap', minutes(1)) });
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.advanceBy(minutes(1));

  expect(await test.describe(Job, '1')).toMatchObject({
    status: 'blocked',
    error: { message: expect.stringContaining('takes signal "a", which lost a race') as string },
  });
});

it('times, random numbers and ids are the same in each replay, and differ between workflows and places', async () => {
  const seen: unknown[][] = [];
  const Job = workflow(async (flow) => {
    const values: unknown[] = [flow.now(), flow.random(), flow.random(), flow.uuid()];
    await flow.sleep('nap', minutes(1));
    values.push(flow.now(), flow.uuid());
    seen.push(values);
    await flow.sleep('nap', minutes(1));
    return values;
  });
  await using test = await testWorkflow(Job);
  const began = test.clock.now();
  await test.start(Job, START);
  const first = (await test.result(Job, '1')) as unknown[];

  for (const values of seen) expect(values).toEqual(first);
  expect(seen.length).toBeGreaterThan(1);
  expect(first[0]).toBe(began);
  expect(first[4]).toBe(began + minutes(1));
  expect(new Set(first).size).toBe(6);
  expect(first[3]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

it('children without an id are not confused with those of other workflows of the same id', async () => {
  const Child = workflow(async (_flow, n) => n, 'child');
  const parents = ['order', 'invoice'].map((name, n) => workflow((flow) => flow.child(Child, n), name));
  await using test = await testWorkflow([Child, ...parents]);
  for (const parent of parents) await test.start(parent, START);

  expect(await Promise.all(parents.map((parent) => test.result(parent, '1')))).toEqual([0, 1]);
});

it('a child’s result comes to its parent, its failure too', async () => {
  const Child = workflow(async (flow, n) => {
    await flow.sleep('work', hours(n));
    if (n === 3) throw flow.failure('three is too many');
    return n * 10;
  }, 'child');
  const Parent = workflow(async (flow) => {
    const results = await flow.all([flow.child(Child, 1), flow.child(Child, 2)]);
    const failed = await flow.child('child', 3).catch((error: unknown) => (error as { cause: Error }).cause.message);
    return [...results, failed];
  }, 'parent');
  await using test = await testWorkflow([Parent, Child]);
  await test.start(Parent, START);

  expect(await test.result(Parent, '1')).toEqual([10, 20, 'three is too many']);
  expect((await test.workflows.list({ name: 'child' })).map(({ id, parent }) => [id, parent?.id])).toEqual([
    ['parent/1/1/0', '1'],
    ['parent/1/1/1', '1'],
    ['parent/1/1/2', '1'],
  ]);
});

it('a workflow begins anew with another input, an empty journal and the signals that nobody took', async () => {
  const Job = defineWorkflow({
    name: 'subscription',
    version: 1,
    input: z.object({ month: z.number(), paid: z.array(z.number()) }),
    async run(flow, { month, paid }): Promise<unknown> {
      await flow.sleep('month', days(30));
      const amount = await flow.step('bill', () => month);
      const stop = await flow.signal('stop', { timeoutMs: 0 });
      if (stop !== undefined) return [...paid, amount];
      return flow.continueAsNew({ month: month + 1, paid: [...paid, amount] });
    },
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, { id: '1', input: { month: 1, paid: [] } });
  await test.advanceBy(days(70));
  await test.signal(Job, '1', 'stop', true);
  expect((await test.describe(Job, '1'))?.run).toBe(3);

  expect(await test.result(Job, '1')).toEqual([1, 2, 3]);
  expect((await test.history(Job, '1')).journal.filter(({ kind }) => kind === 'command')).toHaveLength(3);
});

it('a sleep until a point in time that has passed is over at once', async () => {
  const Job = workflow(async (flow) => (await flow.sleep('past', new Date(0)), 'done'));
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.settled();

  expect((await test.describe(Job, '1'))?.status).toBe('completed');
});

it('a message has the same id in every process that sends it', async () => {
  const Job = workflow(async (flow) => {
    await flow.publish('out', { n: 1 }, { key: 'k' });
    await flow.publish('out', { n: 2 });
  });
  await using test = await testWorkflow(Job);
  await test.start(Job, START);
  await test.result(Job, '1');
  await test.advanceBy(seconds(30));

  expect(await test.published('out')).toEqual([{ n: 1 }, { n: 2 }]);
});

it('a message that can never be sent is refused where it is asked for', async () => {
  const Job = workflow((flow) =>
    flow.publish(topic('numbers', { payload: z.number() }), 'text' as never).then(
      () => 'sent',
      (error: unknown) => (error as { code: string }).code,
    ),
  );
  await using test = await testWorkflow(Job);
  await test.start(Job, START);

  expect(await test.result(Job, '1')).toBe('PUBLISH_REFUSED');
});

describe('what is larger than the broker takes is refused where somebody still hears of it', () => {
  const LARGE = 'x'.repeat(6 * 1024 * 1024);
  const code = (error: unknown): string => (error as { code: string }).code;
  const causeOf = (error: unknown): string => (error as { cause: Error }).cause.message;

  it('a message and the work of a step in the method that asks for them, and what it sends later goes on', async () => {
    const Job = workflow(async (flow) => {
      const sent = await flow.publish('papers', LARGE).catch(code);
      const done = await flow.step('read', { topic: 'books', input: LARGE }).catch(causeOf);
      await flow.publish('papers', 'small');
      return [sent, done];
    });
    await using test = await testWorkflow(Job);
    await test.start(Job, START);

    expect(await test.result(Job, '1')).toEqual([
      'PUBLISH_REFUSED',
      expect.stringMatching(
        /a message of 629\d{4} bytes, with its envelope, is larger than the 5242880 bytes that the broker takes/,
      ),
    ]);
    expect(await test.published('papers')).toEqual(['small']);
  });

  it('the input of a child, and its result, in the parent', async () => {
    const Child = defineWorkflow({ name: 'child', version: 1, input: z.string(), run: async () => LARGE });
    const Parent = defineWorkflow({
      name: 'parent',
      version: 1,
      input: z.null(),
      async run(flow) {
        const first = await flow.child(Child, LARGE, { id: 'c-1' }).catch(causeOf);
        return [first, await flow.child(Child, 'small', { id: 'c-2' }).catch(causeOf)];
      },
    });
    await using test = await testWorkflow([Parent, Child]);
    await test.start(Parent, { id: '1', input: null });

    const tooLarge: unknown = expect.stringContaining('is larger than the 5242880 bytes that the broker takes');
    expect(await test.result(Parent, '1')).toEqual([tooLarge, tooLarge]);
    expect((await test.describe(Child, 'c-2'))?.status).toBe('completed');
  });

  it('of the error of a child its beginning reaches the parent', async () => {
    const Child = defineWorkflow({
      name: 'child',
      version: 1,
      input: z.null(),
      run: (flow) => Promise.reject(flow.failure(`no paper ${LARGE}`)),
    });
    const Parent = workflow((flow) => flow.child(Child, null, { id: 'c-1' }).catch(causeOf), 'parent');
    await using test = await testWorkflow([Parent, Child]);
    await test.start(Parent, START);

    const told = await test.result(Parent, '1');
    expect(told).toMatch(/^no paper xxx/);
    expect(String(told).length).toBeLessThan(5_000);
  });
});
