// Readers of the wire client on a real broker: where they begin and go on, and that nothing of them stays.
import { describe, expect } from 'vitest';
import type { MessageId } from '../../src/core/message-id.js';
import { WireClient } from '../../src/wire.js';
import type { WireReader, WireReaderOptions } from '../../src/wire.js';
import { eventually, names, textOf } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { closedAfterTest } from '../support/closed-after-test.js';

async function readerOf({ serviceUrl }: SharedPulsar, options: WireReaderOptions): Promise<WireReader> {
  const client = closedAfterTest(new WireClient({ serviceUrl }));
  return client.reader(options);
}

/** Publishes in batches of `batchSize`; gives the receipts. */
async function produce(
  { serviceUrl }: SharedPulsar,
  topic: string,
  list: readonly string[],
  batchSize = 1,
): Promise<readonly MessageId[]> {
  const client = closedAfterTest(new WireClient({ serviceUrl }));
  const batching = batchSize > 1 && ({ maxMessages: batchSize } as const);
  const publisher = await client.publisher(topic, { batching });
  const receipts = list.map((text) =>
    publisher.publish({ payload: Buffer.from(text), properties: {} }, publisher.nextSequenceId()),
  );
  return Promise.all(receipts);
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

describe('a reader begins', () => {
  test('at the first message, behind the last one, or with the last one', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await produce(pulsar, topic, names(4), 3);
    const [earliest, latest, last] = await Promise.all([
      readerOf(pulsar, { topic, start: 'earliest' }),
      readerOf(pulsar, { topic, start: 'latest' }),
      readerOf(pulsar, { topic, start: 'latest', startInclusive: true }),
    ]);

    expect(await rest(earliest)).toEqual(names(4));
    expect(await latest.hasMessageAvailable()).toBe(false);
    expect(await rest(last)).toEqual(['message 3']);

    await produce(pulsar, topic, ['later']);
    expect(await rest(latest)).toEqual(['later']);
  });

  test('at the first message of a time', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await produce(pulsar, topic, names(3));
    const between = new Date(Date.now() + 50);
    await eventually(
      () => Promise.resolve(Date.now()),
      (now) => now > between.getTime(),
    );
    await produce(pulsar, topic, ['later']);

    expect(await rest(await readerOf(pulsar, { topic, start: between }))).toEqual(['later']);
  });

  test('at a time that nothing was published at or after, and has nothing to read until something is', async ({
    pulsar,
  }) => {
    const topic = pulsar.newTopic();
    await produce(pulsar, topic, names(4), 3);
    const reader = await readerOf(pulsar, { topic, start: new Date(Date.now() + 1) });
    expect(await rest(reader)).toEqual([]);

    await produce(pulsar, topic, ['later']);

    expect(await rest(reader)).toEqual(['later']);
  });
});

test('a reader goes on behind the last message it gave out when its topic is unloaded', async ({ pulsar }) => {
  const topic = pulsar.newTopic();
  await produce(pulsar, topic, names(20), 4);
  const reader = await readerOf(pulsar, { topic, start: 'earliest' });
  const read: string[] = [];
  while (read.length < 6) read.push(textOf((await reader.read(AbortSignal.timeout(10_000)))!));

  await pulsar.admin.unload(topic);

  while (read.length < 20) read.push(textOf((await reader.read(AbortSignal.timeout(20_000)))!));
  expect(read).toEqual(names(20));
});

test('a reader is moved to a message, to an end, and to a time', async ({ pulsar }) => {
  const topic = pulsar.newTopic();
  const sent = await produce(pulsar, topic, names(5));
  const reader = await readerOf(pulsar, { topic, start: 'earliest' });
  expect(await rest(reader)).toEqual(names(5));

  await reader.seek(sent[3]!);
  expect(await rest(reader)).toEqual(['message 3', 'message 4']);
  await reader.seek('earliest');
  expect(await rest(reader)).toEqual(names(5));
  await reader.seek('latest');
  expect(await rest(reader)).toEqual([]);
  await reader.seek(new Date(Date.now() - 3_600_000));
  expect(await rest(reader)).toEqual(names(5));
});

test('a reader of a partitioned topic reads all of it, and leaves no subscription', async ({ pulsar }) => {
  const topic = pulsar.newTopic();
  await pulsar.admin.createPartitionedTopic(topic, 3);
  await produce(pulsar, topic, names(12));
  const reader = await readerOf(pulsar, { topic, start: 'earliest', readerName: 'auditor', properties: { team: 'a' } });
  const subscriptions = async () => (await pulsar.admin.stats(`${topic}-partition-0`)).subscriptions;

  const [found] = Object.values(await subscriptions());
  expect(found?.consumers).toMatchObject([{ consumerName: 'auditor', metadata: { team: 'a' } }]);
  expect((await rest(reader)).toSorted()).toEqual(names(12).toSorted());
  await reader.close();

  expect(await eventually(subscriptions, (now) => Object.keys(now).length === 0)).toEqual({});
});
