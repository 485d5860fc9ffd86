// The harness itself, on the shared broker: outside clients understand each other, and faults are what they say.
import { expect } from 'vitest';
import { test } from '../support/real-pulsar/integration-test.js';
import type { PeerReceived } from '../support/real-pulsar/pulsar-peer.js';

const texts = (messages: readonly PeerReceived[]): readonly string[] => messages.map(({ value }) => String(value));
const numbered = (count: number): readonly { readonly value: string }[] =>
  Array.from({ length: count }, (_, index) => ({ value: `message ${index}` }));

test('the shared broker is a Pulsar 4.0', async ({ pulsar }) => {
  expect(await pulsar.admin.call('GET', '/brokers/version')).toMatch(/^4\.0\./);
});

test('Java receives all that Java produced, in order', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const sent = numbered(20);

  await java.produce(pulsar.serviceUrl, topic, sent);

  expect(texts(await java.readAll(pulsar.serviceUrl, topic))).toEqual(sent.map(({ value }) => value));
});

test('Java reads each part of a message that Python produced', async ({ pulsar, java, python }) => {
  const topic = pulsar.newTopic();
  const message = { value: 'text', key: 'k', orderingKey: 'o', properties: { name: 'value' }, eventTimeMs: 1_234 };

  await python.produce(pulsar.serviceUrl, topic, [message]);

  expect(await java.readAll(pulsar.serviceUrl, topic)).toMatchObject([
    {
      value: Buffer.from('text'),
      key: 'k',
      orderingKey: Buffer.from('o'),
      properties: { name: 'value' },
      eventTimeMs: 1_234,
    },
  ]);
});

test.for(['none', 'lz4', 'zlib', 'zstd', 'snappy'] as const)(
  'Python reads a batch that Java compressed with %s',
  async (compression, { pulsar, java, python }) => {
    const topic = pulsar.newTopic();
    const sent = numbered(10);

    await java.produce(pulsar.serviceUrl, topic, sent, { batching: 'on', compression });
    const received = await python.readAll(pulsar.serviceUrl, topic);

    expect(texts(received)).toEqual(sent.map(({ value }) => value));
    expect(received.map(({ batchIndex }) => batchIndex)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  },
);

test('a message without a value reaches Java without one', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();

  await java.produce(pulsar.serviceUrl, topic, [{ value: null, key: 'gone' }]);

  expect(await java.readAll(pulsar.serviceUrl, topic)).toMatchObject([{ value: null, key: 'gone' }]);
});

test('a message in chunks is one message', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const value = Buffer.alloc(100_000, 'x');

  await java.produce(pulsar.serviceUrl, topic, [{ value }], { chunkBytes: 10_000 });

  expect((await java.readAll(pulsar.serviceUrl, topic)).map((message) => message.value?.length)).toEqual([100_000]);
});

test('Java sends a key to the partition that it says', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await pulsar.admin.createPartitionedTopic(topic, 5);

  const sent = await java.produce(pulsar.serviceUrl, topic, [{ value: 'a', key: 'customer-7' }]);

  expect(sent.map(({ partition }) => partition)).toEqual([await java.partitionOf('customer-7', 5)]);
});

test('acknowledged messages of a batch do not come again', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await java.produce(pulsar.serviceUrl, topic, numbered(10), { batching: 'on' });
  const first = await java.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });
  const received = await first.receive(10);

  await first.acknowledge(received.filter((_, index) => index % 2 === 0));
  await first.close();
  const second = await java.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });

  expect((await second.receive(5)).map(({ batchIndex }) => batchIndex)).toEqual([1, 3, 5, 7, 9]);
});

test('a message that failed too often is in the dead letter topic', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await java.produce(pulsar.serviceUrl, topic, [{ value: 'bad' }]);
  const consumer = await java.subscribe(pulsar.serviceUrl, topic, {
    subscription: 's',
    type: 'shared',
    negativeAckDelayMs: 100,
    deadLetter: { maxRedeliverCount: 1 },
  });
  const deadLetters = await java.subscribe(pulsar.serviceUrl, `${topic}-s-DLQ`, { subscription: 'kept' });

  for (const count of [0, 1]) {
    const received = await consumer.receive(1);
    expect(received.map(({ redeliveryCount }) => redeliveryCount)).toEqual([count]);
    await consumer.negativeAcknowledge(received);
  }
  // The client moves it when it would be delivered once more.
  const moving = consumer.receive(1, 30_000);
  expect(texts(await deadLetters.receive(1, 30_000))).toEqual(['bad']);
  await consumer.close();
  await moving.catch(() => []);
});

test('Python receives again what it refused, counted', async ({ pulsar, python }) => {
  const topic = pulsar.newTopic();
  await python.produce(pulsar.serviceUrl, topic, numbered(3), { batching: 'on' });
  const consumer = await python.subscribe(pulsar.serviceUrl, topic, {
    subscription: 's',
    type: 'key-shared',
    negativeAckDelayMs: 100,
  });
  const received = await consumer.receive(3);

  await consumer.acknowledge(received.slice(0, 2));
  await consumer.negativeAcknowledge(received.slice(2));

  expect(await consumer.receive(1)).toMatchObject([{ value: Buffer.from('message 2'), redeliveryCount: 1 }]);
  await consumer.close();
});

test('Java sends a message on to its retry topic and receives it there', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await java.produce(pulsar.serviceUrl, topic, [{ value: 'later' }]);
  const options = { subscription: 's', type: 'shared', enableRetry: true } as const;
  const consumer = await java.subscribe(pulsar.serviceUrl, topic, options);

  await consumer.reconsumeLater(await consumer.receive(1), 100, { why: 'busy' });

  const [copy] = await consumer.receive(1);
  expect(copy?.topic).toBe(`${topic}-s-RETRY`);
  expect(copy?.properties).toMatchObject({ why: 'busy', RECONSUMETIMES: '1', DELAY_TIME: '100' });
});

test('a delayed message is not early', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const consumer = await java.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });
  const sentAt = Date.now();

  await java.produce(pulsar.serviceUrl, topic, [{ value: 'later', deliverAfterMs: 1_000 }]);
  await consumer.receive(1);

  expect(Date.now() - sentAt).toBeGreaterThanOrEqual(1_000);
});

test('messages survive the unloading of their topic', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await java.produce(pulsar.serviceUrl, topic, [{ value: 'before' }]);

  await pulsar.admin.unload(topic);
  await java.produce(pulsar.serviceUrl, topic, [{ value: 'after' }]);

  expect(texts(await java.readAll(pulsar.serviceUrl, topic))).toEqual(['before', 'after']);
});

test('a client behind the proxy stays behind it and survives a cut', async ({ pulsar, proxy, java }) => {
  const topic = pulsar.newTopic();
  const consumer = await java.subscribe(proxy.serviceUrl, topic, { subscription: 's' });
  const acceptedBefore = proxy.acceptedConnections;

  proxy.cutAfter('to-client', 100);
  await java.produce(pulsar.serviceUrl, topic, [{ value: 'a'.repeat(200) }]);

  expect(texts(await consumer.receive(1, 60_000))).toEqual(['a'.repeat(200)]);
  expect(proxy.acceptedConnections).toBeGreaterThan(acceptedBefore);
});

test('statistics name the consumers of a subscription', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await java.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared', consumerName: 'one' });

  const { subscriptions } = await pulsar.admin.stats(topic);

  expect(subscriptions['s']?.consumers.map(({ consumerName }) => consumerName)).toEqual(['one']);
});
