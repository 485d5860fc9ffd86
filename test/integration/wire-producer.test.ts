// The publisher of the wire on a real broker: its batches, deduplication, terminated topics, and that no message is lost
// while its topic moves. What other clients read of it is in interop-messages.test.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { MessageId } from '../../src/core/message-id.js';
import { WireClient, wire } from '../../src/wire.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import type { PeerReceived } from '../support/real-pulsar/pulsar-peer.js';
import { closedAfterTest } from '../support/closed-after-test.js';

function clientOf({ serviceUrl }: SharedPulsar): WireClient {
  return closedAfterTest(new WireClient({ serviceUrl }));
}

const message = (text: string) => ({ payload: Buffer.from(text), properties: {} });
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `message ${index}`);
const texts = (messages: readonly PeerReceived[]) => messages.map(({ value }) => String(value));

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

test('a publisher of the transport that is awaited each time sends single messages', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const transport = closedAfterTest(wire({ serviceUrl: pulsar.serviceUrl }));
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
