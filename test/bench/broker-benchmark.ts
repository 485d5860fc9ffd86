// The embedded broker alone: publish, dispatch, acknowledge. There is nothing to compare it with; it is what both sides
// of the other benchmarks stand on. Once as clients of the broker itself, in lots, and once message by message through
// its transport, where each step is a promise that is awaited.
import type { ConsumerSink, DeliveredEntry } from '../../src/broker/broker-consumer.js';
import { EmbeddedBroker } from '../../src/broker/embedded-broker.js';
import type { MessageId } from '../../src/core/message-id.js';
import { embedded } from '../../src/embedded.js';
import { systemClock } from '../../src/system/system-clock.js';
import type { BacklogKind } from './broker-memory.js';
import { backlogBytesPerMessage } from './broker-memory.js';
import { Stopwatch } from './stopwatch.js';
import type { Benchmark, Measurement } from './variant.js';
import { MESSAGES, PAYLOAD, SUBSCRIPTION, TOPIC_NAME, bareSubscription } from './workload.js';

const LOT = 100;
/** The broker alone is quick: a round of so many lasts long enough to be timed. */
const ALONE = 8 * MESSAGES;
const BACKLOG = 50_000;

export const brokerBenchmark: Benchmark = {
  name: 'broker',
  processes: 2,
  rounds: 10,
  variants: [
    { name: `broker alone, lots of ${LOT}`, warmUpRounds: 3, measure: measureAlone },
    { name: 'publish, receive, acknowledge', warmUpRounds: 3, measure: measureTransport },
    { name: 'backlog that waits', warmUpRounds: 0, measure: () => measureBacklog('waits') },
    { name: 'backlog until its time', warmUpRounds: 0, measure: () => measureBacklog('is parked until its time') },
  ],
};

class CountingSink implements ConsumerSink {
  ids: MessageId[] = [];

  deliver({ ledgerId, entryId }: DeliveredEntry): void {
    this.ids.push({ ledgerId, entryId, partition: -1, batchIndex: -1, batchSize: 0, topic: TOPIC_NAME });
  }

  activeChanged(): void {
    throw new Error('nobody stands by on a shared subscription');
  }

  disconnected(): void {
    throw new Error('the broker closed the consumer');
  }
}

async function measureAlone(): Promise<Measurement> {
  const broker = new EmbeddedBroker({ clock: systemClock });
  const sink = new CountingSink();
  const consumer = broker.subscribe(
    {
      topic: TOPIC_NAME,
      subscription: SUBSCRIPTION,
      type: 'shared',
      initialPosition: 'earliest',
      consumerName: 'alone',
    },
    sink,
  );
  const stopwatch = new Stopwatch();
  for (let sent = 0; sent < ALONE; sent += LOT) {
    consumer.flow(LOT);
    // Receipts come in the order of the publishes: the last one says that all are stored.
    for (let n = 1; n < LOT; n++) void broker.publish(TOPIC_NAME, { payload: PAYLOAD, properties: {} });
    await broker.publish(TOPIC_NAME, { payload: PAYLOAD, properties: {} });
    const { ids } = sink;
    if (ids.length !== LOT) throw new Error(`${ids.length} of ${LOT} messages came`);
    sink.ids = [];
    for (const id of ids) void consumer.acknowledge([id]);
  }
  const measurement = stopwatch.perMessage(ALONE);
  if (broker.stats(TOPIC_NAME).subscriptions.get(SUBSCRIPTION)?.backlog !== 0) throw new Error('something is left');
  return measurement;
}

async function measureBacklog(kind: BacklogKind): Promise<Measurement> {
  return { 'bytes/message': await backlogBytesPerMessage(kind, BACKLOG, () => globalThis.gc?.()) };
}

async function measureTransport(): Promise<Measurement> {
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
