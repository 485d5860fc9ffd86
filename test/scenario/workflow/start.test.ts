// What is checked before anything runs, and what becomes of events that are wrong or come while the store is down.
import { minutes, seconds } from 'pulsework';
import { testWorkflow } from 'pulsework/testing';
import { Workflow, Workflows, defineWorkflow, memoryWorkflowStore } from 'pulsework/workflow';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const input = z.object({ n: z.number() });
const Job = defineWorkflow({
  name: 'job',
  version: 1,
  input,
  signals: { more: z.number() },
  run: async (flow, { n }) => n + (await flow.signal('more', { payload: z.number() })),
});
const START = { id: '1', input: { n: 1 } };

class Undecorated {
  run = async () => 1;
}

@Workflow('no-method', { version: 1, input })
abstract class NoMethod {
  abstract run(): Promise<unknown>;
}

@Workflow('with-arguments', { version: 1, input })
class WithArguments {
  readonly #n: number;
  constructor(n: number) {
    this.#n = n;
  }
  async run(): Promise<number> {
    return this.#n;
  }
}

it('all that is wrong with options and definitions is said at once', async () => {
  const run = async () => undefined;
  const wrong = [
    { kind: 'workflow', name: 'a b', options: { version: 0, input: 5, sginals: {} }, run },
    { kind: 'workflow', name: 'job', options: { version: 1, input, queries: { q: 1 } } },
    { ...Job, name: 'twice' },
    { ...Job, name: 'twice' },
    Undecorated,
    NoMethod,
    WithArguments,
    5,
  ];
  const options = { runtime: {}, store: {}, definitions: wrong, leaseMs: 5, concurrency: 0, retries: 1 };

  await expect(Workflows.start(options as never)).rejects.toMatchObject({
    problems: [
      expect.stringContaining('unknown option "retries"'),
      expect.stringContaining('"runtime" must be what Runtime.start()'),
      expect.stringContaining('"store" must have the methods open, close, start'),
      expect.stringContaining('"concurrency" must be a positive integer'),
      expect.stringContaining('"leaseMs" must be a duration of at least 1000 ms'),
      expect.stringContaining('workflow "a b": its name must be letters'),
      expect.stringContaining('workflow "a b": unknown option "sginals", did you mean "signals"?'),
      expect.stringContaining('workflow "a b": "version" must be a positive integer, got 0'),
      expect.stringContaining('workflow "a b": "input" must be a Standard Schema'),
      expect.stringContaining('workflow "job": "queries.q" must be a Standard Schema'),
      expect.stringContaining('workflow "job": "run" is missing'),
      expect.stringContaining('class Undecorated: it has no @Workflow'),
      expect.stringContaining('class NoMethod: it needs a method run(flow, input)'),
      expect.stringContaining('class WithArguments: its constructor takes arguments'),
      expect.stringContaining('item 7 is 5'),
      expect.stringContaining('two definitions are of workflow "twice" version 1'),
    ],
  });
});

it('two sets of workflows of one name on one runtime are refused, and the store is closed again', async () => {
  await using test = await testWorkflow(Job);
  const store = memoryWorkflowStore();

  await expect(Workflows.start({ runtime: test.runtime, store, definitions: [Job] })).rejects.toMatchObject({
    problems: [expect.stringContaining('names must be unique'), expect.stringContaining('both use subscription')],
  });
  await expect(store.get({ name: 'job', id: '1' })).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
});

describe('values from outside', () => {
  it('are checked where they are given', async () => {
    await using test = await testWorkflow(Job);
    const invalid = { code: 'WORKFLOW_VALUE_INVALID' };

    await expect(test.start(Job, { id: '1', input: { n: 'x' as never } })).rejects.toMatchObject(invalid);
    await expect(test.signal(Job, '1', 'more', 'text')).rejects.toMatchObject(invalid);
    await expect(test.signal(Job, '1', 'other', 1)).rejects.toThrow(/accepts no signal "other"; it has more/);
    await expect(test.start('unknown', START)).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    await expect(test.query(Job, '1', 'q')).rejects.toMatchObject({ code: 'WORKFLOW_NOT_FOUND' });
    expect(() => test.workflows.handle(Job, '')).toThrow(/"id" must be a text that is not empty/);
  });

  it.each([
    ['no event at all', 'text', /an event must be an object/],
    ['an event of another version', { v: 2, id: '1', kind: 'start', input: { n: 1 } }, /"v" must be 1/],
    ['an event without an id', { v: 1, kind: 'cancel', eventId: 'e' }, /"id" must be a text/],
    ['an unknown kind', { v: 1, id: '1', kind: 'pause', eventId: 'e' }, /"kind" must be one of start, signal/],
    [
      'a start whose input is wrong',
      { v: 1, id: '1', kind: 'start', input: {} },
      /its input does not match the schema/,
    ],
    [
      'a signal that is not accepted',
      { v: 1, id: '1', kind: 'signal', eventId: 'e', name: 'other' },
      /it accepts no signal "other"/,
    ],
  ])('that come as a message become dead letters: %s', async (_what, event, reason) => {
    await using test = await testWorkflow(Job);
    const payload = new TextEncoder().encode(JSON.stringify(event));
    await test.broker.publish('pulsework-workflow-job', { payload, properties: {}, key: '1' });
    await test.advanceBy(seconds(1));
    const [letter, ...others] = await test.deadLetters('job');

    expect(letter).toMatch(reason);
    expect(others).toEqual([]);
    expect(await test.describe(Job, '1')).toBeUndefined();
  });
});

it('events that come while the store is down wait for it, in their order, and none is lost', async () => {
  await using test = await testWorkflow(Job);
  const ends = test.isolateStore();
  await test.start(Job, START);
  await test.signal(Job, '1', 'more', 41);
  await test.advanceBy(minutes(5));
  ends();
  await test.advanceBy(minutes(2));

  expect(await test.result(Job, '1')).toBe(42);
  expect(await test.deadLetters('job')).toEqual([]);
});

it('the end of a workflow is awaited for as long as was said, and not beyond the runtime', async () => {
  await using test = await testWorkflow(Job);
  const handle = await test.start(Job, START);
  const limited = handle.result({ timeoutMs: seconds(10) }).catch((error: unknown) => error);
  const endless = handle.result().catch((error: unknown) => error);
  await test.advanceBy(seconds(10));
  expect(await limited).toMatchObject({ code: 'CALL_TIMED_OUT' });
  await test.close();

  expect(await endless).toMatchObject({ code: 'ALREADY_CLOSED' });
});

it('attributes and status find a workflow, page by page', async () => {
  await using test = await testWorkflow(Job);
  for (const id of ['1', '2', '3'])
    await test.start(Job, { ...START, id, attributes: { parity: Number(id) % 2 === 0 ? 'even' : 'odd' } });
  await test.signal(Job, '3', 'more', 1);
  const ids = async (filter: object) => (await test.workflows.list(filter)).map(({ id }) => id);

  expect(await ids({ attributes: { parity: 'odd' } })).toEqual(['1', '3']);
  expect(await ids({ attributes: { parity: 'odd' }, status: 'running' })).toEqual(['1']);
  const [first] = await test.workflows.list({ limit: 1 });
  expect(await ids({ limit: 1, after: first })).toEqual(['2']);
  await expect(test.workflows.list({ stauts: 'running' } as never)).rejects.toThrow(/did you mean "status"/);
});
