// Two processes with one broker and one store: who works on what, what the other one hears of it, and what a process that was cut
// off may still do.
import type { Clock } from 'pulsework';
import { Runtime, consoleLogger, minutes, seconds } from 'pulsework';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import { FakeClock } from 'pulsework/testing';
import type { WorkflowDefinition } from 'pulsework/workflow';
import { Workflows, defineWorkflow, memoryWorkflowStore } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { seeded } from '../../support/seeded.js';

interface Worker {
  readonly workflows: Workflows;
  readonly runtime: Runtime;
  /** Its calls to the store fail from now on, or reach it again. */
  cut(isCut: boolean): void;
  /** It finds nothing that is due. */
  blind(isBlind: boolean): void;
}

class Office {
  readonly clock = new FakeClock();
  readonly #broker = new EmbeddedBroker({ clock: this.clock });
  readonly #store = memoryWorkflowStore();
  /** Writes that were refused. */
  readonly refused: string[] = [];

  async worker(name: string, definition: (worker: string) => WorkflowDefinition): Promise<Worker> {
    let isCut = false;
    let isBlind = false;
    const store = new Proxy(this.#store, {
      get: (target, method) => {
        const value: unknown = Reflect.get(target, method);
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]): Promise<unknown> => {
          if (isCut) throw new Error('cut off');
          if (isBlind && method === 'due') return [];
          try {
            return await (value as (...given: unknown[]) => Promise<unknown>).apply(target, args);
          } catch (error) {
            this.refused.push(`${name}: ${(error as { code: string }).code}`);
            throw error;
          }
        };
      },
    });
    const random = seeded(name.charCodeAt(0));
    const runtime = await this.#awaited(
      Runtime.start({
        transport: embedded({ broker: this.#broker }),
        handlers: [],
        logger: consoleLogger({ level: 'silent' }),
        random,
      }),
    );
    const workflows = await this.#awaited(Workflows.start({ runtime, store, definitions: [definition(name)] }));
    return { workflows, runtime, cut: (cut) => (isCut = cut), blind: (blind) => (isBlind = blind) };
  }

  async close(...workers: readonly Worker[]): Promise<void> {
    for (const { runtime } of workers) await this.#awaited(runtime.close());
  }

  async #awaited<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const watched = work.finally(() => (state.isDone = true));
    await this.clock.advanceUntil(() => state.isDone);
    return watched;
  }
}

const input = z.null();

it('many workflows are shared out, and each step runs once', async () => {
  const office = new Office();
  const runs: string[] = [];
  const define = (worker: string) =>
    defineWorkflow({
      name: 'job',
      version: 1,
      input,
      async run(flow) {
        for (const step of ['a', 'b']) {
          await flow.step(step, ({ idempotencyKey }) => void runs.push(`${worker} ${idempotencyKey}`));
          await flow.sleep('nap', seconds(7));
        }
        return 'done';
      },
    });
  const [one, two] = [await office.worker('one', define), await office.worker('two', define)];
  const ids = Array.from({ length: 40 }, (_, n) => `w${n}`);
  const started = Promise.all(ids.map((id) => one.workflows.start('job', { id, input: null })));
  await office.clock.advanceBy(minutes(1));
  await started;

  expect((await two.workflows.list({ status: 'completed' })).length).toBe(40);
  expect(new Set(runs.map((run) => run.split(' ')[1])).size).toBe(80);
  expect(runs).toHaveLength(80);
  expect(new Set(runs.map((run) => run.split(' ')[0]))).toEqual(new Set(['one', 'two']));
  expect(office.refused).toEqual([]);
  await office.close(one, two);
});

