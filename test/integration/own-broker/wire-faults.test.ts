// The wire client while its broker is killed or stands still: every message is counted, and none is missing.
import { expect } from 'vitest';
import { CountingPublisher, asMessages, consume, texts } from '../../support/fault-clients.js';
import { testWithBroker } from '../../support/real-pulsar/integration-test.js';

const test = testWithBroker();

/** Taken for dead after one and a half seconds of silence. */
const QUICK_TO_NOTICE = { keepAliveMs: 500, connectTimeoutMs: 1_000 };

test('a broker that is killed while it delivers, and starts again, loses nothing', async ({ broker, java }) => {
  // All of it before: how long Java's client waits for receipts is shorter than a start on a busy machine.
  await java.produce(broker.serviceUrl, 'killed', asMessages(texts(0, 2_000)));
  const consumer = await consume(broker.serviceUrl, 'killed', { prefetch: 50 });
  await consumer.until(100);

  const killing = broker.restart();
  const before = consumer.counts.size;
  await killing;
  await java.produce(broker.serviceUrl, 'killed', asMessages(texts(2_000, 100)));
  await consumer.until(2_100);

  expect(before).toBeLessThan(2_000);
  expect(consumer.missing(texts(0, 2_100))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(1);
});

test('a broker that stands still for longer than the keep-alive loses nothing', async ({ broker, java }) => {
  const consumer = await consume(broker.serviceUrl, 'frozen', { prefetch: 50 }, QUICK_TO_NOTICE);
  await java.produce(broker.serviceUrl, 'frozen', asMessages(texts(0, 100)));
  await consumer.until(100);
  const before = consumer.connections;

  await broker.freezeFor(4_000);
  await java.produce(broker.serviceUrl, 'frozen', asMessages(texts(100, 100)));
  await consumer.until(200);

  expect(consumer.missing(texts(0, 200))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(before);
});

test('what is published while the broker is killed and starts again has its receipt, and arrives', async ({
  broker,
}) => {
  const consumer = await consume(broker.serviceUrl, 'published-over-a-kill');
  const publisher = await CountingPublisher.open(broker.serviceUrl, 'published-over-a-kill');
  await publisher.publishAll(texts(0, 1_000));
  const sending = publisher.publishAll(texts(1_000, 4_000), 20);
  await consumer.until(1_500);
  const confirmedBefore = publisher.confirmed;

  await broker.restart();
  const receipts = await sending;
  await consumer.until(5_000);

  expect(confirmedBefore).toBeLessThan(5_000);
  expect(receipts).toHaveLength(4_000);
  expect(consumer.missing(texts(0, 5_000))).toEqual([]);
});

test('what is published while the broker stands still has its receipt, and arrives', async ({ broker }) => {
  const consumer = await consume(broker.serviceUrl, 'published-frozen', {}, QUICK_TO_NOTICE);
  const publisher = await CountingPublisher.open(broker.serviceUrl, 'published-frozen', {}, QUICK_TO_NOTICE);
  await publisher.publishAll(texts(0, 100));
  await consumer.until(100);
  const before = consumer.connections;

  const thawed = broker.freezeFor(4_000);
  const sending = publisher.publishAll(texts(100, 400), 1_000);
  await thawed;
  await sending;
  await consumer.until(500);

  expect(consumer.missing(texts(0, 500))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(before);
});
