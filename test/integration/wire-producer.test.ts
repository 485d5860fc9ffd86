// The publisher of the wire on a real broker: what Java reads of it, where it puts keys, and that no message is lost
// while its topic moves.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect } from 'vitest';
import type { MessageId } from '../../src/core/message-id.js';
import { WireClient, wire } from '../../src/wire.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import type { PeerReceived } from '../support/real-pulsar/pulsar-peer.js';

const CODECS = ['none', 'lz4', 'zlib', 'zstd', 'snappy'] as const;
const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

function clientOf({ serviceUrl }: SharedPulsar): WireClient {
  const client = new WireClient({ serviceUrl });
  opened.push(client);
  return client;
}

const message = (text: string) => ({ payload: Buffer.from(text), properties: {} });
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `message ${index}`);
const texts = (messages: readonly PeerReceived[]) => messages.map(({ value }) => String(value));

test('Java reads each part of the messages of a batch', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const publisher = await clientOf(pulsar).publisher(topic);
  const messages = [
    {
      payload: Buffer.from('text'),
      key: 'ключ',
      orderingKey: Buffer.from('o'),
      properties: { a: 'ü' },
      eventTimeMs: 7,
    },
    { payload: null, key: 'gone', properties: {} },
    { payload: Buffer.alloc(0), properties: { length: '1' } },
  ];

  const ids = await Promise.all(messages.map((one) => publisher.publish(one, publisher.nextSequenceId())));

  const received = await java.readAll(pulsar.serviceUrl, topic);
  expect(received).toMatchObject([
    { value: Buffer.from('text'), key: 'ключ', orderingKey: Buffer.from('o'), properties: { a: 'ü' }, eventTimeMs: 7 },
    { value: null, key: 'gone', properties: {} },
    { value: Buffer.alloc(0), key: null, properties: { length: '1' } },
  ]);
  expect(received.map(({ batchIndex }) => batchIndex)).toEqual(ids.map(({ batchIndex }) => batchIndex));
});

test.for(CODECS)('Java reads a batch and a single message in %s', async (compression, { pulsar, java }) => {
  const topic = pulsar.newTopic();
  const publisher = await clientOf(pulsar).publisher(topic, { compression });
  const sent = [...numbered(10), 'x'.repeat(5_000)];

  await Promise.all(numbered(10).map((text) => publisher.publish(message(text), publisher.nextSequenceId())));
  await publisher.publish(message('x'.repeat(5_000)), publisher.nextSequenceId());

  const received = await java.readAll(pulsar.serviceUrl, topic);
  expect(texts(received)).toEqual(sent);
  expect(received.map(({ batchIndex }) => batchIndex)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1]);
});

test.for(CODECS)('a batch that Java wrote in %s is read here', async (compression, { pulsar, java }) => {
  const topic = pulsar.newTopic();
  await java.produce(
    pulsar.serviceUrl,
    topic,
    numbered(10).map((value) => ({ value })),
    { batching: 'on', compression },
  );
  const subscription = await clientOf(pulsar).subscribe({ topics: [topic], subscription: 's' });
  const received: string[] = [];

  for (let i = 0; i < 10; i++) {
    const next = await subscription.receive(AbortSignal.timeout(30_000));
    received.push(Buffer.from(next?.payload ?? '').toString());
  }

  expect(received).toEqual(numbered(10));
});

test('a key goes to the partition to which Java sends it', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await pulsar.admin.createPartitionedTopic(topic, 7);
  const publisher = await clientOf(pulsar).publisher(topic);
  const keys = ['a', '', 'customer-7', 'ünïcödé', '日本', '😀', ...numbered(20)];

  const ids = await Promise.all(
    keys.map((key) => publisher.publish({ ...message(key), key }, publisher.nextSequenceId())),
  );

  const there = await Promise.all(keys.map((key) => java.partitionOf(key, 7)));
  expect(ids.map(({ partition }) => partition)).toEqual(there);
});

test('batches by key are split among the consumers of a Key_Shared subscription, each key to one', async ({
  pulsar,
  java,
}) => {
  const topic = pulsar.newTopic();
  const options = { subscription: 's', type: 'key-shared' } as const;
  const consumers = [
    await java.subscribe(pulsar.serviceUrl, topic, options),
    await java.subscribe(pulsar.serviceUrl, topic, options),
  ];
  const publisher = await clientOf(pulsar).publisher(topic, { batching: { byKey: true } });
  const keys = Array.from({ length: 200 }, (_, index) => `key-${index % 20}`);

  await Promise.all(keys.map((key) => publisher.publish({ ...message(key), key }, publisher.nextSequenceId())));

  const received = await Promise.all(consumers.map((consumer) => consumer.receive(200, 3_000)));
  const [first, second] = received.map((messages) => new Set(messages.map(({ key }) => key)));
  expect(received.flat()).toHaveLength(200);
  expect([...(first ?? [])].filter((key) => second?.has(key))).toEqual([]);
  expect(Math.max(...received.flat().map(({ batchIndex }) => batchIndex))).toBe(9);
});

