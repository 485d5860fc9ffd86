// What a real broker does with commands that the client never sends, or sends for a reason: where its rules are met only
// from one side, they are checked here.
import { describe, expect } from 'vitest';
import { murmur3 } from '../../src/core/key-hash.js';
import { fullTopicName } from '../../src/core/topic-name.js';
import type { CommandBody } from '../../src/transports/wire/protocol/commands.js';
import { WireClient } from '../../src/wire.js';
import { eventually, numbered } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { RawConnection } from '../support/real-pulsar/raw-connection.js';
import { closedAfterTest } from '../support/closed-after-test.js';

const ERROR = { serviceNotReady: 6, topicNotFound: 11, producerBusy: 16, assign: 19 } as const;
/** A lookup that found its broker. */
const CONNECT = 1;
const TYPES = { exclusive: 0, shared: 1, keyShared: 3 } as const;
async function open({ serviceUrl }: SharedPulsar, connects = true): Promise<RawConnection> {
  return closedAfterTest(await RawConnection.open(serviceUrl, connects));
}

/** Looks the topic up and subscribes as consumer 1. Gives the answer. */
async function subscribe(raw: RawConnection, topic: string, more: Partial<CommandBody<'SUBSCRIBE'>> = {}) {
  const full = fullTopicName(topic);
  await raw.ask('LOOKUP', { topic: full, requestId: 1 });
  const spec = { topic: full, subscription: 's', subType: TYPES.shared, consumerId: 1, requestId: 2 };
  return raw.ask('SUBSCRIBE', { ...spec, initialPosition: 1, ...more });
}

describe('a connection', () => {
  test('is answered with a version that was claimed, and with the largest message', async ({ pulsar }) => {
    const raw = await open(pulsar);

    const { protocolVersion, maxMessageSize } = await raw.next('CONNECTED');
    expect(protocolVersion).toBeLessThanOrEqual(20);
    expect(maxMessageSize).toBe(5 * 1024 * 1024);
  });

  test('is closed after a first command that is not CONNECT, and after a second CONNECT', async ({ pulsar }) => {
    const [first, second] = [await open(pulsar, false), await open(pulsar)];
    first.send('LOOKUP', { topic: fullTopicName('any'), requestId: 1 });
    second.send('CONNECT', { clientVersion: 'raw', protocolVersion: 20 });
    await Promise.all([first.closed, second.closed]);

    expect([...first.received, ...second.received].map(({ name }) => name)).toEqual(['CONNECTED']);
  });

  test('is closed after a frame that is larger than a message and what stands around it', async ({ pulsar }) => {
    const raw = await open(pulsar);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(5 * 1024 * 1024 + 10 * 1024 + 1);
    raw.raw(head);

    await raw.closed;
  });

  test('is closed after permits of 0', async ({ pulsar }) => {
    const raw = await open(pulsar);
    await subscribe(raw, pulsar.newTopic());
    raw.send('FLOW', { consumerId: 1, messagePermits: 0 });

    await raw.closed;
  });
});

describe('a topic', () => {
  test('is told by the number of its partitions, and one that is missing is not made without being asked', async ({
    pulsar,
  }) => {
    const raw = await open(pulsar);
    const [missing, parts] = [fullTopicName(pulsar.newTopic()), fullTopicName(pulsar.newTopic())];
    await pulsar.admin.createPartitionedTopic(parts, 3);
    const onlyAsk = { metadataAutoCreationEnabled: false };

    const answers = [
      await raw.ask('PARTITIONED_METADATA', { topic: missing, requestId: 11, ...onlyAsk }),
      await raw.ask('PARTITIONED_METADATA', { topic: parts, requestId: 12, ...onlyAsk }),
    ];
    await raw.ask('LOOKUP', { topic: `${parts}-partition-7`, requestId: 13 });
    const producer = { topic: `${parts}-partition-7`, producerId: 1, requestId: 14 };
    answers.push(await raw.ask('PRODUCER', producer));

    expect(answers.map(({ body }) => body)).toMatchObject([
      { error: ERROR.topicNotFound },
      { partitions: 3 },
      { error: ERROR.topicNotFound },
    ]);
  });

  test('takes a producer once it was looked up', async ({ pulsar }) => {
    const raw = await open(pulsar);
    let requestId = 10;
    const producer = (topic: string) => raw.ask('PRODUCER', { topic, producerId: requestId, requestId: ++requestId });
    // A broker reads topics of its own in a new namespace: a bundle that holds one of them needs no lookup any more.
    const refused: { topic: string; answer: Awaited<ReturnType<typeof producer>> }[] = [];
    for (let tries = 0; tries < 12 && refused.length === 0; tries++) {
      const namespace = `public/protocol-${Date.now()}-${tries}`;
      await pulsar.admin.createNamespace(namespace);
      const topic = `persistent://${namespace}/t`;
      const answer = await producer(topic);
      if (answer.name !== 'PRODUCER_SUCCESS') refused.push({ topic, answer });
    }
    const topic = refused[0]?.topic ?? '';

    // On a busy machine the first lookups of a new namespace may be refused too.
    const lookup = () => raw.ask('LOOKUP', { topic, requestId: ++requestId });
    await eventually(lookup, ({ body }) => 'response' in body && body.response === CONNECT);
    const after = await producer(topic);

    expect([refused[0]?.answer, after]).toMatchObject([
      { body: { error: ERROR.serviceNotReady } },
      { name: 'PRODUCER_SUCCESS' },
    ]);
  });

  test('takes a producer name on one connection at a time', async ({ pulsar }) => {
    const [one, other] = [await open(pulsar), await open(pulsar)];
    const topic = fullTopicName(pulsar.newTopic());
    await one.ask('LOOKUP', { topic, requestId: 1 });
    const producer = { topic, producerId: 1, producerName: 'known', userProvidedProducerName: true, requestId: 2 };

    expect((await one.ask('PRODUCER', producer)).name).toBe('PRODUCER_SUCCESS');
    const refused = await other.ask('PRODUCER', producer);
    expect(refused.body).toMatchObject({ error: ERROR.producerBusy });
    // The broker has asked the first one whether it is still there.
    expect(one.received.map(({ name }) => name)).toContain('PING');
  });
});

