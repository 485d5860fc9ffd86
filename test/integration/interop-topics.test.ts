// Topics that this client shares with Java: partitions that are added, a reader's start, and access to a topic for oneself.
// docs/interop.md lists what each test here shows.
import { expect } from 'vitest';
import { parseMessageId } from '../../src/core/message-id.js';
import type { MessageId } from '../../src/core/message-id.js';
import { WireClient } from '../../src/wire.js';
import type { WirePublisher, WireReader } from '../../src/wire.js';
import { eventually, names, numbered, receive, textOf, texts } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { closedAfterTest } from '../support/closed-after-test.js';

function clientOf({ serviceUrl }: SharedPulsar): WireClient {
  return closedAfterTest(new WireClient({ serviceUrl }));
}

/** Everything that there is to read now. */
async function rest(reader: WireReader): Promise<readonly string[]> {
  const read: string[] = [];
  while (await reader.hasMessageAvailable()) {
    const message = await reader.read(AbortSignal.timeout(10_000));
    if (message === undefined) break;
    read.push(textOf(message));
  }
  return read;
}

const shown = { properties: { version: '7' } };
const publish = (to: WirePublisher) => to.publish({ payload: Buffer.from('one'), properties: {} }, to.nextSequenceId());

test('partitions that are added are published to and read from their first message, with what Java publishes to them', async ({
  pulsar,
  java,
}) => {
  const topic = pulsar.newTopic();
  await pulsar.admin.createPartitionedTopic(topic, 2);
  const options = { partitionsUpdateMs: 100 };
  const consumer = await clientOf(pulsar).subscribe({
    topics: [topic],
    subscription: 's',
    initialPosition: 'latest',
    ...options,
  });
  const publisher = await clientOf(pulsar).publisher(topic, { ...options, batching: false });

  await pulsar.admin.call('POST', `/${topic.replace('://', '/')}/partitions`, 5);
  await java.produce(pulsar.serviceUrl, topic, numbered(20));
  await eventually(
    () => Promise.resolve(publisher.topics()),
    ({ length }) => length === 5,
  );

  expect(publisher.topics()).toHaveLength(5);
  const sent = await Promise.all(
    names(20).map((text) =>
      publisher.publish({ payload: Buffer.from(text), properties: {} }, publisher.nextSequenceId()),
    ),
  );
  const received = await receive(consumer, 40);
  expect(new Set(sent.map(({ partition }) => partition))).toEqual(new Set([0, 1, 2, 3, 4]));
  expect(texts(received).toSorted()).toEqual([...names(20), ...names(20)].toSorted());
  expect(consumer.topics()).toHaveLength(5);
});

test('a reader begins behind a message of Java, in the middle of a batch too, or with it', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const sent = await java.produce(pulsar.serviceUrl, topic, numbered(6), { batching: 'on', batchSize: 4 });
  const start: MessageId = { ...parseMessageId(sent[2]!.id, topic), batchSize: 4 };
  const [behind, inclusive] = await Promise.all([
    clientOf(pulsar).reader({ topic, start }),
    clientOf(pulsar).reader({ topic, start, startInclusive: true }),
  ]);

  expect(start.batchIndex).toBe(2);
  expect(await rest(behind)).toEqual(names(6).slice(3));
  expect(await rest(inclusive)).toEqual(names(6).slice(2));
});

test('exclusive access is refused beside a producer of Java, and Java beside it', async ({ pulsar, java }) => {
  const topic = pulsar.newTopic();
  const shared = await java.openProducer(pulsar.serviceUrl, topic);
  await expect(clientOf(pulsar).publisher(topic, { ...shown, accessMode: 'exclusive' })).rejects.toMatchObject({
    code: 'PRODUCER_FENCED',
    retriable: false,
  });
  await shared.close();

  await publish(await clientOf(pulsar).publisher(topic, { ...shown, accessMode: 'exclusive' }));

  await expect(java.openProducer(pulsar.serviceUrl, topic)).rejects.toThrow('ProducerBusy');
  await expect(java.openProducer(pulsar.serviceUrl, topic, { accessMode: 'Exclusive' })).rejects.toThrow(
    'ProducerFenced',
  );
  await expect(clientOf(pulsar).publisher(topic, { ...shown, accessMode: 'shared' })).rejects.toMatchObject({
    code: 'PRODUCER_BUSY',
  });
  const { publishers } = await pulsar.admin.stats(topic);
  expect(publishers).toMatchObject([{ accessMode: 'Exclusive', metadata: { version: '7' } }]);
});
