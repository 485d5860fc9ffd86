// The wire client behind a Pulsar proxy: a stand-in for the proxy before a real broker.
import { expect } from 'vitest';
import { CountingPublisher, consume, texts } from '../support/fault-clients.js';
import { PulsarProxy } from '../support/pulsar-proxy.js';
import { test } from '../support/real-pulsar/integration-test.js';

test('everything goes through a Pulsar proxy, also after an unload and the loss of its connections', async ({
  pulsar,
}) => {
  const broker = new URL(pulsar.serviceUrl).host;
  const proxy = await PulsarProxy.start(broker);
  const topic = pulsar.newTopic();
  await pulsar.admin.createPartitionedTopic(topic, 2);
  const consumer = await consume(proxy.serviceUrl, topic);
  const publisher = await CountingPublisher.open(proxy.serviceUrl, topic);
  await publisher.publishAll(texts(0, 300));
  await consumer.until(300);
  // Each of the two clients has one connection for lookups, and one to the broker for all that it does there.
  expect(proxy.targets.toSorted()).toEqual([broker, broker, undefined, undefined]);

  await pulsar.admin.unload(topic);
  const before = consumer.connections;
  proxy.reset();
  await publisher.publishAll(texts(300, 300));
  await consumer.until(600);

  expect(consumer.missing(texts(0, 600))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(before);
  expect([new Set(proxy.targets), proxy.misplaced]).toEqual([new Set([undefined, broker]), []]);
  await proxy.close();
});