describe('a subscription', () => {
  test('shared: a cumulative acknowledgement is answered and takes nothing', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    const raw = await open(pulsar);
    await subscribe(raw, topic);
    await java.produce(pulsar.serviceUrl, topic, numbered(3));
    raw.send('FLOW', { consumerId: 1, messagePermits: 10 });
    const { messageId } = await raw.next('MESSAGE', 3);
    const ack = { consumerId: 1, ackType: 1, messageId: [messageId], requestId: 9 };

    expect((await raw.ask('ACK', ack)).body).not.toHaveProperty('error');
    expect((await pulsar.admin.stats(topic)).subscriptions['s']?.msgBacklog).toBe(3);
  });

  test('messages of a batch that are left come again as the set of them, counted', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    const raw = await open(pulsar);
    await subscribe(raw, topic);
    await java.produce(pulsar.serviceUrl, topic, numbered(5), { batching: 'on' });
    raw.send('FLOW', { consumerId: 1, messagePermits: 10 });
    const { ledgerId, entryId } = (await raw.next('MESSAGE')).messageId;
    const messageId = [{ ledgerId, entryId, ackSet: [0b10101n], batchSize: 5 }];
    await raw.ask('ACK', { consumerId: 1, ackType: 0, messageId, requestId: 9 });
    raw.send('REDELIVER_UNACKNOWLEDGED_MESSAGES', { consumerId: 1, messageIds: [{ ledgerId, entryId }] });

    const again = await raw.next('MESSAGE', 2);
    expect(again).toMatchObject({ messageId: { ledgerId, entryId }, ackSet: [21n], redeliveryCount: 1 });
  });

  test('key-shared by ranges: each key goes where its hash says, and ranges may not overlap', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    const halves = [await open(pulsar), await open(pulsar)];
    const range = (start: number, end: number) => ({
      subType: TYPES.keyShared,
      keySharedMeta: { keySharedMode: 1, hashRanges: [{ start, end }] },
    });
    await subscribe(halves[0]!, topic, range(0, 32_767));
    await subscribe(halves[1]!, topic, range(32_768, 65_535));
    for (const half of halves) half.send('FLOW', { consumerId: 1, messagePermits: 100 });
    const client = new WireClient({ serviceUrl: pulsar.serviceUrl });
    const publisher = await client.publisher(topic, { batching: false });
    const keys = Array.from({ length: 12 }, (_, index) => `key-${index}`);
    for (const key of keys) await publisher.publish({ payload: Buffer.from(key), key, properties: {} });
    const counts = () => halves.map(({ received }) => received.filter(({ name }) => name === 'MESSAGE').length);
    const upper = keys.filter((key) => murmur3(key) % 65_536 > 32_767).length;
    await eventually(
      () => Promise.resolve(counts()),
      ([low = 0, high = 0]) => low + high === 12,
    );

    expect(counts()).toEqual([12 - upper, upper]);
    const overlapping = await subscribe(await open(pulsar), topic, range(32_767, 40_000));
    expect(overlapping.body).toMatchObject({ error: ERROR.assign });
    await client.close();
  });

  test('is ended by its last consumer only', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    const [one, other] = [await open(pulsar), await open(pulsar)];
    await subscribe(one, topic);
    await subscribe(other, topic);

    expect((await one.ask('UNSUBSCRIBE', { consumerId: 1, requestId: 5 })).body).toMatchObject({ error: 1 });
    await other.ask('CLOSE_CONSUMER', { consumerId: 1, requestId: 6 });
    expect((await one.ask('UNSUBSCRIBE', { consumerId: 1, requestId: 7 })).name).toBe('SUCCESS');
    expect((await pulsar.admin.stats(topic)).subscriptions).toEqual({});
  });
});
