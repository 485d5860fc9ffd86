// Messages between this client and others, both ways: every part of a message, batches, codecs, delays, partitions, schemas.
// docs/interop.md lists what each test here shows.
import { describe, expect } from 'vitest';
import type { EncodedMessage, ReceivedMessage } from '../../src/core/message.js';
import type { Subscription } from '../../src/ports/transport.js';
import { WireClient } from '../../src/wire.js';
import type { WirePublisher, WirePublisherOptions, WireSchema } from '../../src/wire.js';
import { openClient } from '../support/fault-clients.js';
import { receive } from '../support/received.js';
import { CLIENTS } from '../support/real-pulsar/each-client.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import type { PeerMessage, PeerReceived } from '../support/real-pulsar/pulsar-peer.js';
import { closedAfterTest } from '../support/closed-after-test.js';

const CODECS = ['none', 'lz4', 'zlib', 'zstd', 'snappy'] as const;
const DELAY_MS = 1_000;
const PARTITIONS = 7;

/** Names that are something else on a JavaScript object, empty texts, and text outside ASCII. */
const ODD_PROPERTIES: readonly (readonly [string, string])[] = [
  ['__proto__', 'own'],
  ['constructor', ''],
  ['length', '-1'],
  ['line\nbreak', 'tab\t'],
  ['toString', 'x'.repeat(5_000)],
  ['ключ', '日本 😀'],
];

/** A message as both sides understand it: `value` and `orderingKey` are text for readable failures. */
interface Content {
  readonly value: string | null;
  readonly key: string | undefined;
  readonly orderingKey: string | undefined;
  readonly properties: readonly (readonly [string, string])[];
  readonly eventTimeMs: number;
}

const PLAIN: Content = { value: '', key: undefined, orderingKey: undefined, properties: [], eventTimeMs: 0 };
const CONTENTS: readonly Content[] = [
  { ...PLAIN, value: 'plain' },
  { ...PLAIN, value: 'ünïcödé 😀', key: 'ключ 😀' },
  { ...PLAIN, value: 'ordered', key: 'k', orderingKey: 'o' },
  { ...PLAIN, value: 'odd', properties: ODD_PROPERTIES },
  { ...PLAIN, value: 'dated', eventTimeMs: 1_234_567_890_123 },
  { ...PLAIN, value: '' },
  { ...PLAIN, value: null, key: 'gone' },
];
const numbered = (count: number): Content[] =>
  Array.from({ length: count }, (_, index) => ({ ...PLAIN, value: `message ${index}` }));
const keyed = (keys: readonly string[]): Content[] => keys.map((key) => ({ ...PLAIN, value: key, key }));

function encoded({ value, orderingKey, eventTimeMs, ...content }: Content): EncodedMessage {
  return {
    ...content,
    payload: value === null ? null : Buffer.from(value),
    orderingKey: orderingKey === undefined ? undefined : Buffer.from(orderingKey),
    eventTimeMs: eventTimeMs === 0 ? undefined : eventTimeMs,
    properties: Object.fromEntries(content.properties),
  };
}

function asOthersSend({ eventTimeMs, ...content }: Content): PeerMessage {
  const properties = Object.fromEntries(content.properties);
  return { ...content, properties, ...(eventTimeMs === 0 ? {} : { eventTimeMs }) };
}

function arrivedHere({ payload, key, orderingKey, properties, eventTimeMs }: ReceivedMessage): Content {
  return {
    value: payload === null ? null : Buffer.from(payload).toString(),
    key: typeof key === 'string' ? key : undefined,
    orderingKey: orderingKey === undefined ? undefined : Buffer.from(orderingKey).toString(),
    properties: sorted(properties),
    eventTimeMs: eventTimeMs ?? 0,
  };
}

function arrivedThere({ value, key, orderingKey, properties, eventTimeMs }: PeerReceived): Content {
  return {
    value: value === null ? null : value.toString(),
    key: key ?? undefined,
    orderingKey: orderingKey?.toString(),
    properties: sorted(properties),
    eventTimeMs,
  };
}

function sorted(properties: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(properties).sort(([a], [b]) => (a < b ? -1 : 1));
}

function clientOf({ serviceUrl }: SharedPulsar): WireClient {
  return closedAfterTest(new WireClient({ serviceUrl }));
}