test('a delayed message is sent apart from its batch and is not early', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const consumer = await java.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });
  const publisher = await clientOf(pulsar).publisher(topic);
  const deliverAtMs = Date.now() + 1_500;

  await Promise.all([
    publisher.publish(message('now'), publisher.nextSequenceId()),
    publisher.publish({ ...message('later'), deliverAtMs }, publisher.nextSequenceId()),
  ]);

  expect(texts(await consumer.receive(1))).toEqual(['now']);
  expect(texts(await consumer.receive(1))).toEqual(['later']);
  expect(Date.now()).toBeGreaterThanOrEqual(deliverAtMs);
});

test('a publisher of the transport that is awaited each time sends single messages', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const transport = wire({ serviceUrl: pulsar.serviceUrl });
  opened.push(transport);
  const publisher = await transport.publisher(topic);

  for (const text of numbered(3)) await publisher.publish(message(text), publisher.nextSequenceId());

  const received = await java.readAll(pulsar.serviceUrl, topic);
  expect(received.map(({ batchIndex }) => batchIndex)).toEqual([-1, -1, -1]);
});

test('a broker that deduplicates drops repetitions and nothing else (G-01, G-02)', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  await pulsar.admin.createTopic(topic);
  await pulsar.admin.topicPolicy(topic, 'deduplicationEnabled', true);
  const options = { producerName: 'known', batching: { byKey: true, maxDelayMs: 0 } };
  await deduplicating(pulsar, topic);
  const publisher = await clientOf(pulsar).publisher(topic, options);
  const publish = (id: number, key: string) => publisher.publish({ ...message(String(id)), key }, id);
  const start = publisher.nextSequenceId();
  const ids = Array.from({ length: 40 }, (_, index) => start + index);
  await Promise.all(ids.map((id) => publish(id, `key-${(id * 7) % 5}`)));

  // A repetition among fresh messages.
  const repeated = await Promise.all([39, 40, 38, 41].map((index) => publish(start + index, 'key-0')));

  expect(repeated.map(({ ledgerId }) => ledgerId < 0)).toEqual([true, false, true, false]);
  const values = texts(await java.readAll(pulsar.serviceUrl, topic)).map(Number);
  const expected = Array.from({ length: 42 }, (_, index) => start + index);
  expect(values.filter((id) => id >= start).sort((a, b) => a - b)).toEqual(expected);
});

test('publishing to a terminated topic fails for good', async ({ pulsar }) => {
  const topic = pulsar.newTopic();
  const publisher = await clientOf(pulsar).publisher(topic);
  await publisher.publish(message('before'), publisher.nextSequenceId());

  await pulsar.admin.terminate(topic);

  await expect(publisher.publish(message('after'), publisher.nextSequenceId())).rejects.toMatchObject({
    code: 'TOPIC_TERMINATED',
    retriable: false,
  });
});

test('10,000 messages while their topic is unloaded 20 times: each is stored, in order', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const publisher = await clientOf(pulsar).publisher(topic, { batching: { maxMessages: 50 } });
  const receipts: Promise<MessageId>[] = [];

  for (let unload = 0; unload < 20; unload++) {
    const before = receipts.length;
    for (let i = 0; i < 500; i++) {
      receipts.push(publisher.publish(message(String(receipts.length)), publisher.nextSequenceId()));
      if (i === 250) await receipts[before];
    }
    await pulsar.admin.unload(topic);
  }
  const ids = await Promise.all(receipts);

  const received = texts(await java.readAll(pulsar.serviceUrl, topic)).map(Number);
  const firstTimes = [...new Set(received)];
  expect(firstTimes).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
  expect(new Set(ids.map(({ ledgerId }) => ledgerId)).size).toBeGreaterThan(10);
}, 180_000);

/** The policy acts some time after it was set: until a repetition is dropped. */
async function deduplicating(pulsar: SharedPulsar, topic: string): Promise<void> {
  const publisher = await clientOf(pulsar).publisher(topic, { producerName: 'probe' });
  const giveUpAt = Date.now() + 30_000;
  for (;;) {
    const { ledgerId } = await publisher.publish(message('-1'), 0);
    if (ledgerId < 0) break;
    if (Date.now() > giveUpAt) throw new Error('the topic does not deduplicate');
    await sleep(100);
  }
  await publisher.close();
}
