// The wire client's consumer while its broker is killed or stands still: every message is counted, and none is missing.
import { afterEach, expect } from 'vitest';
import { WireClient } from '../../../src/wire.js';
import type { WireOptions } from '../../../src/wire.js';
import { CountingConsumer } from '../../support/counting-consumer.js';
import { testWithBroker } from '../../support/real-pulsar/integration-test.js';

const test = testWithBroker();

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function consume(serviceUrl: string, topic: string, options: Partial<WireOptions> = {}) {
  const client = new WireClient({ serviceUrl, reconnectMaxMs: 500, ...options });
  opened.push(client);
  const consumer = new CountingConsumer(await client.subscribe({ topics: [topic], subscription: 's', prefetch: 50 }));
  opened.push(consumer);
  return consumer;
}

const texts = (from: number, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `message ${from + index}`);
const asMessages = (list: readonly string[]): readonly { readonly value: string }[] => list.map((value) => ({ value }));

test('a broker that is killed while it delivers, and starts again, loses nothing', async ({ broker, java }) => {
  const consumer = await consume(broker.serviceUrl, 'killed');
  const sending = java.produce(broker.serviceUrl, 'killed', asMessages(texts(0, 2_000)));
  await consumer.until(100);

  await broker.restart();
  await sending;
  await java.produce(broker.serviceUrl, 'killed', asMessages(texts(2_000, 100)));
  await consumer.until(2_100);

  expect(consumer.missing(texts(0, 2_100))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(1);
});

test('a broker that stands still for longer than the keep-alive loses nothing', async ({ broker, java }) => {
  const consumer = await consume(broker.serviceUrl, 'frozen', { keepAliveMs: 500, connectTimeoutMs: 1_000 });
  await java.produce(broker.serviceUrl, 'frozen', asMessages(texts(0, 100)));
  await consumer.until(100);
  const before = consumer.connections;

  await broker.freezeFor(4_000);
  await java.produce(broker.serviceUrl, 'frozen', asMessages(texts(100, 100)));
  await consumer.until(200);

  expect(consumer.missing(texts(0, 200))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(before);
});
