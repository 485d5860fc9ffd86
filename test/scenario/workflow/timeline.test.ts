// Journals printed as timelines equal what is written down in `expected/`. After an intended change:
// npx vitest run --project framework test/scenario/workflow/timeline.test.ts -u
import { days, defer, fixedBackoff, hours, minutes, seconds } from 'pulsework';
import type { WorkflowTest } from 'pulsework/testing';
import { testWorkflow } from 'pulsework/testing';
import type { Flow, WorkflowHistory } from 'pulsework/workflow';
import { defineWorkflow, workflowTimeline } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

const define = (name: string, run: (flow: Flow) => Promise<unknown>) =>
  defineWorkflow({ name, version: 1, input: z.null(), run: (flow) => run(flow) });
const soon = { redelivery: { backoff: fixedBackoff(seconds(2)), maxDeliveries: 2 } };

const child = define('ship', async (flow) => flow.sleep('on its way', days(2)));

const STORIES: readonly [
  string,
  (flow: Flow, test: WorkflowTest) => Promise<unknown>,
  ((test: WorkflowTest) => Promise<unknown>)?,
][] = [
  [
    'completed',
    async (flow, test) => {
      await flow.step('charge', async ({ attempt }) => {
        await new Promise<void>((resolve) => test.clock.setTimer(40 * attempt, resolve));
        if (attempt === 1) throw new Error('the bank is busy\nand more');
      });
      await flow.step('stock', ({ attempt }) => (attempt === 1 ? defer(minutes(1), 'closed') : 'there'));
      await flow.signal('packed', { timeoutMs: hours(2) });
      await flow.race({ paid: flow.signal('paid'), late: flow.sleep('reminder', hours(1)) });
      await flow.child(child, null);
      await flow.publish('receipts', { id: flow.id });
      await flow.all([flow.step('mail', () => 1), flow.step('file', () => 2)]);
      return 'done';
    },
    async (test) => {
      await test.advanceBy(minutes(20));
      await test.signal('job', '1', 'packed');
    },
  ],
  [
    'stuck-and-resumed',
    async (flow, test) => {
      await flow.step('charge', () => 1, {
        compensate: {
          run: () => {
            if (test.clock.now() < Date.UTC(2026, 0, 2)) throw new Error('the bank is closed');
          },
          ...soon,
        },
      });
      await flow.step('reserve', () => 2, { compensate: () => undefined });
      await flow.step(
        'pack',
        () => {
          throw new Error('no such item');
        },
        soon,
      );
    },
    async (test) => {
      await test.advanceBy(days(1));
      await test.workflows.resume('job', '1');
      await test.advanceBy(minutes(1));
    },
  ],
  [
    'cancelled',
    async (flow) => {
      await flow.step('charge', () => 1, { compensate: () => undefined });
      if (flow.patched('longer')) await flow.sleep('cool-off', days(14));
    },
    async (test) => {
      await test.advanceBy(hours(30));
      await test.cancel('job', '1');
    },
  ],
  [
    'of-handlers',
    async (flow) =>
      flow.all([
        flow.step('label', { topic: 'labels', input: 1 }, { timeoutMs: hours(1), ...soon }),
        flow.step('pack', () => 1),
      ]),
  ],
  [
    'blocked',
    async (flow) => {
      await flow.step('charge', () => 1);
      (flow as unknown as { go: () => void }).go();
    },
  ],
];

it.each(STORIES)('the timeline of one that is %s', async (name, run, happen = () => Promise.resolve()) => {
  const running: { test?: WorkflowTest } = {};
  const job = define('job', (flow) => run(flow, running.test as WorkflowTest));
  await using test = await testWorkflow([job, child]);
  running.test = test;
  await test.start(job, { id: '1', input: null });
  await happen(test);
  await test.ended(job, '1');
  const timeline = await test.workflows.handle(job, '1').timeline();

  await expect(`${timeline}\n`).toMatchFileSnapshot(`expected/timeline-${name}.txt`);
  const exported = JSON.parse(JSON.stringify(await test.history(job, '1'))) as WorkflowHistory;
  expect(workflowTimeline(exported)).toBe(timeline);
});

it('the timeline of a step that a crash cut short has both attempts', async () => {
  const job = define('job', async (flow) =>
    flow.step('charge', ({ attempt }) => (attempt === 1 ? new Promise(() => undefined) : 'done')),
  );
  await using test = await testWorkflow(job);
  await test.start(job, { id: '1', input: null });
  test.kill();
  await test.restart();
  await test.result(job, '1');

  await expect(`${await test.workflows.handle(job, '1').timeline()}\n`).toMatchFileSnapshot(
    'expected/timeline-cut-short.txt',
  );
});

it('the timeline has no line for the milliseconds between the asking for a step and its begin', () => {
  const record = {
    name: 'job',
    id: '1',
    version: 1,
    status: 'completed',
    run: 1,
    createdMs: 0,
    runStartedMs: 0,
    endedMs: 900,
    waits: [],
  };
  const asked = (at: number, atMs: number) => ({ kind: 'command', at, command: 'step', name: `s${at}`, atMs });
  const journal = [
    asked(0, 1),
    { kind: 'attempt', at: 0, attempt: 1, atMs: 3 },
    { kind: 'completed', at: 0, atMs: 5, value: 1 },
    asked(1, 5),
    { kind: 'attempt', at: 1, attempt: 1, atMs: 805 },
    { kind: 'completed', at: 1, atMs: 900, value: 1 },
  ];
  const history = { format: 'pulsework-workflow-history', v: 1, record, journal } as unknown as WorkflowHistory;
  expect(workflowTimeline(history).split('\n').slice(2)).toEqual([
    '  0 ms    started',
    '  3 ms    step "s0"  attempt 1 done after 2 ms',
    '  5 ms    step "s1"  asked for',
    '  805 ms  step "s1"  attempt 1 done after 95 ms',
  ]);
});

it('the timeline of one that waits says for what, and that of a later run since when', async () => {
  const loop = defineWorkflow({
    name: 'loop',
    version: 1,
    input: z.boolean(),
    async run(flow, isLast) {
      await flow.sleep('month', days(30));
      if (!isLast) return flow.continueAsNew(true);
      await flow.step('bill', () => {
        throw new Error('declined');
      });
      return flow.signal('paid');
    },
  });
  await using test = await testWorkflow(loop);
  await test.start(loop, { id: 'l "1"', input: false });
  await test.advanceBy(days(60));

  await expect(`${await test.workflows.handle(loop, 'l "1"').timeline()}\n`).toMatchFileSnapshot(
    'expected/timeline-waiting.txt',
  );
});
