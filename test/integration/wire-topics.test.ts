// Which topics the wire client reads and writes on a real broker while topics and partitions come and go.
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { WireClient } from '../../src/wire.js';
import { eventually, receive, texts } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { closedAfterTest } from '../support/closed-after-test.js';

function clientOf({ serviceUrl }: SharedPulsar): WireClient {
  return closedAfterTest(new WireClient({ serviceUrl }));
}

async function newNamespace({ admin }: SharedPulsar): Promise<string> {
  const namespace = `public/topics-${randomUUID().slice(0, 8)}`;
  await admin.createNamespace(namespace);
  return namespace;
}

/** Publishes one message to each topic, which makes it; a few at a time. */
async function publishToEach(client: WireClient, topics: readonly string[], text?: string): Promise<void> {
  const left = [...topics];
  const work = async (): Promise<void> => {
    for (let topic = left.pop(); topic !== undefined; topic = left.pop()) {
      const publisher = await client.publisher(topic);
      if (text !== undefined) {
        await publisher.publish({ payload: Buffer.from(text), properties: {} }, publisher.nextSequenceId());
      }
      await publisher.close();
    }
  };
  await Promise.all(Array.from({ length: 40 }, work));
}

test('a pattern reads 1,000 topics, and 50 that are made while it does', async ({ pulsar }) => {
  const namespace = await newNamespace(pulsar);
  const topics = (name: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `persistent://${namespace}/${name}-${index}`);
  const publishing = clientOf(pulsar);
  await publishToEach(publishing, [...topics('orders', 1_000), ...topics('other', 5)]);

  const consumer = await clientOf(pulsar).subscribe({ pattern: `${namespace}/orders-.*`, subscription: 's' });
  expect(new Set(consumer.topics())).toEqual(new Set(topics('orders', 1_000)));
  const late = topics('orders-late', 50);
  await publishToEach(publishing, [...late, ...topics('other-late', 5)], 'late');
  const old = topics('orders', 1_000).filter((_, index) => index % 50 === 0);
  await publishToEach(publishing, old, 'old');

  const received = await receive(consumer, 70, 20_000);
  await consumer.acknowledge(received.map(({ id }) => id));
  expect(received.map(({ id }) => id.topic).sort()).toEqual([...late, ...old].sort());
  await pulsar.admin.deleteTopic(late[7]!);
  const left = await eventually(
    () => Promise.resolve(consumer.topics()),
    (now) => now.length === 1_049,
  );
  expect(left).toHaveLength(1_049);
  expect(left).not.toContain(late[7]);
  await consumer.close();
  // A thousand topics take seconds to delete, and nobody waits for it.
  void pulsar.admin.deleteNamespace(namespace).catch(() => undefined);
}, 180_000);

test('a pattern that is longer than the broker takes finds new topics all the same', async ({ pulsar }) => {
  const namespace = await newNamespace(pulsar);
  const name = 'a-name-that-alone-is-longer-than-fifty-characters-of-a-pattern';
  const topics = [0, 1].map((index) => `persistent://${namespace}/${name}-${index}`);
  await publishToEach(clientOf(pulsar), topics.slice(0, 1), 'first');
  await publishToEach(clientOf(pulsar), [`persistent://${namespace}/other`], 'other');
  const consumer = await clientOf(pulsar).subscribe({
    pattern: `${namespace}/${name}-.*`,
    subscription: 's',
    patternUpdateMs: 300,
  });

  await publishToEach(clientOf(pulsar), topics.slice(1), 'second');

  expect(texts(await receive(consumer, 2)).toSorted()).toEqual(['first', 'second']);
});
