// Messages produced per second on a real broker, from the first publish to the last receipt, next to the Java client
// with the same limits: 100 bytes and 1 KB, batched and one by one.
import { WireClient } from '../../src/wire.js';
import type { WirePublisher } from '../../src/wire.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement, Variant } from './variant.js';
import { prepareBroker, requiredVariable } from './wire-broker.js';
import { JavaProgram } from './wire-java.js';
import { WARM_UP_ROUNDS, WIRE_LOADS, newTopic } from './wire-load.js';
import type { WireLoad } from './wire-load.js';

/** Messages that wait for receipts at a time, on both sides. */
const OUTSTANDING = 10_000;
/** Published without letting the event loop turn, as from a handler that sends a list. */
const BURST = 1_000;

export const wireProduceBenchmark: Benchmark = {
  name: 'wire-produce',
  processes: 1,
  rounds: 11,
  prepare: prepareBroker,
  variants: WIRE_LOADS.flatMap(variantsOf),
};

function variantsOf(load: WireLoad): Variant[] {
  const java = `Java, ${load.name}`;
  return [
    { name: java, warmUpRounds: WARM_UP_ROUNDS, measure: javaMeasure(load) },
    { name: `wire, ${load.name}`, warmUpRounds: WARM_UP_ROUNDS, baseline: java, measure: wireMeasure(load) },
  ];
}

function javaMeasure({ bytes, batched, messages }: WireLoad): () => Promise<Measurement> {
  let program: JavaProgram | undefined;
  return () => {
    const url = requiredVariable('PULSEWORK_BENCH_URL');
    const args = [url, newTopic(), String(bytes), batched ? 'batched' : 'single', String(OUTSTANDING)];
    program ??= JavaProgram.start('ProduceBenchmark', args);
    return program.measure(messages);
  };
}

function openPublisher(batched: boolean): Promise<WirePublisher> {
  const client = new WireClient({ serviceUrl: requiredVariable('PULSEWORK_BENCH_URL') });
  // The parent disconnects when it has all figures: what is open would keep this process.
  process.once('disconnect', () => void client.close());
  return client.publisher(newTopic(), batched ? {} : { batching: false });
}

function wireMeasure({ bytes, batched, messages }: WireLoad): () => Promise<Measurement> {
  let opening: Promise<WirePublisher> | undefined;
  const message = { payload: Buffer.alloc(bytes), properties: {} };
  return async () => {
    opening ??= openPublisher(batched);
    const publisher = await opening;
    const stopwatch = new Stopwatch();
    const bursts: Promise<unknown>[][] = [];
    for (let n = 0; n < messages; n += BURST) {
      // Each receipt is looked at, as the other side looks at each.
      if (bursts.length * BURST >= OUTSTANDING) for (const receipt of bursts.shift() ?? []) await receipt;
      bursts.push(Array.from({ length: BURST }, () => publisher.publish(message, publisher.nextSequenceId())));
      await new Promise((resolve) => setImmediate(resolve));
    }
    publisher.flush();
    for (const receipts of bursts) for (const receipt of receipts) await receipt;
    return stopwatch.perMessage(messages);
  };
}
