// Messages in chunks between this client and others, both ways: joined, and acknowledged at once with all of their
// entries. docs/interop.md lists what each test here shows.
import { afterEach, describe, expect } from 'vitest';
import { WireClient } from 'pulsework/wire';
import type { WirePublisherOptions } from 'pulsework/wire';
import { eventually, receive } from '../support/received.js';
import { CLIENTS } from '../support/real-pulsar/each-client.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { seeded } from '../support/seeded.js';

const SIX_MB = 6_000_000;
const random = seeded(35);
/** Text that no codec makes much smaller, and that is nowhere the same as a chunk before. */
function text(bytes: number): Buffer {
  const piece = Uint8Array.from({ length: 10_007 }, () => 32 + Math.floor(random() * 90));
  return Buffer.alloc(bytes, piece);
}
const SMALL_CHUNKS: WirePublisherOptions = { batching: false, chunking: true, maxChunkBytes: 2_000 };

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

function clientOf({ serviceUrl }: SharedPulsar): WireClient {
  const client = new WireClient({ serviceUrl });
  opened.push(client);
  return client;
}

async function publish(pulsar: SharedPulsar, topic: string, payload: Buffer, options: WirePublisherOptions) {
  const publisher = await clientOf(pulsar).publisher(topic, options);
  const message = { payload, key: 'k', properties: { a: 'b' } };
  return publisher.publish(message, publisher.nextSequenceId());
}

async function backlog(pulsar: SharedPulsar, topic: string, holds: (entries: number) => boolean): Promise<number> {
  const ask = async (): Promise<number> => (await pulsar.admin.stats(topic)).subscriptions['s']?.msgBacklog ?? -1;
  return eventually(ask, holds);
}

const subscribe = (pulsar: SharedPulsar, topic: string, options: object = {}) =>
  clientOf(pulsar).subscribe({ topics: [topic], subscription: 's', ...options });

for (const { client, test } of CLIENTS) {
  describe(`a message of 6 MB and ${client}`, () => {
    test(`${client} reads one that was cut here, and acknowledges all of it at once`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      const consumer = await peer.subscribe(pulsar.serviceUrl, topic, { subscription: 's', type: 'shared' });
      const payload = text(SIX_MB);

      await publish(pulsar, topic, payload, { batching: false, chunking: true });

      const received = await consumer.receive(1);
      expect(received).toMatchObject([{ key: 'k', properties: { a: 'b' } }]);
      expect(received[0]?.value?.equals(payload)).toBe(true);
      expect(await backlog(pulsar, topic, (entries) => entries === 2)).toBe(2);
      await consumer.acknowledge(received);
      expect(await backlog(pulsar, topic, (entries) => entries === 0)).toBe(0);
    });

    test(`one that ${client} cut is read, and all of it acknowledged at once`, async ({ pulsar, peer }) => {
      const topic = pulsar.newTopic();
      const consumer = await subscribe(pulsar, topic);
      const payload = text(SIX_MB);

      const message = { value: payload, key: 'k', properties: { a: 'b' } };
      await peer.produce(pulsar.serviceUrl, topic, [message], { chunkBytes: 5_000_000 });

      const [received] = await receive(consumer, 1);
      expect(received).toMatchObject({ key: 'k', properties: { a: 'b' }, redeliveryCount: 0 });
      expect(Buffer.from(received!.payload!).equals(payload)).toBe(true);
      expect(await backlog(pulsar, topic, (entries) => entries === 2)).toBe(2);
      await consumer.acknowledge([received!.id]);
      expect(await backlog(pulsar, topic, (entries) => entries === 0)).toBe(0);
    });
  });
}

describe('a message in three chunks', () => {
  test('compressed here, reaches Java as one', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    const consumer = await java.subscribe(pulsar.serviceUrl, topic, { subscription: 's' });
    const payload = Buffer.concat([text(5_000), Buffer.alloc(50_000, 'x')]);

    const id = await publish(pulsar, topic, payload, { ...SMALL_CHUNKS, compression: 'zlib' });

    const received = await consumer.receive(1);
    expect(received[0]?.value?.equals(payload)).toBe(true);
    expect(id).toMatchObject({ entryId: 2, firstChunk: { entryId: 0 } });
    await consumer.acknowledge(received);
    expect(await backlog(pulsar, topic, (entries) => entries === 0)).toBe(0);
  });

  test('compressed by Java, comes here as one, and its acknowledgement clears three entries', async ({
    pulsar,
    java,
  }) => {
    const topic = pulsar.newTopic();
    const consumer = await subscribe(pulsar, topic, { type: 'exclusive' });
    const payload = Buffer.concat([text(5_000), Buffer.alloc(50_000, 'x')]);

    await java.produce(pulsar.serviceUrl, topic, [{ value: payload }], { chunkBytes: 2_000, compression: 'zlib' });

    const [received] = await receive(consumer, 1);
    expect(Buffer.from(received!.payload!).equals(payload)).toBe(true);
    expect(received?.id.entryId).toBeGreaterThan(1);
    expect(await backlog(pulsar, topic, (entries) => entries === received!.id.entryId + 1)).toBeGreaterThan(2);
    await consumer.acknowledge([received!.id]);
    expect(await backlog(pulsar, topic, (entries) => entries === 0)).toBe(0);
  });
});
