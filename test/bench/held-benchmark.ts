// What deliveries that wait to be redelivered cost: bytes each, everything included, and timers. The same messages lie
// unacknowledged at the embedded broker in the baseline; what they cost there is not the runtime's.
import type { Backoff } from '../../src/index.js';
import { Runtime, defineHandler, minutes, retry } from '../../src/index.js';
import { CountingClock } from './counting-clock.js';
import { silentLogger } from './runtime-benchmark.js';
import type { Benchmark, Measurement } from './variant.js';
import { SUBSCRIPTION, backlogOf, bareSubscription, orders } from './workload.js';

const HELD = 50_000;
/** Code, its feedback and caches are made before the first measured round, with so many messages. */
const WARM_UP = 5_000;

const BARE = 'unacknowledged at the broker';

export const heldBenchmark: Benchmark = {
  name: 'held',
  processes: 3,
  rounds: 1,
  variants: [
    { name: BARE, warmUpRounds: 0, measure: () => afterWarmUp(measureUnacknowledged) },
    {
      name: 'held by the runtime',
      warmUpRounds: 0,
      baseline: BARE,
      lessBaseline: true,
      measure: () => afterWarmUp(measureHeld),
    },
  ],
};

async function afterWarmUp(measure: (count: number) => Promise<Measurement>): Promise<Measurement> {
  await measure(WARM_UP);
  return measure(HELD);
}

async function measureUnacknowledged(count: number): Promise<Measurement> {
  const transport = await backlogOf(count);
  const before = await usedBytes();
  const subscription = await transport.subscribe(bareSubscription(16));
  const { signal } = new AbortController();
  for (let n = 0; n < count; n++) await subscription.receive(signal);
  const bytes = (await usedBytes()) - before;
  await transport.close();
  return { 'bytes/message': bytes / count };
}

async function measureHeld(count: number): Promise<Measurement> {
  const clock = new CountingClock();
  const transport = await backlogOf(count, clock);
  let timersBefore: number | undefined;
  const handler = defineHandler({
    name: 'charge',
    source: orders,
    subscription: SUBSCRIPTION,
    concurrency: 16,
    maxHeld: count + 1,
    redelivery: { backoff: mixedDelays() },
    handle: () => {
      timersBefore ??= clock.pendingTimers;
      return retry('the gateway is busy');
    },
  });
  const before = await usedBytes();
  const runtime = await Runtime.start({ transport, handlers: [handler], logger: silentLogger });
  while ((runtime.health()[0]?.held ?? 0) < count) await nextTurn();
  const bytes = (await usedBytes()) - before;
  const timers = clock.pendingTimers - (timersBefore ?? 0);
  await runtime.drain();
  return { 'bytes/message': bytes / count, timers };
}

/** The same in every run, in random order; none is due before the measurement has ended. */
function mixedDelays(): Backoff {
  let state = 12_345;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 1;
    return minutes(1) + (state % minutes(10));
  };
}

async function usedBytes(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc');
  for (let i = 0; i < 4; i++) {
    await nextTurn();
    globalThis.gc();
  }
  const { heapUsed, external } = process.memoryUsage();
  // Array buffers are part of `external`.
  return heapUsed + external;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
