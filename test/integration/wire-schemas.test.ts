// Schemas of topics on a real broker: registered, told, and refused where they do not fit.
import { expect } from 'vitest';
import type { WireSchema } from '../../src/wire.js';
import { openClient } from '../support/fault-clients.js';
import { test } from '../support/real-pulsar/integration-test.js';

const ORDER = {
  type: 'record',
  name: 'Order',
  fields: [
    { name: 'id', type: ['null', 'string'], default: null },
    { name: 'amount', type: 'int' },
  ],
};
const ORDERS: WireSchema = { type: 'json', schema: ORDER };
const FIRST_VERSION = '0000000000000000';

test('a JSON schema is registered by its first producer and is what the broker tells of the topic', async ({
  pulsar,
}) => {
  const client = openClient(pulsar.serviceUrl);
  const topic = pulsar.newTopic();
  const before = await client.topicSchema(topic);
  await client.publisher(topic, { schema: ORDERS });

  const schema = await client.topicSchema(topic);
  expect(before).toBeUndefined();
  expect([schema?.type, JSON.parse(schema?.definition ?? '')]).toEqual(['json', ORDER]);
  expect(Buffer.from(schema?.version ?? []).toString('hex')).toBe(FIRST_VERSION);
});

test('a schema that does not fit is refused for good, to producers and to consumers', async ({ pulsar }) => {
  const client = openClient(pulsar.serviceUrl);
  const topic = pulsar.newTopic();
  await client.publisher(topic, { schema: ORDERS });
  const other: WireSchema = {
    type: 'json',
    schema: { type: 'record', name: 'Order', fields: [{ name: 'amount', type: 'string' }] },
  };
  const refused = { code: 'SCHEMA_INCOMPATIBLE', retriable: false };

  await expect(client.publisher(topic, { schema: other })).rejects.toMatchObject(refused);
  await expect(client.publisher(topic, { schema: { type: 'string' } })).rejects.toMatchObject(refused);
  const subscribing = client.subscribe({ topics: [topic], subscription: 's', schema: other });
  await expect(subscribing).rejects.toMatchObject(refused);
  // Bytes are taken: their writer vouches for them.
  await expect(client.publisher(topic, { schema: { type: 'bytes' } })).resolves.toBeDefined();
});
