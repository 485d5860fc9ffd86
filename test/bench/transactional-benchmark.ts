// What a transaction costs a handler: each message is followed by one, published and acknowledged plainly and in a transaction,
// on the same broker with the same backlog. On the embedded broker, and over the wire on a real one.
import { randomUUID } from 'node:crypto';
import { Runtime, defineHandler, success, topic } from '../../src/index.js';
import type { HandlerOptions, Transport } from '../../src/index.js';
import { WireClient, wire } from '../../src/wire.js';
import { silentLogger } from './runtime-benchmark.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { prepareTransactionalBroker, requiredVariable } from './wire-broker.js';
import { newTopic } from './wire-load.js';
import { PAYLOAD, SUBSCRIPTION, TOPIC_NAME, backlogOf } from './workload.js';

const IN_FLIGHT = 64;
/** A real broker makes a few hundred transactions in a second. */
const MESSAGES = 2_000;
const BURST = 1_000;
const TOPIC_VARIABLE = 'PULSEWORK_BENCH_TRANSACTIONAL_TOPIC';

type Options = Pick<HandlerOptions, 'transactional'>;

export const transactionalBenchmark: Benchmark = {
  name: 'transactional',
  processes: 2,
  rounds: 5,
  variants: pairOf('embedded', async (options) => {
    const transport = await backlogOf(MESSAGES);
    return measure(transport, { source: TOPIC_NAME, subscription: SUBSCRIPTION }, options);
  }),
};

export const transactionalWireBenchmark: Benchmark = {
  name: 'transactional-wire',
  processes: 1,
  rounds: 5,
  prepare: async () => (await prepareTransactionalBroker()) ?? (await fillTopic()),
  variants: pairOf('wire', (options) => {
    const transport = wire({ serviceUrl: requiredVariable('PULSEWORK_BENCH_TRANSACTIONS_URL') });
    const subscription = `transactional-${randomUUID()}`;
    return measure(transport, { source: requiredVariable(TOPIC_VARIABLE), subscription }, options);
  }),
};

function pairOf(where: string, measureWith: (options: Options) => Promise<Measurement>): Variant[] {
  const plain = `plain, ${where}`;
  const transactional = { timeoutMs: 60_000 };
  return [
    { name: plain, warmUpRounds: 3, measure: () => measureWith({}) },
    {
      name: `transactional, ${where}`,
      warmUpRounds: 3,
      baseline: plain,
      measure: () => measureWith({ transactional }),
    },
  ];
}

async function fillTopic(): Promise<undefined> {
  const client = new WireClient({ serviceUrl: requiredVariable('PULSEWORK_BENCH_TRANSACTIONS_URL') });
  const name = newTopic();
  process.env[TOPIC_VARIABLE] = name;
  // A subscription that acknowledges nothing keeps the messages for those that follow.
  await (await client.subscribe({ topics: [name], subscription: 'keeper', prefetch: 1 })).close();
  const publisher = await client.publisher(name, { batching: false });
  const message = { payload: PAYLOAD, properties: {} };
  for (let first = 0; first < MESSAGES; first += BURST)
    await Promise.all(Array.from({ length: BURST }, () => publisher.publish(message)));
  await client.close();
  return undefined;
}

/** From the first run to the last settlement. */
async function measure(
  transport: Transport,
  from: { readonly source: string; readonly subscription: string },
  options: Options,
): Promise<Measurement> {
  const stopwatch = new Stopwatch();
  let begun = false;
  let settled = 0;
  let allSettled!: () => void;
  const last = new Promise<void>((resolve) => (allSettled = resolve));
  const receipts = topic(newTopic());
  const handler = defineHandler({
    ...{ name: 'charge', ...from, concurrency: IN_FLIGHT, publishes: [receipts], ...options },
    handle: () => {
      if (!begun) stopwatch.restart();
      begun = true;
      return success(receipts.message('paid'));
    },
  });
  const onSettled = (): void => {
    if (++settled === MESSAGES) allSettled();
  };
  const plugins = [{ name: 'counter', onSettled }];
  const runtime = await Runtime.start({ transport, handlers: [handler], logger: silentLogger, plugins });
  await last;
  const measurement = stopwatch.perMessage(MESSAGES);
  await runtime.drain({ deadlineMs: 1_000 });
  return measurement;
}
