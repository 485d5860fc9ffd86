// Methods that go on without ever waiting, and faults in the middle of what they do: what was done is written down, and whoever
// wants the workflow to end is heard.
import type { Logger } from 'pulsework';
import { Runtime, consoleLogger, minutes, seconds, topic } from 'pulsework';
import { FakeClock, testWorkflow } from 'pulsework/testing';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import type { Flow } from 'pulsework/workflow';
import { Workflows, defineWorkflow, memoryWorkflowStore } from 'pulsework/workflow';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../support/workflow/store-with.js';

const START = { id: '1', input: null };
const logger: Logger = consoleLogger({ level: 'silent' });

function workflow(run: (flow: Flow) => Promise<unknown>, name = 'job') {
  return defineWorkflow({ name, version: 1, input: z.null(), run: (flow) => run(flow) });
}

describe('a method that never waits', () => {
  const ENDLESS: readonly [string, (flow: Flow, turn: number) => Promise<unknown>][] = [
    ['publishes for ever', (flow, turn) => flow.publish('out', turn)],
    ['sleeps for no time for ever', (flow) => flow.sleep('none', 0)],
  ];

  it.each(ENDLESS)('%s: it is written down, and can be ended', async (_what, again) => {
    let turns = 0;
    const job = workflow(async (flow) => {
      await flow.step('first', () => 'done');
      for (;;) await again(flow, ++turns);
    });
    const runtime = await Runtime.start({ transport: embedded(), handlers: [], logger });
    const workflows = await Workflows.start({ runtime, store: memoryWorkflowStore(), definitions: [job] });
    const handle = await workflows.start(job, START);
    setTimeout(() => void handle.terminate(), 50);

    await expect(handle.result()).rejects.toMatchObject({ code: 'WORKFLOW_TERMINATED' });
    expect((await handle.history()).journal.length).toBeGreaterThan(100);
    await runtime.close();
    const afterwards = turns;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(turns).toBe(afterwards);
  });

  it('what it publishes together is done together, however much it is', async () => {
    const job = workflow(async (flow) => {
      const all = Array.from({ length: 150 }, (_, n) => flow.publish('out', n));
      await flow.all(all);
      return flow.step('last', () => 'done');
    });
    await using test = await testWorkflow(job);
    await test.start(job, START);

    expect(await test.result(job, '1')).toBe('done');
    expect(await test.published('out')).toHaveLength(150);
  });
});

describe('a step that has its result is not run again', () => {
  const broken = topic('out', {
    payload: z.object({ n: z.number() }).refine(() => {
      throw new TypeError('the schema is broken');
    }),
  });

  it.each<[string, (flow: Flow) => Promise<unknown>]>([
    ['a message', (flow) => flow.publish(broken, { n: 1 })],
    ['the work of a handler', (flow) => flow.step('ship', { topic: broken, input: { n: 1 } })],
  ])('where the schema of %s throws', async (_what, next) => {
    const job = workflow(async (flow) => {
      await flow.step('charge', () => 'ok', { compensate: () => undefined });
      await next(flow);
    });
    await using test = await testWorkflow(job);
    await test.start(job, START);

    await expect(test.result(job, '1')).rejects.toThrow('its schema threw: the schema is broken');
    expect(test.steps).toEqual(['charge', 'undo charge']);
  });

  it('where a child that cannot be sent is left behind by a failure', async () => {
    const job = workflow(async (flow) => {
      await flow.step('charge', () => 'ok');
      void flow.child('job', null, { id: 'x'.repeat(6_000_000) });
      throw flow.failure('no');
    });
    await using test = await testWorkflow(job);
    await test.start(job, START);

    await expect(test.result(job, '1')).rejects.toThrow('no');
    expect(test.steps).toEqual(['charge']);
  });

  it('where the inbox cannot be read when it ends, and others that run go on', async () => {
    let fails = 0;
    const memory = memoryWorkflowStore();
    const store = storeWith(memory, {
      inbox: (...call) => (fails-- > 0 ? Promise.reject(new Error('connection reset')) : memory.inbox(...call)),
    });
    const clock = new FakeClock();
    const after = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve));
    const runs: string[] = [];
    const job = workflow((flow) =>
      flow.all([
        flow.step('charge', async () => {
          runs.push('charge');
          await after(seconds(3));
          fails = 2;
          return 'charged';
        }),
        flow.step('export', async ({ signal }) => {
          runs.push('export');
          await after(seconds(15));
          signal.throwIfAborted();
          return 'exported';
        }),
      ]),
    );
    const transport = embedded({ broker: new EmbeddedBroker({ clock }) });
    const runtime = await Runtime.start({ transport, handlers: [], logger });
    const workflows = await Workflows.start({ runtime, store, definitions: [job] });
    await workflows.start(job, START);
    await clock.advanceBy(minutes(1));

    expect((await memory.get({ name: 'job', id: '1' }))?.status).toBe('completed');
    expect(runs).toEqual(['charge', 'export']);
    await Promise.all([runtime.close(), clock.advanceBy(seconds(1))]);
  });

  it('and is written down where the workflow is terminated as it ends', async () => {
    let charged: (id: string) => void = () => undefined;
    const memory = memoryWorkflowStore();
    const store = storeWith(memory, {
      inbox: async (...call) => {
        const events = await memory.inbox(...call);
        if (events.some(({ kind }) => kind === 'terminate')) charged('ch-1');
        return events;
      },
    });
    const job = workflow(async (flow) => {
      await flow.step('charge', () => new Promise((resolve) => (charged = resolve)));
      await flow.publish('receipts', 'for what was terminated');
    });
    const clock = new FakeClock();
    const transport = embedded({ broker: new EmbeddedBroker({ clock }) });
    const runtime = await Runtime.start({ transport, handlers: [], logger });
    const workflows = await Workflows.start({ runtime, store, definitions: [job] });
    await workflows.start(job, START);
    await clock.advanceBy(seconds(1));
    await workflows.terminate(job, '1');
    await clock.advanceBy(seconds(1));

    const { journal } = await workflows.history(job, '1');
    expect(journal.map(({ kind }) => kind)).toEqual(['command', 'attempt', 'completed', 'ended']);
    await Promise.all([runtime.close(), clock.advanceBy(seconds(1))]);
  });
});
