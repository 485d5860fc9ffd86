// The embedded broker alone, through its transport: publish, dispatch, acknowledge. There is nothing to compare it
// with; it is what both sides of the other benchmarks stand on.
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement } from './variant.js';
import { MESSAGES, PAYLOAD, TOPIC_NAME, bareSubscription } from './workload.js';
import { embedded } from '../../src/embedded.js';

export const brokerBenchmark: Benchmark = {
  name: 'broker',
  processes: 2,
  rounds: 5,
  variants: [{ name: 'publish, receive, acknowledge', warmUpRounds: 3, measure }],
};

async function measure(): Promise<Measurement> {
  const transport = embedded();
  const publisher = await transport.publisher(TOPIC_NAME);
  const subscription = await transport.subscribe(bareSubscription(1_000));
  const { signal } = new AbortController();
  const stopwatch = new Stopwatch();
  for (let n = 0; n < MESSAGES; n++) {
    await publisher.publish({ payload: PAYLOAD, properties: {} }, publisher.nextSequenceId());
    const message = await subscription.receive(signal);
    if (message === undefined) throw new Error('the subscription closed');
    await subscription.acknowledge([message.id]);
  }
  const measurement = stopwatch.perMessage(MESSAGES);
  await transport.close();
  return measurement;
}
