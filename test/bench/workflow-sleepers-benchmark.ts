// What sleeping workflows cost: bytes of this process for each, everything included, bytes of the store, and timers. They come to
// sleep the way they always do: a message, an activation, a write. With a store outside this process nothing of them is to stay here.
import { z } from 'zod';
import { embedded } from '../../src/embedded.js';
import { Runtime, days, seconds } from '../../src/index.js';
import { Workflows, defineWorkflow } from '../../src/workflow.js';
import { CountingClock } from './counting-clock.js';
import { silentLogger } from './runtime-benchmark.js';
import type { Benchmark, Measurement } from './variant.js';
import type { PlaceName } from './workflow-places.js';
import { PLACES, inPlace, preparePostgres } from './workflow-places.js';

const SLEEPERS = Number(process.env['PULSEWORK_BENCH_SLEEPERS'] ?? 100_000);
/** Code, its feedback and caches are made before anything is measured. */
const WARM_UP = 1_000;
const IN_FLIGHT = 256;
/** For so long a runtime knows the messages that it has acknowledged. */
const DUPLICATE_WINDOW_MS = seconds(10);

const sleeper = defineWorkflow({
  name: 'sleeper',
  version: 1,
  input: z.object({ customer: z.string() }),
  async run(flow) {
    await flow.sleep('trial', days(30));
  },
});

export const workflowSleepersBenchmark: Benchmark = {
  name: 'workflow-sleepers',
  prepare: preparePostgres,
  processes: 1,
  rounds: 1,
  variants: PLACES.map((place) => ({
    name: `${SLEEPERS} sleeping, ${place}`,
    warmUpRounds: 0,
    measure: () => measureSleepers(place),
  })),
};

async function measureSleepers(place: PlaceName): Promise<Measurement> {
  return inPlace(place, async ({ store, bytes }) => {
    const clock = new CountingClock();
    const transport = embedded({ clock });
    const runtime = await Runtime.start({ transport, handlers: [], logger: silentLogger });
    const workflows = await Workflows.start({ runtime, store, definitions: [sleeper] });
    const sleep = async (from: number, count: number): Promise<void> => {
      let next = from;
      const lane = async (): Promise<void> => {
        while (next < from + count) {
          const id = `customer-${next++}`;
          await workflows.start(sleeper, { id, input: { customer: id } });
        }
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
      await untilAsleep(
        async () => (await workflows.handle(sleeper, `customer-${next - 1}`).describe())?.waits.length === 1,
      );
      await untilAsleep(async () => runtime.health().every(({ backlog }) => backlog === 0));
    };
    await sleep(0, WARM_UP);
    const [heapBefore, timersBefore, storedBefore] = [await usedBytes(), clock.pendingTimers, await bytes()];
    const startedMs = performance.now();
    await sleep(WARM_UP, SLEEPERS);
    const tookMs = performance.now() - startedMs;
    const [heap, timers, stored] = [await usedBytes(), clock.pendingTimers, await bytes()];
    await runtime.close();
    return {
      'bytes/workflow': (heap - heapBefore) / SLEEPERS,
      timers: timers - timersBefore,
      ...(stored !== undefined && { 'stored bytes/workflow': (stored - (storedBefore ?? 0)) / SLEEPERS }),
      'ms until asleep': tookMs,
    };
  });
}

async function untilAsleep(isAsleep: () => Promise<boolean>): Promise<void> {
  while (!(await isAsleep())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Once what was under way has ended: activations let go of what they held, and the runtime forgets what it has acknowledged. */
async function usedBytes(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  await new Promise((resolve) => setTimeout(resolve, DUPLICATE_WINDOW_MS + 1_000));
  for (let i = 0; i < 4; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc();
  }
  const { heapUsed, external } = process.memoryUsage();
  // Array buffers are part of `external`.
  return heapUsed + external;
}
