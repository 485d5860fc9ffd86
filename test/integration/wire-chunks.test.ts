// Messages in chunks on a real broker, from here to here and through the runtime: asked for again, sought and settled as
// one message.
import { afterEach, describe, expect } from 'vitest';
import { Runtime, bytesCodec, consoleLogger, defineHandler, poison, retry, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { WireClient, wire } from 'pulsework/wire';
import type { WirePublisherOptions } from 'pulsework/wire';
import { eventually, receive } from '../support/received.js';
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

describe('a message in three chunks', () => {
  test('is asked for again as one, comes again after an unload, and is sought as one', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    const consumer = await subscribe(pulsar, topic, { prefetch: 1 });
    const payload = text(5_000);
    const id = await publish(pulsar, topic, payload, SMALL_CHUNKS);
    await publish(pulsar, topic, Buffer.from('next'), SMALL_CHUNKS);
    const whole = (message: { readonly payload: Uint8Array | null } | undefined): boolean =>
      Buffer.from(message?.payload ?? '').equals(payload);

    const [first] = await receive(consumer, 1);
    await consumer.redeliver([first!.id]);
    const again = await receive(consumer, 2);
    await pulsar.admin.unload(topic);
    const unloaded = await receive(consumer, 2);
    await consumer.acknowledge(unloaded.map((message) => message.id));
    expect(await backlog(pulsar, topic, (entries) => entries === 0)).toBe(0);
    await consumer.seek(id);
    const sought = await receive(consumer, 2);

    const all = [first, again.find(whole), unloaded.find(whole), sought[0]];
    expect(all.map(whole)).toEqual([true, true, true, true]);
    expect(all.map((message) => message?.redeliveryCount)).toEqual([0, 1, 0, 0]);
    expect(all.map((message) => message?.id)).toEqual([id, id, id, id]);
  });

  test('goes to one of two consumers that share a subscription', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    const consumers = await Promise.all([subscribe(pulsar, topic), subscribe(pulsar, topic)]);
    const payloads = Array.from({ length: 20 }, () => text(5_000));
    const publisher = await clientOf(pulsar).publisher(topic, SMALL_CHUNKS);
    const publishing = payloads.map((payload) =>
      publisher.publish({ payload, properties: {} }, publisher.nextSequenceId()),
    );
    await Promise.all(publishing);

    const stop = new AbortController();
    const arrived: number[] = [];
    const reading = consumers.map(async (consumer) => {
      for (;;) {
        const message = await consumer.receive(stop.signal);
        if (message === undefined) return;
        arrived.push(payloads.findIndex((one) => one.equals(message.payload!)));
        await consumer.acknowledge([message.id]);
        if (arrived.length === payloads.length) stop.abort();
      }
    });
    await Promise.all(reading);

    expect(arrived.sort((a, b) => a - b)).toEqual([...payloads.keys()]);
    expect(await backlog(pulsar, topic, (entries) => entries === 0)).toBe(0);
  });
});

describe('through the runtime', () => {
  async function handle(pulsar: SharedPulsar, name: string, run: (delivery: Delivery<Uint8Array>) => Outcome) {
    const handler = defineHandler({
      name: 'kitchen',
      source: topic(name, { codec: bytesCodec }),
      subscription: 's',
      redelivery: { maxDeliveries: 3, backoff: () => 0 },
      handle: run,
    });
    const transport = wire({ serviceUrl: pulsar.serviceUrl });
    const logger = consoleLogger({ level: 'silent' });
    const runtime = await Runtime.start({ transport, handlers: [handler], logger });
    opened.push({ close: () => runtime.drain().then(() => undefined) });
    return runtime;
  }

  test('it is one delivery, run again as one, and settled with all of its entries', async ({ pulsar }) => {
    const name = pulsar.newTopic();
    const payload = text(5_000);
    const runs: (readonly [boolean, number])[] = [];
    await handle(pulsar, name, ({ payload: got, attempt }) => {
      runs.push([payload.equals(got), attempt]);
      return attempt < 3 ? retry('again') : success();
    });

    await publish(pulsar, name, payload, SMALL_CHUNKS);

    expect(await backlog(pulsar, name, (entries) => entries === 0 && runs.length === 3)).toBe(0);
    expect(runs).toEqual([1, 2, 3].map((attempt) => [true, attempt]));
  });

  test('its dead letter is one message that names it, where it is not larger than an entry may be', async ({
    pulsar,
  }) => {
    const name = pulsar.newTopic();
    const payload = text(5_000);
    const letters = await clientOf(pulsar).subscribe({ topics: [`${name}-s-DLQ`], subscription: 'desk' });
    await handle(pulsar, name, () => poison('burnt'));

    const id = await publish(pulsar, name, payload, SMALL_CHUNKS);

    const [letter] = await receive(letters, 1);
    expect(Buffer.from(letter!.payload!).equals(payload)).toBe(true);
    expect(letter?.properties['ORIGIN_MESSAGE_ID']).toBe(`${id.ledgerId}:${id.entryId}:-1`);
    expect(letter?.id).not.toHaveProperty('firstChunk');
    expect(await backlog(pulsar, name, (entries) => entries === 0)).toBe(0);
  });

  test('a dead letter that is larger is refused: the message stays and health says why', async ({ pulsar }) => {
    const name = pulsar.newTopic();
    const runtime = await handle(pulsar, name, () => poison('burnt'));
    await publish(pulsar, name, text(SIX_MB), { batching: false, chunking: true });

    const health = await eventually(
      () => Promise.resolve(runtime.subscription('s', name).health()),
      ({ reason }) => reason !== undefined,
    );

    expect(health).toMatchObject({
      state: 'degraded',
      reason: expect.stringMatching(/MESSAGE_TOO_LARGE|bytes/) as string,
    });
    expect(await backlog(pulsar, name, (entries) => entries === 2)).toBe(2);
  });
});
