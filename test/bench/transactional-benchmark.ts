// What a transaction costs a handler: each message is followed by one, published and acknowledged plainly and in a transaction,
// on the same broker with the same backlog. On the embedded broker, and over the wire on a real one.
import { randomUUID } from 'node:crypto';
import { Runtime, defineHandler, success, topic } from '../../src/index.js';
import type { HandlerOptions } from '../../src/index.js';
import { WireClient, wire } from '../../src/wire.js';
import { silentLogger } from './runtime-benchmark.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { prepareTransactionalBroker, requiredVariable } from './wire-broker.js';
import { newTopic } from './wire-load.js';
import { HandlerWork, MESSAGES, PAYLOAD, SUBSCRIPTION, backlogOf, orders } from './workload.js';

const IN_FLIGHT = 64;
const BURST = 1_000;
/** A real broker makes a few hundred transactions in a second. */
const WIRE_MESSAGES = 2_000;
const TOPIC_VARIABLE = 'PULSEWORK_BENCH_TRANSACTIONAL_TOPIC';

type Options = Pick<HandlerOptions, 'transactional'>;

export const transactionalBenchmark: Benchmark = {
  name: 'transactional',
  processes: 2,
  rounds: 5,
  variants: pairOf('embedded', measureEmbedded, 3),
};

export const transactionalWireBenchmark: Benchmark = {
  name: 'transactional-wire',
  processes: 1,
  rounds: 5,
  prepare: async () => (await prepareTransactionalBroker()) ?? (await fillTopic()),
  variants: pairOf('wire', measureWire, 2),
};

function pairOf(where: string, measure: (options: Options) => Promise<Measurement>, warmUpRounds: number): Variant[] {
  const plain = `plain, ${where}`;
  return [
    { name: plain, warmUpRounds, measure: () => measure({}) },
    {
      name: `transactional, ${where}`,
      warmUpRounds,
      baseline: plain,
      measure: () => measure({ transactional: { timeoutMs: 60_000 } }),
    },
  ];
}

async function measureEmbedded(options: Options): Promise<Measurement> {
  const transport = await backlogOf(MESSAGES);
  const work = new HandlerWork(IN_FLIGHT);
  const receipts = topic('receipts');
  const handler = defineHandler({
    name: 'charge',
    source: orders,
    subscription: SUBSCRIPTION,
    concurrency: IN_FLIGHT,
    publishes: [receipts],
    ...options,
    handle: async ({ payload }) => {
      await work.run(payload);
      return success(receipts.message(payload.id));
    },
  });
  const runtime = await Runtime.start({ transport, handlers: [handler], logger: silentLogger });
  const measurement = await work.measured(transport);
  await runtime.drain();
  return measurement;
}

async function fillTopic(): Promise<undefined> {
  const client = new WireClient({ serviceUrl: requiredVariable('PULSEWORK_BENCH_TRANSACTIONS_URL') });
  const name = newTopic();
  process.env[TOPIC_VARIABLE] = name;
  // A subscription that acknowledges nothing keeps the messages for those that follow.
  await (await client.subscribe({ topics: [name], subscription: 'keeper', prefetch: 1 })).close();
  const publisher = await client.publisher(name, { batching: false });
  for (let first = 0; first < WIRE_MESSAGES; first += BURST)
    await Promise.all(Array.from({ length: BURST }, () => publisher.publish({ payload: PAYLOAD, properties: {} })));
  await client.close();
  return undefined;
}

/** From the first run to the last settlement. */
async function measureWire(options: Options): Promise<Measurement> {
  const stopwatch = new Stopwatch();
  let begun = false;
  let settled = 0;
  let allSettled!: () => void;
  const last = new Promise<void>((resolve) => (allSettled = resolve));
  const receipts = topic(newTopic());
  const handler = defineHandler({
    name: 'charge',
    source: topic(requiredVariable(TOPIC_VARIABLE)),
    subscription: `transactional-${randomUUID()}`,
    concurrency: IN_FLIGHT,
    publishes: [receipts],
    ...options,
    handle: () => {
      if (!begun) stopwatch.restart();
      begun = true;
      return success(receipts.message('paid'));
    },
  });
  const runtime = await Runtime.start({
    transport: wire({ serviceUrl: requiredVariable('PULSEWORK_BENCH_TRANSACTIONS_URL') }),
    handlers: [handler],
    logger: silentLogger,
    plugins: [
      {
        name: 'counter',
        onSettled: () => {
          if (++settled === WIRE_MESSAGES) allSettled();
        },
      },
    ],
  });
  await last;
  const measurement = stopwatch.perMessage(WIRE_MESSAGES);
  await runtime.drain({ deadlineMs: 1_000 });
  return measurement;
}
