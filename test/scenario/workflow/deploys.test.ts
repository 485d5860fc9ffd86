// Two processes of one service during a deploy: one has the code before it, the other one that after it.
import { Runtime, consoleLogger, minutes, seconds } from 'pulsework';
import { EmbeddedBroker, embedded } from 'pulsework/embedded';
import { FakeClock, testWorkflow } from 'pulsework/testing';
import type { Flow, WorkflowDefinition } from 'pulsework/workflow';
import { Workflows, defineWorkflow, memoryWorkflowStore } from 'pulsework/workflow';
import { expect, it } from 'vitest';
import { z } from 'zod';

const before = defineWorkflow({
  name: 'job',
  version: 1,
  input: z.object({ n: z.number() }),
  signals: { stop: z.null() },
  run: async (flow, { n }) => (await flow.signal('stop'), `before ${n}`),
});
const after = defineWorkflow({
  name: 'job',
  version: 2,
  input: z.object({ text: z.string() }),
  signals: { go: z.null() },
  run: async (flow, { text }) => (await flow.signal('go'), `after ${text}`),
});
const IDS = Array.from({ length: 20 }, (_, n) => `w${n}`);

class Deploy {
  readonly clock = new FakeClock();
  readonly #broker = new EmbeddedBroker({ clock: this.clock });
  readonly store = memoryWorkflowStore();
  readonly #runtimes: Runtime[] = [];
  readonly warnings: unknown[] = [];

  async process(...definitions: readonly WorkflowDefinition[]) {
    const transport = embedded({ broker: this.#broker });
    const warn = (message: string, fields: unknown): void => void this.warnings.push(message, fields);
    const logger = Object.assign(consoleLogger({ level: 'silent' }), { warn });
    const runtime = await Runtime.start({ transport, handlers: [], logger, random: () => 0.5 });
    this.#runtimes.push(runtime);
    const workflows = await Workflows.start({ runtime, store: this.store, definitions });
    await this.clock.advanceBy(seconds(1));
    return { workflows, runtime };
  }

  async ends(): Promise<readonly unknown[]> {
    const records = await this.store.list({ limit: 100 });
    return records.map(({ id, version, status }) => `${id} ${version} ${status}`).toSorted();
  }

  async pass<T>(work: Promise<T>, ms = seconds(30)): Promise<T> {
    await this.clock.advanceBy(ms);
    return work;
  }

  async close(): Promise<void> {
    await this.pass(Promise.all(this.#runtimes.map((runtime) => runtime.close())));
  }
}

const all = (version: number, status: string) => IDS.map((id) => `${id} ${version} ${status}`).toSorted();

it('what the new process starts waits for it where the old one is asked, and so do its signals', async () => {
  const deploy = new Deploy();
  const old = await deploy.process(before);
  const young = await deploy.process(before, after);
  await deploy.pass(Promise.all(IDS.map((id) => young.workflows.start(after, { id, input: { text: id } }))));
  await deploy.pass(Promise.all(IDS.map((id) => young.workflows.signal(after, id, 'go', null))));
  await deploy.pass(old.runtime.close(), minutes(1));

  expect(await deploy.ends()).toEqual(all(2, 'completed'));
  expect(deploy.warnings).toEqual([
    'workflow starts wait for a process with the version by which they were checked',
    { workflow: 'job', id: expect.any(String) as string, version: 2 },
  ]);
  await deploy.close();
});

it('what the old process has started goes on under its version, whichever process takes the start', async () => {
  const deploy = new Deploy();
  const young = await deploy.process(before, after);
  const old = await deploy.process(before);
  await deploy.pass(Promise.all(IDS.map((id) => old.workflows.start(before, { id, input: { n: 1 } }))));
  await deploy.pass(old.runtime.close(), minutes(1));
  expect(await deploy.ends()).toEqual(all(1, 'running'));
  await deploy.pass(Promise.all(IDS.map((id) => young.workflows.cancel('job', id))));
  expect(await deploy.ends()).toEqual(all(1, 'cancelled'));
  await deploy.close();
});

it('goes on with the newest version that takes what it goes on with', async () => {
  const loop = (version: number, input: z.ZodType) =>
    defineWorkflow({
      name: 'loop',
      version,
      input,
      async run(flow: Flow) {
        await flow.sleep('nap', minutes(1));
        return flow.continueAsNew({ n: 1 });
      },
    });
  const [one, two, three] = [
    loop(1, z.object({ n: z.number() })),
    loop(2, z.any()),
    loop(3, z.object({ text: z.string() })),
  ];
  await using test = await testWorkflow(one);
  await test.start(one, { id: '1', input: { n: 0 } });
  await test.advanceBy(minutes(1));
  expect(await test.describe(one, '1')).toMatchObject({ version: 1, run: 2, status: 'running' });
  await test.restart([one, two]);
  await test.advanceBy(minutes(1));
  expect(await test.describe(one, '1')).toMatchObject({ version: 2, status: 'running' });
  await test.restart([one, two, three]);
  await test.advanceBy(minutes(2));
  expect(await test.describe(one, '1')).toMatchObject({ version: 2, status: 'running' });
});