const publisherOf = (pulsar: SharedPulsar, topic: string, options?: WirePublisherOptions): Promise<WirePublisher> =>
  clientOf(pulsar).publisher(topic, options);
const subscribe = (pulsar: SharedPulsar, topic: string): Promise<Subscription> =>
  clientOf(pulsar).subscribe({ topics: [topic], subscription: 's' });

/** At once, so that they share batches where the publisher makes them. */
async function publishAll(publisher: WirePublisher, contents: readonly Content[]): Promise<readonly number[]> {
  const receipts = contents.map((one) => publisher.publish(encoded(one), publisher.nextSequenceId()));
  return (await Promise.all(receipts)).map(({ partition }) => partition);
}

for (const { client, test } of CLIENTS) {
  describe(`from here to ${client}`, () => {
    test(`${client} reads each part of a message`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();

      await publishAll(await publisherOf(pulsar, topic, { batching: false }), CONTENTS);

      const received = await peer.readAll(pulsar.serviceUrl, topic);
      expect(received.map(arrivedThere)).toEqual(CONTENTS);
      expect(new Set(received.map(({ batchIndex }) => batchIndex))).toEqual(new Set([-1]));
    });

    test(`${client} reads each part of the messages of a batch`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();

      await publishAll(await publisherOf(pulsar, topic), CONTENTS);

      const received = await peer.readAll(pulsar.serviceUrl, topic);
      expect(received.map(arrivedThere)).toEqual(CONTENTS);
      expect(received.map(({ batchIndex }) => batchIndex)).toEqual([...CONTENTS.keys()]);
    });

    test.for(CODECS)(
      `${client} reads a batch and a single message compressed with %s`,
      async (compression, { pulsar, peer }) => {
        const topic = pulsar.newTopic();
        const publisher = await publisherOf(pulsar, topic, { compression });
        const single = { ...PLAIN, value: 'x'.repeat(5_000) };

        await publishAll(publisher, numbered(10));
        await publishAll(publisher, [single]);

        const received = await peer.readAll(pulsar.serviceUrl, topic);
        expect(received.map(arrivedThere)).toEqual([...numbered(10), single]);
        expect(received.map(({ batchIndex }) => batchIndex)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1]);
      },
    );

    test(`${client} gets a delayed message apart from its batch and not early`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      const consumer = await peer.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });
      const publisher = await publisherOf(pulsar, topic);
      const [now, later] = numbered(2).map(encoded);
      const deliverAtMs = Date.now() + DELAY_MS;

      await Promise.all([
        publisher.publish({ ...later!, deliverAtMs }, publisher.nextSequenceId()),
        publisher.publish(now!, publisher.nextSequenceId()),
      ]);

      expect((await consumer.receive(1)).map(({ value }) => String(value))).toEqual(['message 0']);
      expect((await consumer.receive(1)).map(({ value }) => String(value))).toEqual(['message 1']);
      expect(Date.now()).toBeGreaterThanOrEqual(deliverAtMs);
    });

    test(`${client} receives each message on the partition that its receipt names`, async ({ pulsar, peer }) => {
      const topic = await partitionedTopic(pulsar);
      const consumer = await peer.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });

      const partitions = await publishAll(await publisherOf(pulsar, topic), keyed(KEYS));

      const received = await consumer.receive(KEYS.length);
      const byKey = new Map(received.map(({ key, topic: from }) => [key, from]));
      expect(KEYS.map((key) => byKey.get(key))).toEqual(partitions.map((number) => `${topic}-partition-${number}`));
    });
  });

  describe(`from ${client} to here`, () => {
    test(`each part of a message of ${client} is read`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      await peer.produce(pulsar.serviceUrl, topic, CONTENTS.map(asOthersSend));

      const received = await receive(await subscribe(pulsar, topic), CONTENTS.length);

      expect(received.map(arrivedHere)).toEqual(CONTENTS);
      expect(new Set(received.map(({ id }) => id.batchIndex))).toEqual(new Set([-1]));
    });

    test(`each part of the messages of a batch of ${client} is read`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      await peer.produce(pulsar.serviceUrl, topic, CONTENTS.map(asOthersSend), { batching: 'on' });

      const received = await receive(await subscribe(pulsar, topic), CONTENTS.length);

      expect(received.map(arrivedHere)).toEqual(CONTENTS);
      expect(received.map(({ id }) => id.batchIndex)).toEqual([...CONTENTS.keys()]);
    });

    test.for(CODECS)(
      `batches and single messages that ${client} compressed with %s are read`,
      async (compression, { pulsar, peer }) => {
        const topic = pulsar.newTopic();
        const contents = numbered(20).map((one) => ({ ...one, value: `${one.value} `.repeat(500) }));
        const messages = contents.map(asOthersSend);
        const batches = { compression, batching: 'on', batchSize: 5 } as const;
        await peer.produce(pulsar.serviceUrl, topic, messages.slice(0, 15), batches);
        await peer.produce(pulsar.serviceUrl, topic, messages.slice(15), { compression });

        const received = await receive(await subscribe(pulsar, topic), 20);

        expect(received.map((one) => brief(arrivedHere(one)))).toEqual(contents.map(brief));
        expect(received.map(({ id }) => id.batchIndex).slice(8, 17)).toEqual([3, 4, 0, 1, 2, 3, 4, -1, -1]);
      },
    );

    test(`a delayed message of ${client} is not early`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      const subscription = await subscribe(pulsar, topic);
      const sentAtMs = Date.now();
      await peer.produce(pulsar.serviceUrl, topic, [{ value: 'later', deliverAfterMs: DELAY_MS }, { value: 'now' }]);

      const received = await receive(subscription, 2);

      expect(received.map(arrivedHere)).toMatchObject([{ value: 'now' }, { value: 'later' }]);
      expect(Date.now() - sentAtMs).toBeGreaterThanOrEqual(DELAY_MS);
    });

    test(`messages of ${client} on all partitions arrive, each with its partition`, async ({ pulsar, peer }) => {
      const topic = await partitionedTopic(pulsar);
      const sent = await peer.produce(pulsar.serviceUrl, topic, keyed(KEYS).map(asOthersSend));

      const received = await receive(await subscribe(pulsar, topic), KEYS.length);

      const byKey = new Map(received.map(({ key, id }) => [key, id.partition]));
      expect(KEYS.map((key) => byKey.get(key))).toEqual(sent.map(({ partition }) => partition));
      expect(new Set(byKey.values()).size).toBe(PARTITIONS);
    });
  });
}

