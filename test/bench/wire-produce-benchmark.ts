// Messages produced per second on a real broker, from the first publish to the last receipt, next to the Java client
// with the same limits: 100 bytes and 1 KB, batched and one by one.
import { randomUUID } from 'node:crypto';
import { WireClient } from '../../src/wire.js';
import type { WirePublisher } from '../../src/wire.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { prepareBroker, requiredVariable } from './wire-broker.js';
import { JavaProgram } from './wire-java.js';

const WARM_UP_ROUNDS = 5;
/** Published without letting the event loop turn, as from a handler that sends a list. */
const BURST = 1_000;

interface Load {
  readonly name: string;
  readonly bytes: number;
  readonly batched: boolean;
  readonly messages: number;
}

const LOADS: readonly Load[] = [
  { name: '100 B, batched', bytes: 100, batched: true, messages: 100_000 },
  { name: '1 KB, batched', bytes: 1_024, batched: true, messages: 40_000 },
  { name: '100 B, one by one', bytes: 100, batched: false, messages: 20_000 },
  { name: '1 KB, one by one', bytes: 1_024, batched: false, messages: 20_000 },
];

export const wireProduceBenchmark: Benchmark = {
  name: 'wire-produce',
  processes: 1,
  rounds: 9,
  prepare: prepareBroker,
  variants: LOADS.flatMap(variantsOf),
};

function variantsOf(load: Load): Variant[] {
  const java = `Java, ${load.name}`;
  return [
    { name: java, warmUpRounds: WARM_UP_ROUNDS, measure: javaMeasure(load) },
    { name: `wire, ${load.name}`, warmUpRounds: WARM_UP_ROUNDS, baseline: java, measure: wireMeasure(load) },
  ];
}

function newTopic(): string {
  return `persistent://public/default/bench-${randomUUID()}`;
}

function javaMeasure({ bytes, batched, messages }: Load): () => Promise<Measurement> {
  let program: JavaProgram | undefined;
  return async () => {
    const args = [requiredVariable('PULSEWORK_BENCH_URL'), newTopic(), String(bytes), batched ? 'batched' : 'single'];
    program ??= JavaProgram.start('ProduceBenchmark', args);
    return { 'ns/message': (await program.nanosecondsFor(messages)) / messages };
  };
}

function openPublisher(batched: boolean): Promise<WirePublisher> {
  const client = new WireClient({ serviceUrl: requiredVariable('PULSEWORK_BENCH_URL') });
  // The parent disconnects when it has all figures: what is open would keep this process.
  process.once('disconnect', () => void client.close());
  return client.publisher(newTopic(), batched ? {} : { batching: false });
}

function wireMeasure({ bytes, batched, messages }: Load): () => Promise<Measurement> {
  let opening: Promise<WirePublisher> | undefined;
  const message = { payload: Buffer.alloc(bytes), properties: {} };
  return async () => {
    opening ??= openPublisher(batched);
    const publisher = await opening;
    const stopwatch = new Stopwatch();
    const receipts: Promise<unknown>[] = [];
    for (let n = 1; n <= messages; n++) {
      receipts.push(publisher.publish(message, publisher.nextSequenceId()));
      if (n % BURST === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    publisher.flush();
    await Promise.all(receipts);
    return stopwatch.perMessage(messages);
  };
}
