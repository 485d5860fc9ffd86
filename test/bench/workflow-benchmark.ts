// Workflows end to end on the embedded broker, by place: each begins by a message, runs a step, waits for a signal, runs another
// step and ends. And what a replay from the store costs, by the length of the journal: a query is one, with nothing else in it.
import { z } from 'zod';
import { embedded } from '../../src/embedded.js';
import { Runtime } from '../../src/index.js';
import type { WorkflowsOptions } from '../../src/workflow.js';
import { Workflows, defineWorkflow } from '../../src/workflow.js';
import { silentLogger } from './runtime-benchmark.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import type { PlaceName, WorkflowPlace } from './workflow-places.js';
import { PLACES, inPlace, preparePostgres } from './workflow-places.js';

/** SQLite and PostgreSQL force each write to the disk. */
const WORKFLOWS: Readonly<Record<PlaceName, number>> = { memory: 1_000, SQLite: 300, PostgreSQL: 300 };
const IN_FLIGHT = 64;
const ENTRIES = [10, 100, 1_000] as const;
/** A step leaves three: that it was asked for, its attempt, its result. */
const ENTRIES_PER_STEP = 3;
const REPLAYS = 200;

const order = defineWorkflow({
  name: 'order',
  version: 1,
  input: z.object({ id: z.string() }),
  async run(flow, { id }) {
    const charge = await flow.step('charge', async () => ({ id: `charge of ${id}` }));
    await flow.signal('packed');
    await flow.step('ship', async () => charge.id);
    return { charge: charge.id };
  },
});

/** So many steps behind each other, then a wait. */
const long = defineWorkflow({
  name: 'long',
  version: 1,
  input: z.object({ steps: z.number() }),
  async run(flow, { steps }) {
    let done = 0;
    flow.query('done', () => done);
    for (let n = 0; n < steps; n++) done += await flow.step('count', async () => 1);
    await flow.signal('never');
  },
});

export const workflowBenchmark: Benchmark = {
  name: 'workflow',
  prepare: preparePostgres,
  processes: 2,
  rounds: 3,
  variants: [...PLACES.map(byPlace), guarded(), ...PLACES.flatMap((place) => ENTRIES.map((n) => replays(place, n)))],
};

function byPlace(place: PlaceName): Variant {
  const baseline = place === 'memory' ? undefined : 'activations, memory';
  return { name: `activations, ${place}`, warmUpRounds: 1, baseline, measure: () => activations(place) };
}

function guarded(): Variant {
  return {
    name: 'activations, memory, determinismGuard',
    warmUpRounds: 1,
    baseline: 'activations, memory',
    measure: () => activations('memory', { determinismGuard: 'block' }),
  };
}

function replays(place: PlaceName, entries: number): Variant {
  const name = `replay of ${entries} entries, ${place}`;
  const baseline = place === 'memory' ? undefined : `replay of ${entries} entries, memory`;
  return { name, warmUpRounds: 0, baseline, measure: () => inPlace(place, (at) => measureReplay(at, entries)) };
}

async function activations(place: PlaceName, options: Partial<WorkflowsOptions> = {}): Promise<Measurement> {
  return inPlace(place, async ({ store }) => {
    let count = 0;
    const startActivation = (): undefined => void (count += 1);
    const runtime = await started({ startActivation });
    const workflows = await Workflows.start({ runtime, store, definitions: [order], ...options });
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < WORKFLOWS[place]) {
        const id = `order-${(next += 1)}`;
        const handle = await workflows.start(order, { id, input: { id } });
        await handle.signal('packed');
        await handle.result();
      }
    };
    const stopwatch = new Stopwatch();
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
    const { 'ns/message': wall = 0, 'cpu-ns/message': cpu = 0 } = stopwatch.perMessage(count);
    await runtime.drain();
    return { 'ns/activation': wall, 'cpu-ns/activation': cpu, 'activations/workflow': count / WORKFLOWS[place] };
  });
}

async function measureReplay({ store }: WorkflowPlace, entries: number): Promise<Measurement> {
  const runtime = await started();
  const workflows = await Workflows.start({ runtime, store, definitions: [long] });
  const steps = Math.round(entries / ENTRIES_PER_STEP);
  const handle = await workflows.start(long, { id: 'one', input: { steps } });
  const isReady = async (): Promise<boolean> =>
    (await handle.describe())?.waits.some(({ command }) => command === 'signal') === true;
  while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 5));
  const ask = async (): Promise<void> => {
    const done = await handle.query('done');
    if (done !== steps) throw new Error(`${steps} steps were to be done, got ${String(done)}`);
  };
  for (let n = 0; n < REPLAYS / 4; n++) await ask();
  const stopwatch = new Stopwatch();
  for (let n = 0; n < REPLAYS; n++) await ask();
  const { 'ns/message': wall = 0, 'cpu-ns/message': cpu = 0 } = stopwatch.perMessage(REPLAYS);
  await runtime.drain();
  return { 'ns/replay': wall, 'cpu-ns/replay': cpu };
}

function started(telemetry?: { readonly startActivation: () => undefined }): Promise<Runtime> {
  return Runtime.start({ transport: embedded(), handlers: [], logger: silentLogger, telemetry });
}