const brief = ({ value }: Content): string => `${value?.slice(0, 10) ?? ''}... ${value?.length ?? -1}`;

describe('keys of bytes', () => {
  const key = Buffer.from([0, 255, 128, 65]);

  test('Java reads a key of bytes and an ordering key of bytes', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    const publisher = await publisherOf(pulsar, topic);

    await publisher.publish({ ...encoded(PLAIN), key, orderingKey: key }, publisher.nextSequenceId());

    const received = await java.readAll(pulsar.serviceUrl, topic);
    expect(received).toMatchObject([{ keyBytes: key, orderingKey: key }]);
  });

  test('Python reads a key of bytes as base64', async ({ pulsar, python }) => {
    const topic = pulsar.newTopic();
    const publisher = await publisherOf(pulsar, topic);

    await publisher.publish({ ...encoded(PLAIN), key }, publisher.nextSequenceId());

    expect(await python.readAll(pulsar.serviceUrl, topic)).toMatchObject([{ key: key.toString('base64') }]);
  });

  test('a key of bytes and an ordering key of bytes of Java are read', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, [{ value: 'x', keyBytes: key, orderingKey: key }]);

    const [received] = await receive(await subscribe(pulsar, topic), 1);

    expect([received?.key, received?.orderingKey].map((one) => Buffer.from(one ?? ''))).toEqual([key, key]);
  });
});

/** One hundred, of which every third is not ASCII. */
const KEYS: readonly string[] = Array.from(
  { length: 100 },
  (_, index) => `${['customer-', 'größe ', '顧客😀'][index % 3] ?? ''}${index * 7919}`,
);

async function partitionedTopic(pulsar: SharedPulsar): Promise<string> {
  const topic = pulsar.newTopic();
  await pulsar.admin.createPartitionedTopic(topic, PARTITIONS);
  return topic;
}

