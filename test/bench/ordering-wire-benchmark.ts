// The same over the wire on a real broker, which keeps no order of what failed: what order costs while nothing fails, and what
// one key of 1,000 that fails all the time costs the others. Both sides of a pair read the same topic.
import { randomUUID } from 'node:crypto';
import { Runtime, defineHandler, fixedBackoff, retry, success, topic } from '../../src/index.js';
import type { Ordering, Outcome } from '../../src/index.js';
import { WireClient, wire } from '../../src/wire.js';
import { KEYS, UNORDERED } from './ordering-benchmark.js';
import { silentLogger } from './runtime-benchmark.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { prepareBroker, requiredVariable } from './wire-broker.js';
import { newTopic } from './wire-load.js';
import { PAYLOAD } from './workload.js';

const MESSAGES = 10_000;
const BURST = 1_000;
const CONCURRENCY = 64;
const PREFETCH = 1_000;
const TOPIC_VARIABLE = 'PULSEWORK_BENCH_ORDERED_TOPIC';
const FAILING = 'key-500';
const BACKOFF_MS = 100;
/** Of the runs of the pair with a failing key: work that waits, as a handler's does. */
const TAKES_MS = 5;

interface Load {
  readonly ordering: Ordering;
  readonly takesMs: number;
  readonly fails: boolean;
}

const COST: Load = { ordering: 'key', takesMs: 0, fails: false };
const ISOLATION: Load = { ordering: 'key', takesMs: TAKES_MS, fails: false };

export const orderingWireBenchmark: Benchmark = {
  name: 'ordering-wire',
  processes: 2,
  rounds: 8,
  prepare: async () => (await prepareBroker()) ?? (await fillTopic()),
  variants: [
    variantOf(UNORDERED, { ...COST, ordering: 'none' }),
    variantOf('order in place', COST, UNORDERED),
    variantOf('no key fails', ISOLATION),
    variantOf(`one of ${KEYS} keys fails`, { ...ISOLATION, fails: true }, 'no key fails'),
  ],
};

function variantOf(name: string, load: Load, baseline?: string): Variant {
  return { name, warmUpRounds: 3, baseline, measure: () => measure(load) };
}

async function fillTopic(): Promise<undefined> {
  const client = new WireClient({ serviceUrl: requiredVariable('PULSEWORK_BENCH_URL') });
  const name = newTopic();
  process.env[TOPIC_VARIABLE] = name;
  // A subscription that acknowledges nothing keeps the messages for those that follow.
  await (await client.subscribe({ topics: [name], subscription: 'keeper', prefetch: 1 })).close();
  const publisher = await client.publisher(name, { batching: false });
  for (let first = 0; first < MESSAGES; first += BURST) {
    const receipts = Array.from({ length: BURST }, (_, at) => {
      const message = { payload: PAYLOAD, properties: {}, key: `key-${(first + at) % KEYS}` };
      return publisher.publish(message, publisher.nextSequenceId());
    });
    await Promise.all(receipts);
  }
  await client.close();
}

/** From the first run to the last settlement of all keys but the failing one, which is left out on both sides. */
async function measure({ ordering, takesMs, fails }: Load): Promise<Measurement> {
  const others = MESSAGES - MESSAGES / KEYS;
  const stopwatch = new Stopwatch();
  let begun = false;
  let settled = 0;
  let allSettled!: () => void;
  const last = new Promise<void>((resolve) => (allSettled = resolve));
  const handler = defineHandler({
    name: 'charge',
    source: topic(requiredVariable(TOPIC_VARIABLE)),
    subscription: `ordering-${randomUUID()}`,
    ...{ type: 'key-shared', ordering, concurrency: CONCURRENCY, prefetch: PREFETCH },
    redelivery: { maxDeliveries: 100_000, backoff: fixedBackoff(BACKOFF_MS) },
    handle: async ({ key }): Promise<Outcome> => {
      if (!begun) stopwatch.restart();
      begun = true;
      if (takesMs > 0) await new Promise((ended) => setTimeout(ended, takesMs));
      return fails && key === FAILING ? retry('not yet') : success();
    },
  });
  const runtime = await Runtime.start({
    transport: wire({ serviceUrl: requiredVariable('PULSEWORK_BENCH_URL') }),
    handlers: [handler],
    logger: silentLogger,
    plugins: [
      {
        name: 'counter',
        onSettled: ({ key }) => {
          if (key !== FAILING && ++settled === others) allSettled();
        },
      },
    ],
  });
  await last;
  const measurement = stopwatch.perMessage(others);
  await runtime.drain({ deadlineMs: 1_000 });
  return measurement;
}
