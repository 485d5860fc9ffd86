// The wire client's consumer under faults on a real broker: every message is counted, and none is missing.
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect } from 'vitest';
import { asMessages, consume, texts } from '../support/fault-clients.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';

/** The broker's figures, once `holds` or after five seconds: they are behind by a moment. */
async function stats(pulsar: SharedPulsar, topic: string, holds: (figures: Figures) => boolean): Promise<Figures> {
  for (let tries = 0; ; tries++) {
    const subscription = (await pulsar.admin.stats(topic)).subscriptions['s'];
    const figures = {
      backlog: subscription?.msgBacklog,
      permits: subscription?.consumers.map(({ availablePermits }) => availablePermits),
    };
    if (holds(figures) || tries === 50) return figures;
    await sleep(100);
  }
}

interface Figures {
  readonly backlog: number | undefined;
  readonly permits: readonly number[] | undefined;
}

test('10,000 messages arrive while their topic is unloaded 20 times', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const consumer = await consume(pulsar.serviceUrl, topic, { prefetch: 200 });
  for (let slice = 0; slice < 20; slice++) {
    const sending = java.produce(pulsar.serviceUrl, topic, asMessages(texts(slice * 500, 500)), {
      batching: slice % 2 === 0 ? 'on' : 'off',
      batchSize: 50,
    });
    const before = consumer.connections;
    await pulsar.admin.unload(topic);
    await sending;
    await consumer.untilConnections(before + 1);
  }

  await consumer.until(10_000);
  await consumer.untilAcknowledged();

  expect(consumer.missing(texts(0, 10_000))).toEqual([]);
  expect(consumer.connections).toBeGreaterThanOrEqual(21);
  expect(await stats(pulsar, topic, ({ backlog }) => backlog === 0)).toMatchObject({ backlog: 0 });
}, 180_000);

test('connections cut at random bytes lose nothing, and the permits are right afterwards', async ({
  pulsar,
  proxy,
  java,
}) => {
  const topic = pulsar.newTopic();
  const prefetch = 30;
  const consumer = await consume(proxy.serviceUrl, topic, { prefetch });
  const cut = fc.record({
    direction: fc.constantFrom('to-client' as const, 'to-broker' as const),
    bytes: fc.integer({ min: 1, max: 1_500 }),
  });
  const cuts = fc.sample(cut, { numRuns: 25, seed: 4 });

  for (const [round, { direction, bytes }] of cuts.entries()) {
    proxy.cutAfter(direction, bytes);
    const options = { batching: round % 2 === 0 ? 'on' : 'off', batchSize: 7 } as const;
    await java.produce(pulsar.serviceUrl, topic, asMessages(texts(round * 40, 40)), options);
    await consumer.until((round + 1) * 40);
  }
  proxy.heal();
  await consumer.untilAcknowledged();

  expect(consumer.missing(texts(0, cuts.length * 40))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(10);
  const figures = await stats(pulsar, topic, ({ backlog }) => backlog === 0);
  expect(figures.backlog).toBe(0);
  // In lots of half the prefetch: what is not granted yet is less than one.
  expect(figures.permits).toHaveLength(1);
  expect(figures.permits?.[0]).toBeGreaterThan(prefetch / 2);
  expect(figures.permits?.[0]).toBeLessThanOrEqual(prefetch);
});

test('after each of ten pairs of reconnects within 50 ms the broker has one consumer with exactly its permits', async ({
  pulsar,
  proxy,
  java,
}) => {
  const topic = pulsar.newTopic();
  const prefetch = 77;
  const consumer = await consume(proxy.serviceUrl, topic, { prefetch }, { reconnectMinMs: 1 });
  const afterwards: Figures[] = [];
  for (let pair = 0; pair < 10; pair++) {
    const before = consumer.connections;
    proxy.reset();
    await sleep(5 + 4 * pair);
    proxy.reset();
    await consumer.untilConnections(before + 1);
    afterwards.push(await stats(pulsar, topic, ({ permits }) => permits?.join() === String(prefetch)));
    // Everything is acknowledged before the next pair, so that the permits are whole again.
    await java.produce(pulsar.serviceUrl, topic, asMessages(texts(pair * prefetch, prefetch)));
    await consumer.until((pair + 1) * prefetch);
    await consumer.untilAcknowledged();
  }

  expect(afterwards.map(({ permits }) => permits)).toEqual(Array.from({ length: 10 }, () => [prefetch]));
  expect(consumer.missing(texts(0, 10 * prefetch))).toEqual([]);
  expect(await stats(pulsar, topic, ({ backlog }) => backlog === 0)).toMatchObject({ backlog: 0 });
});

test('a peer that is silent for longer than the keep-alive is left, and nothing is lost', async ({
  pulsar,
  proxy,
  java,
}) => {
  const topic = pulsar.newTopic();
  const options = { keepAliveMs: 500, connectTimeoutMs: 500 };
  const consumer = await consume(proxy.serviceUrl, topic, {}, options);
  await java.produce(pulsar.serviceUrl, topic, asMessages(texts(0, 100)));
  await consumer.until(100);
  const before = consumer.connections;

  proxy.freeze();
  await java.produce(pulsar.serviceUrl, topic, asMessages(texts(100, 100)));
  await sleep(3_000);
  proxy.heal();
  await consumer.until(200);

  expect(consumer.missing(texts(0, 200))).toEqual([]);
  expect(consumer.connections).toBeGreaterThan(before);
});

test('a connection that loses bytes is given up, and the messages come over the next', async ({
  pulsar,
  proxy,
  java,
}) => {
  const topic = pulsar.newTopic();
  const consumer = await consume(proxy.serviceUrl, topic, {}, { keepAliveMs: 500, connectTimeoutMs: 500 });
  proxy.lose();
  await java.produce(pulsar.serviceUrl, topic, asMessages(texts(0, 100)));
  await sleep(500);
  proxy.heal();
  await consumer.until(100);

  expect(consumer.missing(texts(0, 100))).toEqual([]);
});

test('a topic that is deleted and made again is consumed again', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const consumer = await consume(pulsar.serviceUrl, topic);
  await java.produce(pulsar.serviceUrl, topic, asMessages(texts(0, 10)));
  await consumer.until(10);
  const before = consumer.connections;

  await pulsar.admin.deleteTopic(topic);
  await consumer.untilConnections(before + 1);
  await java.produce(pulsar.serviceUrl, topic, asMessages(texts(10, 10)));
  await consumer.until(20);

  expect(consumer.missing(texts(0, 20))).toEqual([]);
});