it('a long workflow goes from one to the other and back, and neither goes on from what it had kept of it', async () => {
  const office = new Office();
  const runs: string[] = [];
  const define = (worker: string) =>
    defineWorkflow({
      name: 'job',
      version: 1,
      input,
      async run(flow) {
        let sum = 0;
        for (let n = 0; n < 120; n++) {
          sum += await flow.step(`${n}`, () => (runs.push(`${worker} ${n}`), n));
          await flow.sleep('nap', seconds(7 + (n % 5)));
        }
        return sum;
      },
    });
  const workers = [await office.worker('one', define), await office.worker('two', define)] as const;
  void workers[0].workflows.start('job', { id: '1', input: null });
  for (let turn = 0; turn < 25; turn++) {
    workers[turn % 2]?.blind(true);
    workers[(turn + 1) % 2]?.blind(false);
    await office.clock.advanceBy(minutes(1));
  }

  expect(await workers[1].workflows.describe('job', '1')).toMatchObject({ status: 'completed', result: 7_140 });
  expect(runs.map((run) => Number(run.split(' ')[1]))).toEqual(Array.from({ length: 120 }, (_, n) => n));
  const changes = runs.filter((run, i) => i > 60 && run.split(' ')[0] !== runs[i - 1]?.split(' ')[0]);
  expect(changes.length).toBeGreaterThan(3);
  expect(office.refused).toEqual([]);
  await office.close(...workers);
});

it('a signal reaches a step that runs in the other process within a scan interval', async () => {
  const office = new Office();
  const clock: Clock = office.clock;
  const told: string[] = [];
  const define = (worker: string) =>
    defineWorkflow({
      name: 'job',
      version: 1,
      input,
      async run(flow) {
        const step = flow.step(
          'long',
          () => new Promise((resolve) => clock.setTimer(minutes(10), () => resolve(worker))),
        );
        const first = await flow.race({ step, stop: flow.signal('stop') });
        told.push(`${first.winner} ${clock.now() - began}`);
        return first.winner;
      },
    });
  const workers = [await office.worker('one', define), await office.worker('two', define)] as const;
  const began = clock.now();
  const ids = ['1', '2', '3', '4', '5', '6'];
  for (const id of ids) void workers[0].workflows.start('job', { id, input: null });
  await office.clock.advanceBy(seconds(20));
  for (const id of ids) void workers[1].workflows.signal('job', id, 'stop');
  await office.clock.advanceBy(seconds(5));

  expect(told).toHaveLength(6);
  expect(told.every((line) => line.startsWith('stop '))).toBe(true);
  await office.clock.advanceBy(minutes(11));
  expect((await workers[0].workflows.list({ status: 'completed' })).length).toBe(6);
  await office.close(...workers);
});

it('a process that is cut off from the store loses its work to the other, and writes nothing when it is back', async () => {
  const office = new Office();
  const clock: Clock = office.clock;
  const log: string[] = [];
  const define = (worker: string) =>
    defineWorkflow({
      name: 'job',
      version: 1,
      input,
      async run(flow) {
        const by = await flow.step('long', ({ signal }) => {
          log.push(`${worker} begins`);
          signal.addEventListener('abort', () => log.push(`${worker} is told`));
          return new Promise((resolve) => clock.setTimer(seconds(40), () => resolve(worker)));
        });
        await flow.step('after', () => log.push(`after ${String(by)} by ${worker}`));
        return by;
      },
    });
  const one = await office.worker('one', define);
  void one.workflows.start('job', { id: '1', input: null });
  await office.clock.advanceBy(seconds(2));
  one.cut(true);
  const two = await office.worker('two', define);
  await office.clock.advanceBy(seconds(36));
  expect(log).toEqual(['one begins', 'one is told', 'two begins']);
  one.cut(false);
  await office.clock.advanceBy(minutes(2));

  expect(log).toEqual(['one begins', 'one is told', 'two begins', 'after two by two']);
  expect((await two.workflows.describe('job', '1'))?.result).toBe('two');
  expect((await two.workflows.history('job', '1')).journal.filter(({ kind }) => kind === 'attempt')).toHaveLength(3);
  await office.close(one, two);
});
