// The wire client alone on a real broker: when negatively acknowledged messages come again, what cancels that, and what
// remains of it when the consumer closes or its connection is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import type { ReceivedMessage } from '../../src/core/message.js';
import { WireClient, exponentialBackoff } from '../../src/wire.js';
import type { WireConsumer, WireConsumerOptions } from '../../src/wire.js';
import { nackSchedule, offSchedule } from '../support/nack-schedule.js';
import { receive, textOf, texts } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';
import { closedAfterTest } from '../support/closed-after-test.js';

/** The default of 1 s would take 31 s: campaign `nack-schedule` waits for it. */
const SHORT_MIN_MS = 100;
/** For timers, the broker, and the way there and back on a busy machine. */
const LATE_MS = 1_500;
const QUIET_MS = 1_500;

function subscribe(
  serviceUrl: string,
  topic: string,
  options: Partial<WireConsumerOptions> = {},
): Promise<WireConsumer> {
  const client = closedAfterTest(new WireClient({ serviceUrl, reconnectMinMs: 10 }));
  return client.subscribe({ topics: [topic], subscription: 's', ...options });
}

async function publish(serviceUrl: string, topic: string, values: readonly string[], batched = false): Promise<void> {
  const client = new WireClient({ serviceUrl });
  const publisher = await client.publisher(topic, batched ? { batching: { maxDelayMs: 1_000 } } : {});
  const receipts = values.map((value) =>
    publisher.publish({ payload: Buffer.from(value), key: value, properties: {} }, publisher.nextSequenceId()),
  );
  publisher.flush();
  await Promise.all(receipts);
  await client.close();
}

async function one(consumer: WireConsumer): Promise<ReceivedMessage> {
  const [message] = await receive(consumer, 1, 40_000);
  return message!;
}

/** What comes while nothing should. */
const stray = (consumer: WireConsumer): Promise<ReceivedMessage[]> => receive(consumer, 1, QUIET_MS);

async function timeUntilNext(consumer: WireConsumer): Promise<{ readonly ms: number; readonly next: ReceivedMessage }> {
  const since = performance.now();
  const next = await one(consumer);
  return { ms: performance.now() - since, next };
}

describe('the delay', () => {
  test('doubles over five negative acknowledgements, by the count of the broker (N-08)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a']);

    const schedule = await nackSchedule(pulsar.serviceUrl, topic, SHORT_MIN_MS);

    expect(offSchedule(schedule, SHORT_MIN_MS)).toEqual([]);
  });

  test('is the fixed one for an id, also beside a backoff (N-13)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a']);
    const consumer = await subscribe(pulsar.serviceUrl, topic, {
      negativeAckBackoff: exponentialBackoff({ minMs: 60_000 }),
      negativeAckRedeliveryDelayMs: 700,
    });
    consumer.negativeAcknowledgeId((await one(consumer)).id);
    const { ms, next } = await timeUntilNext(consumer);

    expect(ms).toBeGreaterThan(698);
    expect(ms).toBeLessThan(700 + LATE_MS);
    expect(next.redeliveryCount).toBe(1);
  });

  test('of 0 brings it at once, and once, although it waited for long (N-11)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a']);
    const consumer = await subscribe(pulsar.serviceUrl, topic, {
      negativeAckBackoff: exponentialBackoff({ minMs: 1_500 }),
      negativeAckRedeliveryDelayMs: 0,
    });
    const message = await one(consumer);
    consumer.negativeAcknowledge(message);
    consumer.negativeAcknowledgeId(message.id);
    const { ms, next } = await timeUntilNext(consumer);

    expect(ms).toBeLessThan(1_400);
    expect(next.redeliveryCount).toBe(1);
    expect(await receive(consumer, 1, 2_000)).toEqual([]);
  });

  test('counts per topic: partitions are asked each by its own consumer', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await pulsar.admin.createPartitionedTopic(topic, 3);
    const values = Array.from({ length: 12 }, (_, index) => `${index}`);
    await publish(pulsar.serviceUrl, topic, values);
    const consumer = await subscribe(pulsar.serviceUrl, topic, { negativeAckRedeliveryDelayMs: 300 });
    for (const message of await receive(consumer, 12)) consumer.negativeAcknowledge(message);
    const again = await receive(consumer, 12);

    expect(texts(again).toSorted()).toEqual(values.toSorted());
    expect(again.map(({ redeliveryCount }) => redeliveryCount)).toEqual(again.map(() => 1));
    expect(new Set(again.map(({ id }) => id.partition)).size).toBeGreaterThan(1);
  });

  test('on Exclusive ends with everything unacknowledged, in order (N-31)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a', 'b', 'c']);
    const consumer = await subscribe(pulsar.serviceUrl, topic, {
      type: 'exclusive',
      negativeAckRedeliveryDelayMs: 300,
    });
    const [a, b] = await receive(consumer, 3);
    await consumer.acknowledge([a!.id]);
    consumer.negativeAcknowledge(b!);

    expect(texts(await receive(consumer, 3, QUIET_MS))).toEqual(['b', 'c']);
  });
});

