// Calls that are wrong, by the method, by steps and by those who write events: each is refused with what is wrong, nothing waits
// for ever, and what cannot be kept as it is never changed without a word.
import { Runtime, minutes, seconds, topic } from 'pulsework';
import { embedded } from 'pulsework/embedded';
import { testWorkflow } from 'pulsework/testing';
import type { Flow } from 'pulsework/workflow';
import { Workflows, defineWorkflow, memoryWorkflowStore, stepFailure } from 'pulsework/workflow';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>;

const START = { id: '1', input: null };
const job = (run: (flow: Flow) => Promise<unknown>) =>
  defineWorkflow({ name: 'job', version: 1, input: z.null(), run: (flow) => run(flow) });
const loose = (run: (flow: Loose) => Promise<unknown>) => job((flow) => run(flow as unknown as Loose));
const strict = defineWorkflow({ name: 'strict', version: 1, input: z.number(), run: async (_flow, n) => n });

const CALLS: readonly [string, (flow: Loose) => Promise<unknown>, string][] = [
  ['child of a name that none can have', (flow) => flow['child']!('a/b', 1), 'no workflow can have that name'],
  ['itself as child', (flow) => flow['child']!('job', null, { id: '1' }), 'would wait for itself'],
  ['attributes', (flow) => flow['child']!('strict', 1, { attributes: { a: 5 } }), '"attributes" must be an object'],
  ['options of a step', (flow) => flow['step']!('s', () => 1, null), '"options" must be an object, got null'],
  ['options of a signal', (flow) => flow['signal']!('s', null), '"options" must be an object, got null'],
  ['schema of a signal', (flow) => flow['signal']!('s', { payload: 5 }), '"payload" must be a Standard Schema'],
  ['a race of values', (flow) => flow['race']!({ a: 5 }), 'flow.race() takes an object of what `flow` gave'],
  ['a race of nothing', (flow) => flow['race']!(null), 'flow.race() takes an object of what `flow` gave, got null'],
  ['all of nothing', (flow) => flow['all']!(5), 'flow.all() takes a list, got 5'],
  ['a query', async (flow) => flow['query']!('q', 5), 'flow.query() takes a name and a function'],
  ['a patch', async (flow) => flow['patched']!(undefined), 'flow.patched() needs the name of the change'],
  [
    'a step in a step',
    (flow) => flow['step']!('a', () => flow['step']!('b', () => 1)),
    'step "b" was asked for inside',
  ],
  [
    'chance in a step',
    (flow) => flow['step']!('a', () => flow['uuid']!()),
    'flow.random() or flow.uuid() was called inside a step',
  ],
];

it.each(CALLS)('%s: the workflow is blocked with what is wrong', async (_what, run, says) => {
  await using test = await testWorkflow([loose(run), strict]);
  await test.start('job', START);
  await test.advanceBy(seconds(1));

  expect(await test.describe('job', '1')).toMatchObject({
    status: 'blocked',
    error: { code: 'WORKFLOW_DIVERGED', message: expect.stringContaining(says) as string },
  });
});

const CHANGED: readonly [string, () => unknown, string][] = [
  ['a promise that was not awaited', () => ({ charge: Promise.resolve(1) }), '.charge is an instance of Promise'],
  ['a WeakMap', () => new WeakMap(), 'it is an instance of WeakMap'],
  ['a boxed number', () => [new Number(5)], '.0 is an instance of Number'],
  // oxlint-disable-next-line no-sparse-arrays
  ['a hole', () => [1, , 3], '.1 is undefined'],
  [
    'a getter that throws',
    () => ({
      get a() {
        throw new Error('no such');
      },
    }),
    'it cannot be read: no such',
  ],
  ['more levels than the stack has room for', () => nested(100_000), 'it cannot be read'],
];

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

it.each(CHANGED)('%s is no result of a step and no input', async (_what, make, says) => {
  const run = job((flow) => flow.step('s', make as () => number));
  const open = defineWorkflow({ name: 'open', version: 1, input: z.unknown(), run: async () => 1 });
  await using test = await testWorkflow([run, open]);
  await test.start(run, START);

  await expect(test.result(run, '1')).rejects.toThrow(says);
  await expect(test.start(open, { id: '2', input: make() })).rejects.toMatchObject({
    code: 'WORKFLOW_VALUE_INVALID',
    message: expect.stringContaining(says) as string,
  });
});

describe('a parent hears that its child was not started', () => {
  it('because its input is wrong', async () => {
    const parent = loose((flow) => flow['child']!('strict', 'no number'));
    await using test = await testWorkflow([parent, strict]);
    await test.start(parent, START);

    await expect(test.result(parent, '1')).rejects.toMatchObject({
      code: 'WORKFLOW_FAILED',
      message: expect.stringContaining('its input does not match the schema') as string,
    });
  });

  it('because somebody else has started one of that id', async () => {
    const parent = job((flow) => flow.child(strict, 1, { id: 'taken' }));
    await using test = await testWorkflow([parent, strict]);
    await test.start(strict, { id: 'taken', input: 5 });
    await test.start(parent, START);

    await expect(test.result(parent, '1')).rejects.toThrow('there is a workflow "strict" "taken" already');
    expect(await test.result(strict, 'taken')).toBe(5);
  });

  it('because it would be its own grandparent', async () => {
    const first = job((flow) => flow.child('second', null, { id: 's' }));
    const run = (flow: Flow): Promise<unknown> => flow.child('job', null, { id: '1' });
    const second = defineWorkflow({ name: 'second', version: 1, input: z.null(), run });
    await using test = await testWorkflow([first, second]);
    await test.start(first, START);

    await expect(test.result(first, '1')).rejects.toThrow('there is a workflow "job" "1" already');
  });
});

