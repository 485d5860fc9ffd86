// Messages in chunks between this client and others, both ways: joined, and acknowledged at once with all of their
// entries. docs/interop.md lists what each test here shows.
import { describe, expect } from 'vitest';
import {
  SIX_MB,
  SMALL_CHUNKS,
  backlogOf,
  largeText,
  publishChunked,
  subscribeChunked,
} from '../support/chunked-messages.js';
import { receive } from '../support/received.js';
import { CLIENTS } from '../support/real-pulsar/each-client.js';
import { test } from '../support/real-pulsar/integration-test.js';

for (const { client, test } of CLIENTS) {
  describe(`a message of 6 MB and ${client}`, () => {
    test(`${client} reads one that was cut here, and acknowledges all of it at once`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      const consumer = await peer.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });
      const payload = largeText(SIX_MB);

      await publishChunked(pulsar, topic, payload, { batching: false, chunking: true });

      const received = await consumer.receive(1);
      expect(received).toMatchObject([{ key: 'k', properties: { a: 'b' } }]);
      expect(received[0]?.value?.equals(payload)).toBe(true);
      expect(await backlogOf(pulsar, topic, (entries) => entries === 2)).toBe(2);
      await consumer.acknowledge(received);
      expect(await backlogOf(pulsar, topic, (entries) => entries === 0)).toBe(0);
    });

    test(`one that ${client} cut is read, and all of it acknowledged at once`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      const consumer = await subscribeChunked(pulsar, topic);
      const payload = largeText(SIX_MB);

      const message = { value: payload, key: 'k', properties: { a: 'b' } };
      await peer.produce(pulsar.serviceUrl, topic, [message], { chunkBytes: 5_000_000 });

      const [received] = await receive(consumer, 1);
      expect(received).toMatchObject({ key: 'k', properties: { a: 'b' }, redeliveryCount: 0 });
      expect(Buffer.from(received!.payload!).equals(payload)).toBe(true);
      expect(await backlogOf(pulsar, topic, (entries) => entries === 2)).toBe(2);
      await consumer.acknowledge([received!.id]);
      expect(await backlogOf(pulsar, topic, (entries) => entries === 0)).toBe(0);
    });
  });
}

describe('a message in three chunks', () => {
  test('compressed here, reaches Java as one', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    const consumer = await java.subscribe(pulsar.serviceUrl, topic, { subscription: 's' });
    const payload = Buffer.concat([largeText(5_000), Buffer.alloc(50_000, 'x')]);

    const id = await publishChunked(pulsar, topic, payload, { ...SMALL_CHUNKS, compression: 'zlib' });

    const received = await consumer.receive(1);
    expect(received[0]?.value?.equals(payload)).toBe(true);
    expect(id).toMatchObject({ entryId: 2, firstChunk: { entryId: 0 } });
    await consumer.acknowledge(received);
    expect(await backlogOf(pulsar, topic, (entries) => entries === 0)).toBe(0);
  });

  test('compressed by Java, comes here as one, and its acknowledgement clears three entries', async ({
    pulsar,
    java,
  }) => {
    const topic = pulsar.newTopic();
    const consumer = await subscribeChunked(pulsar, topic, { type: 'exclusive' });
    const payload = Buffer.concat([largeText(5_000), Buffer.alloc(50_000, 'x')]);

    await java.produce(pulsar.serviceUrl, topic, [{ value: payload }], { chunkBytes: 2_000, compression: 'zlib' });

    const [received] = await receive(consumer, 1);
    expect(Buffer.from(received!.payload!).equals(payload)).toBe(true);
    expect(received?.id.entryId).toBeGreaterThan(1);
    expect(await backlogOf(pulsar, topic, (entries) => entries === received!.id.entryId + 1)).toBeGreaterThan(2);
    await consumer.acknowledge([received!.id]);
    expect(await backlogOf(pulsar, topic, (entries) => entries === 0)).toBe(0);
  });
});