describe('an acknowledgement cancels it', () => {
  test('of the message (N-27)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a']);
    const consumer = await subscribe(pulsar.serviceUrl, topic, { negativeAckRedeliveryDelayMs: 300 });
    const message = await one(consumer);
    consumer.negativeAcknowledge(message);
    await consumer.acknowledge([message.id]);

    expect(await stray(consumer)).toEqual([]);
  });

  test('cumulatively, up to its id: what comes after it stays (N-28)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a', 'b', 'c']);
    const consumer = await subscribe(pulsar.serviceUrl, topic, {
      type: 'exclusive',
      negativeAckRedeliveryDelayMs: 300,
    });
    const [a, b, c] = await receive(consumer, 3);
    consumer.negativeAcknowledge(a!);
    await consumer.acknowledgeCumulative(b!.id);
    const cancelled = await stray(consumer);
    consumer.negativeAcknowledge(c!);

    expect(cancelled).toEqual([]);
    expect(texts(await receive(consumer, 3, QUIET_MS))).toEqual(['c']);
  });

  test('of batch siblings leaves it, and they do not come again with it (N-27, N-22)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a', 'b', 'c'], true);
    const consumer = await subscribe(pulsar.serviceUrl, topic, { negativeAckRedeliveryDelayMs: 300 });
    const [a, b, c] = await receive(consumer, 3);
    consumer.negativeAcknowledge(b!);
    await consumer.acknowledge([a!.id, c!.id]);

    expect([a, b, c].map((message) => message?.id.batchIndex)).toEqual([0, 1, 2]);
    expect(texts(await receive(consumer, 3, QUIET_MS))).toEqual(['b']);
  });

  test('that comes too late is harmless: the broker ignores a request for what is acknowledged (N-26)', async ({
    pulsar,
  }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a']);
    const consumer = await subscribe(pulsar.serviceUrl, topic);
    const message = await one(consumer);
    await consumer.acknowledge([message.id]);
    await consumer.redeliver([message.id]);

    expect(await stray(consumer)).toEqual([]);
  });
});

describe('what waits', () => {
  test('is given back by close at once, uncounted, to whoever is there (N-16)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a']);
    const first = await subscribe(pulsar.serviceUrl, topic, { prefetch: 1 });
    first.negativeAcknowledge(await one(first));
    const second = await subscribe(pulsar.serviceUrl, topic);
    await first.close();
    const message = await one(second);

    expect([textOf(message), message.redeliveryCount]).toEqual(['a', 0]);
  });

  test('comes at once after a lost connection, and is not asked for again (N-29)', async ({ pulsar, proxy }) => {
    const topic = pulsar.newTopic();
    await publish(pulsar.serviceUrl, topic, ['a']);
    const consumer = await subscribe(proxy.serviceUrl, topic, { negativeAckRedeliveryDelayMs: 2_000 });
    const old = await one(consumer);
    consumer.negativeAcknowledge(old);
    proxy.reset();
    const { ms, next } = await timeUntilNext(consumer);
    consumer.negativeAcknowledge(old);
    await sleep(2_000);

    expect(ms).toBeLessThan(2_000);
    expect([next.redeliveryCount, next.connection]).toEqual([0, old.connection + 1]);
    expect(await stray(consumer)).toEqual([]);
  });
});

test('the ack timeout asks for what is not settled in time (A-05)', async ({ pulsar }) => {
  const topic = pulsar.newTopic();
  await publish(pulsar.serviceUrl, topic, ['a', 'b']);
  const consumer = await subscribe(pulsar.serviceUrl, topic, { ackTimeoutMs: 1_000 });
  const [a, b] = await receive(consumer, 2);
  await consumer.acknowledge([a!.id]);
  const { ms, next } = await timeUntilNext(consumer);

  expect([textOf(next), next.redeliveryCount]).toEqual([textOf(b!), 1]);
  expect(ms).toBeGreaterThan(900);
  expect(ms).toBeLessThan(1_000 + LATE_MS);
});