describe('queries', () => {
  it('an answer is plain data, and one that asks the flow for something is refused', async () => {
    const asked = job(async (flow) => {
      flow.query('date', () => new Date(0));
      flow.query('later', async () => 5);
      flow.query('step', () => flow.step('x', () => 1));
      await flow.signal('end');
    });
    await using test = await testWorkflow(asked);
    await test.start(asked, START);
    await test.advanceBy(1);

    await expect(test.query(asked, '1', 'date')).rejects.toMatchObject({ code: 'WORKFLOW_VALUE_INVALID' });
    expect(await test.query(asked, '1', 'later')).toBe(5);
    await expect(test.query(asked, '1', 'step')).rejects.toThrow('was asked for inside a step or a query');
  });
});

const EVENTS: readonly (readonly [string, Record<string, unknown>, string])[] = [
  [
    'the end of a child without an error',
    { kind: 'child-ended', payload: { run: 1, at: 0, error: null } },
    '"payload"',
  ],
  ['a start for nobody', { kind: 'start', id: 'x', input: null, parent: null }, '"parent"'],
  [
    'a start for what no workflow is',
    { kind: 'start', id: 'x', input: null, parent: { name: 'a/b', id: 'x', run: 1, at: 0 } },
    '"parent"',
  ],
  [
    'a wait without end',
    { kind: 'step-done', payload: { run: 1, at: 0, attempt: 1, error: { name: 'E', message: 'm' }, retry: 1e300 } },
    '"payload"',
  ],
];

it.each(EVENTS)('%s is a dead letter, and the workflow goes on', async (_what, event, says) => {
  const waiting = job((flow) => flow.child('waits', null));
  const waits = defineWorkflow({ name: 'waits', version: 1, input: z.null(), run: (flow) => flow.signal('end') });
  await using test = await testWorkflow([waiting, waits]);
  await test.start(waiting, START);
  await test.advanceBy(1);
  const events = topic<Record<string, unknown>>('pulsework-workflow-job');
  const published = test.runtime.publisher(events).publish({ v: 1, id: '1', eventId: 'e', ...event }, { key: '1' });
  await test.advanceBy(minutes(1));
  await published;

  expect(await test.deadLetters(waiting)).toEqual([expect.stringContaining(says)]);
  await test.signal('waits', 'job/1/1/0', 'end', 'well');
  expect(await test.result(waiting, '1')).toBe('well');
});

it('options that are no object, and filters that are none, are refused by name', async () => {
  const runtime = await Runtime.start({ transport: embedded(), handlers: [], logger: silent() });
  const workflows = await Workflows.start({ runtime, store: memoryWorkflowStore(), definitions: [strict] });
  const handle = await workflows.start(strict, { id: '1', input: 1 });
  const nothing = null as never;

  await expect(workflows.list(nothing)).rejects.toThrow('"filter" must be an object, got null');
  await expect(workflows.signal(strict, '1', 's', 1, nothing)).rejects.toThrow('"options" must be an object');
  await expect(handle.result(nothing)).rejects.toThrow('"options" must be an object');
  expect(() => workflows.events(nothing)).toThrow('"options" must be an object');
  expect(() => handle.events(nothing)).toThrow('"options" must be an object');
  const filter = { status: 'gone', name: 5, createdFromMs: 'x', after: {} } as never;
  await expect(workflows.list(filter)).rejects.toMatchObject({
    problems: [
      expect.stringContaining('"name" must be'),
      expect.stringContaining('"status" must be one of'),
      expect.stringContaining('"createdFromMs" must be epoch milliseconds'),
      expect.stringContaining('"after" must be a record'),
    ],
  });
  expect(() => runtime.drain({ timeoutMs: 5 } as never)).toThrow('unknown option "timeoutMs"');
  expect(() => runtime.drain(nothing)).toThrow('"options" must be an object');
  await runtime.drain();
});

it('stepFailure says what is wrong with its own call', () => {
  const delivery = { properties: {} };

  expect(() => stepFailure(delivery, null as never)).toThrow('"reason" must be a text or an Error, got null');
  expect(() => stepFailure(delivery, 'x', null as never)).toThrow('"options" must be an object, got null');
  for (const retry of [Number.NaN, -1, Number.MAX_VALUE, 'soon'])
    expect(() => stepFailure(delivery, 'x', { retry } as never)).toThrow('"retry" must be true, false or milliseconds');
});

function silent() {
  const nothing = (): void => undefined;
  return { debug: nothing, info: nothing, warn: nothing, error: nothing };
}
