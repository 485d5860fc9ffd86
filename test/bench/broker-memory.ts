// What a backlog costs: bytes per message that waits on a subscription, beyond its payload. With a key of its own, as
// most have; properties are the user's and come on top.
import { EmbeddedBroker } from '../../src/broker/embedded-broker.js';
import { systemClock } from '../../src/system/system-clock.js';
import { PAYLOAD, SUBSCRIPTION, TOPIC_NAME } from './workload.js';

const PRODUCER = 'orders-producer';
const HOUR_MS = 3_600_000;

/** Waits: nobody is connected. Is parked: a consumer is, and all of it is due later. */
export type BacklogKind = 'waits' | 'is parked until its time';

/** @param collect the garbage collector */
export async function backlogBytesPerMessage(kind: BacklogKind, count: number, collect: () => void): Promise<number> {
  const used = (): number => {
    for (let i = 0; i < 4; i++) collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const broker = new EmbeddedBroker({ clock: systemClock });
  await publish(broker, kind, 1_000);
  const before = used();
  await publish(broker, kind, count);
  const bytes = (used() - before) / count - PAYLOAD.length;
  const stats = broker.stats(TOPIC_NAME).subscriptions.get(SUBSCRIPTION);
  if (stats?.backlog !== count + 1_000) throw new Error(`${stats?.backlog} messages wait`);
  if (kind !== 'waits' && stats.delayed !== stats.backlog) throw new Error(`${stats.delayed} messages are parked`);
  // Else the timer of what is parked keeps the process.
  broker.deleteTopic(TOPIC_NAME, { force: true });
  return bytes;
}

async function publish(broker: EmbeddedBroker, kind: BacklogKind, count: number): Promise<void> {
  broker.createSubscription(TOPIC_NAME, SUBSCRIPTION);
  const isParked = kind !== 'waits';
  if (isParked && broker.stats(TOPIC_NAME).subscriptions.get(SUBSCRIPTION)?.consumers.length === 0) connect(broker);
  const deliverAtMs = isParked ? systemClock.now() + HOUR_MS : undefined;
  for (let n = 0; n < count; n++) {
    const message = { payload: PAYLOAD, properties: {}, key: `order-${n}`, deliverAtMs };
    const receipt = broker.publish(TOPIC_NAME, message, { producerName: PRODUCER, sequenceId: n });
    if (n % 100 === 0) await receipt;
  }
  await new Promise((resolve) => setImmediate(resolve));
}

function connect(broker: EmbeddedBroker): void {
  const nothing = (): void => undefined;
  const request = {
    topic: TOPIC_NAME,
    subscription: SUBSCRIPTION,
    type: 'shared',
    initialPosition: 'earliest',
  } as const;
  const sink = { deliver: nothing, activeChanged: nothing, disconnected: nothing };
  broker.subscribe({ ...request, consumerName: 'waiting' }, sink).flow(1_000);
}
