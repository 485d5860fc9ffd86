// Entries that are changed on their way, and a consumer that may have no more of them: every message is counted, and none
// is missing.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ReceivedMessage } from '../../src/core/message.js';
import { CountingPublisher, consume, openClient, texts } from '../support/fault-clients.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { eventually, receive, textOf } from '../support/received.js';

const statsOf = async (pulsar: SharedPulsar, topic: string) => (await pulsar.admin.stats(topic)).subscriptions['s'];
const backlogOf = async (pulsar: SharedPulsar, topic: string) =>
  (
    await eventually(
      () => statsOf(pulsar, topic),
      (stats) => stats?.msgBacklog === 0,
    )
  )?.msgBacklog;

test.for([
  ['single messages', false],
  ['batches', { maxMessages: 10 }],
] as const)(
  '%s that are changed on their way to the consumer are dropped and come again as they were',
  async ([, batching], { pulsar, proxy }) => {
    const topic = pulsar.newTopic();
    const consumer = await consume(proxy.serviceUrl, topic);
    const publisher = await CountingPublisher.open(pulsar.serviceUrl, topic, { batching });
    for (const number of [107, 153, 199]) proxy.corrupt('to-client', `message ${number}`);

    await publisher.publishAll(texts(0, 200));
    await consumer.until(200);
    await consumer.untilAcknowledged();

    expect([proxy.corrupted, consumer.connections]).toEqual([3, 1]);
    expect([...consumer.counts.keys()].toSorted()).toEqual([...texts(0, 200)].sort());
    expect(await backlogOf(pulsar, topic)).toBe(0);
  },
);

// Not in order: what was behind it on the way is stored first.
test('what is changed on its way to the broker is refused there, sent again, and arrives as it was', async ({
  pulsar,
  proxy,
}) => {
  const topic = pulsar.newTopic();
  const consumer = await consume(pulsar.serviceUrl, topic);
  const publisher = await CountingPublisher.open(proxy.serviceUrl, topic, { batching: { maxMessages: 10 } });
  for (const number of [107, 153, 199]) proxy.corrupt('to-broker', `message ${number}`);

  const receipts = await publisher.publishAll(texts(0, 200));
  await consumer.until(200);
  await consumer.untilAcknowledged();

  expect([proxy.corrupted, proxy.acceptedConnections, receipts.length]).toEqual([3, 1, 200]);
  expect([...consumer.counts.keys()].toSorted()).toEqual([...texts(0, 200)].sort());
  expect(await backlogOf(pulsar, topic)).toBe(0);
});

test('a consumer at its limit of unacknowledged messages recovers, also when it loses its connection there', async ({
  pulsar,
  proxy,
}) => {
  const topic = pulsar.newTopic();
  await pulsar.admin.createTopic(topic);
  await pulsar.admin.topicPolicy(topic, 'maxUnackedMessagesOnConsumer', 10);
  await sleep(1_500); // How long a policy takes to act.
  const publisher = await CountingPublisher.open(pulsar.serviceUrl, topic, { batching: false });
  await publisher.publishAll(texts(0, 100));
  const subscription = await openClient(proxy.serviceUrl).subscribe({ topics: [topic], subscription: 's' });
  const came = new Set<string>();
  const take = (messages: readonly ReceivedMessage[]): number => {
    for (const message of messages) came.add(textOf(message));
    return messages.length;
  };
  const blocked = () =>
    eventually(
      () => statsOf(pulsar, topic),
      (stats) => stats?.consumers[0]?.blockedConsumerOnUnackedMsgs === true,
    );

  const untouched = await receive(subscription, 100, 2_000);
  const atLimit = (await blocked())?.consumers[0]?.blockedConsumerOnUnackedMsgs;
  proxy.reset();
  // They come again over the next connection; then it goes on as long as it acknowledges.
  for (let messages = await receive(subscription, 10); messages.length > 0;) {
    take(messages);
    await subscription.acknowledge(messages.map(({ id }) => id));
    messages = await receive(subscription, 10, 2_000);
  }

  expect([untouched.length < 100, atLimit]).toEqual([true, true]);
  expect([...came].toSorted()).toEqual([...texts(0, 100)].sort());
  expect(await backlogOf(pulsar, topic)).toBe(0);
});
