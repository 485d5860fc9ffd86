// Messages received and acknowledged per second on a real broker, from the subscription to the last acknowledgement, next
// to the Java client with a receiver queue of the same size. Both read the same topics, published before.
import { randomUUID } from 'node:crypto';
import { WireClient } from '../../src/wire.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { prepareBroker, requiredVariable } from './wire-broker.js';
import { JavaProgram } from './wire-java.js';
import { WARM_UP_ROUNDS, WIRE_LOADS, newTopic } from './wire-load.js';
import type { WireLoad } from './wire-load.js';

/** Java's default and ours. */
const PREFETCH = 1_000;
/** Waits for receipts of these at a time while the topics are filled. */
const BURST = 1_000;

export const wireConsumeBenchmark: Benchmark = {
  name: 'wire-consume',
  processes: 1,
  rounds: 9,
  prepare: async () => (await prepareBroker()) ?? (await fillTopics()),
  variants: WIRE_LOADS.flatMap(variantsOf),
};

function variantsOf(load: WireLoad): Variant[] {
  const java = `Java, ${load.name}`;
  const common = { warmUpRounds: WARM_UP_ROUNDS, baseline: java };
  return [
    { name: java, warmUpRounds: WARM_UP_ROUNDS, measure: javaMeasure(load, 'grouped') },
    { ...common, name: `Java with ack receipts, ${load.name}`, measure: javaMeasure(load, 'receipts') },
    { ...common, name: `wire, ${load.name}`, measure: wireMeasure(load) },
  ];
}

function topicVariable({ name }: WireLoad): string {
  return `PULSEWORK_BENCH_TOPIC_${name}`;
}

async function fillTopics(): Promise<undefined> {
  const client = new WireClient({ serviceUrl: requiredVariable('PULSEWORK_BENCH_URL') });
  for (const load of WIRE_LOADS) process.env[topicVariable(load)] = await filledTopic(client, load);
  await client.close();
  return undefined;
}

async function filledTopic(client: WireClient, { bytes, batched, messages }: WireLoad): Promise<string> {
  const topic = newTopic();
  // A subscription that acknowledges nothing keeps the messages for those that follow.
  await (await client.subscribe({ topics: [topic], subscription: 'keeper', prefetch: 1 })).close();
  const publisher = await client.publisher(topic, batched ? {} : { batching: false });
  const message = { payload: Buffer.alloc(bytes), properties: {} };
  for (let n = 0; n < messages; n += BURST) {
    await Promise.all(Array.from({ length: BURST }, () => publisher.publish(message, publisher.nextSequenceId())));
  }
  return topic;
}

function javaMeasure(load: WireLoad, acknowledging: 'grouped' | 'receipts'): () => Promise<Measurement> {
  let program: JavaProgram | undefined;
  return () => {
    const url = requiredVariable('PULSEWORK_BENCH_URL');
    const args = [url, requiredVariable(topicVariable(load)), String(PREFETCH), acknowledging];
    program ??= JavaProgram.start('ConsumeBenchmark', args);
    return program.measure(load.messages);
  };
}

function openClient(): WireClient {
  const client = new WireClient({ serviceUrl: requiredVariable('PULSEWORK_BENCH_URL') });
  process.once('disconnect', () => void client.close());
  return client;
}

function wireMeasure(load: WireLoad): () => Promise<Measurement> {
  let client: WireClient | undefined;
  const { signal } = new AbortController();
  return async () => {
    client ??= openClient();
    const topics = [requiredVariable(topicVariable(load))];
    const consumer = await client.subscribe({ topics, subscription: `wire-${randomUUID()}`, prefetch: PREFETCH });
    const stopwatch = new Stopwatch();
    const acknowledged: Promise<void>[] = [];
    for (let n = 0; n < load.messages; n++) {
      const message = await consumer.receive(signal);
      if (message === undefined) throw new Error('the subscription ended');
      acknowledged.push(consumer.acknowledge([message.id]));
    }
    for (const one of acknowledged) await one;
    const measurement = stopwatch.perMessage(load.messages);
    await consumer.close();
    return measurement;
  };
}