describe('partitions', () => {
  test('a key goes to the partition that Java chooses', async ({ pulsar, java }) => {
    const [topic, other] = [await partitionedTopic(pulsar), await partitionedTopic(pulsar)];
    const keys = ['', ...KEYS];

    const here = await publishAll(await publisherOf(pulsar, topic), keyed(keys));

    const there = await java.produce(pulsar.serviceUrl, other, keyed(keys).map(asOthersSend));
    expect(here).toEqual(there.map(({ partition }) => partition));
  });

  test('a key goes to the partition that Python chooses with a router that hashes as Java', async ({
    pulsar,
    python,
  }) => {
    const [topic, other] = [await partitionedTopic(pulsar), await partitionedTopic(pulsar)];

    const here = await publishAll(await publisherOf(pulsar, topic), keyed(KEYS));

    const messages = keyed(KEYS).map(asOthersSend);
    const routed = await python.produce(pulsar.serviceUrl, other, messages, { routing: 'java' });
    expect(here).toEqual(routed.map(({ partition }) => partition));
    const unrouted = await python.produce(pulsar.serviceUrl, other, messages);
    expect(here, 'Python has come to hash as Java does: docs/interop.md says otherwise').not.toEqual(
      unrouted.map(({ partition }) => partition),
    );
  });
});

/** Fits the class that the Java peer has. */
const ORDERS: WireSchema = {
  type: 'json',
  schema: {
    type: 'record',
    name: 'Order',
    fields: [
      { name: 'id', type: ['null', 'string'], default: null },
      { name: 'amount', type: 'int' },
    ],
  },
};
const FIRST_SCHEMA_VERSION = '0000000000000000';
const asJson = (value: unknown) => ({ payload: Buffer.from(JSON.stringify(value)), properties: {} });

describe('a topic with a schema', () => {
  test('Java decodes JSON and text by the schema that is registered here', async ({ pulsar, java }) => {
    const client = openClient(pulsar.serviceUrl);
    const [jsonTopic, textTopic] = [pulsar.newTopic(), pulsar.newTopic()];
    const orders = Array.from({ length: 5 }, (_, index) => ({ id: `order ${index}`, amount: index }));
    for (const batching of [{}, false] as const) {
      const publisher = await client.publisher(jsonTopic, { schema: ORDERS, batching });
      await Promise.all(orders.map((order) => publisher.publish(asJson(order), publisher.nextSequenceId())));
    }
    const texts = await client.publisher(textTopic, { schema: { type: 'string' } });
    await texts.publish({ payload: Buffer.from('größer'), properties: {} }, texts.nextSequenceId());

    const read = await java.readValues(pulsar.serviceUrl, jsonTopic, 'json');
    expect(read).toEqual([...orders, ...orders].map((value) => ({ value, schemaVersion: FIRST_SCHEMA_VERSION })));
    const readTexts = await java.readValues(pulsar.serviceUrl, textTopic, 'string');
    expect(readTexts).toEqual([{ value: 'größer', schemaVersion: FIRST_SCHEMA_VERSION }]);
  });

  test('JSON and text that Java writes by a schema are read here by the same', async ({ pulsar, java }) => {
    const client = openClient(pulsar.serviceUrl);
    const [jsonTopic, textTopic] = [pulsar.newTopic(), pulsar.newTopic()];
    const payloads = [JSON.stringify({ id: 'a', amount: 1 }), JSON.stringify({ id: 'b', amount: 2 })];
    await java.produce(
      pulsar.serviceUrl,
      jsonTopic,
      payloads.map((value) => ({ value })),
      { schema: 'json' },
    );
    await java.produce(pulsar.serviceUrl, textTopic, [{ value: '日本' }], { schema: 'string' });
    const received: string[] = [];
    const read = async (topic: string, schema: WireSchema, count: number): Promise<void> => {
      const consumer = await client.subscribe({ topics: [topic], subscription: 's', schema });
      for (let i = 0; i < count; i++) {
        const message = await consumer.receive(AbortSignal.timeout(30_000));
        received.push(Buffer.from(message?.payload ?? []).toString());
      }
    };
    await read(jsonTopic, ORDERS, payloads.length);
    await read(textTopic, { type: 'string' }, 1);

    expect(received).toEqual([...payloads, '日本']);
    const { type, definition = '' } = (await client.topicSchema(jsonTopic)) ?? {};
    expect([type, definition]).toEqual(['json', expect.stringContaining('"amount"')]);
  });
});
