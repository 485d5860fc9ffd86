// What `ordering: 'key'` costs per message while nothing fails, beside the same handler without it, on Key_Shared of the
// embedded broker: in place, as on all brokers of today, and with a broker that keeps the order of a key that failed.
import { Runtime, defineHandler, success } from '../../src/index.js';
import type { HandlerOptions, Outcome } from '../../src/index.js';
import { embedded } from '../../src/embedded.js';
import type { EmbeddedTransport } from '../../src/embedded.js';
import { silentLogger } from './runtime-benchmark.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { HandlerWork, MESSAGES, PAYLOAD, SUBSCRIPTION, TOPIC_NAME, bareSubscription, orders } from './workload.js';

export const KEYS = 1_000;
const IN_FLIGHT = [1, 64];

type OrderingOptions = Pick<HandlerOptions, 'ordering' | 'orderedNegativeAck'>;

export const UNORDERED = 'without order';
const WAYS: readonly (readonly [name: string, options: OrderingOptions])[] = [
  [UNORDERED, { ordering: 'none' }],
  ['order in place', { ordering: 'key', orderedNegativeAck: 'disabled' }],
  ['order at the broker', { ordering: 'key', orderedNegativeAck: 'best-effort' }],
];

export const orderingBenchmark: Benchmark = {
  name: 'ordering',
  processes: 3,
  rounds: 6,
  variants: IN_FLIGHT.flatMap((inFlight) => WAYS.map((way) => variantOf(way, inFlight))),
};

function variantOf([way, options]: (typeof WAYS)[number], inFlight: number): Variant {
  return {
    name: `${way}, ${inFlight} in flight`,
    warmUpRounds: 3,
    baseline: way === UNORDERED ? undefined : `${UNORDERED}, ${inFlight} in flight`,
    measure: () => measure(options, inFlight),
  };
}

async function measure(options: OrderingOptions, inFlight: number): Promise<Measurement> {
  const transport = await keyedBacklog();
  const work = new HandlerWork(inFlight);
  const handler = defineHandler({
    name: 'charge',
    source: orders,
    subscription: SUBSCRIPTION,
    type: 'key-shared',
    concurrency: inFlight,
    ...options,
    handle: async ({ payload }): Promise<Outcome> => {
      await work.run(payload);
      return success();
    },
  });
  const runtime = await Runtime.start({ transport, handlers: [handler], logger: silentLogger });
  const measurement = await work.measured(transport);
  await runtime.drain();
  return measurement;
}

/** Key after key: those that are in flight are of different keys, with order and without. */
async function keyedBacklog(): Promise<EmbeddedTransport> {
  const transport = embedded();
  const subscription = await transport.subscribe({ ...bareSubscription(0), type: 'key-shared' });
  await subscription.close();
  const publisher = await transport.publisher(TOPIC_NAME);
  for (let n = 0; n < MESSAGES; n++) {
    const message = { payload: PAYLOAD, properties: {}, key: `key-${n % KEYS}` };
    await publisher.publish(message, publisher.nextSequenceId());
  }
  await publisher.close();
  return transport;
}
