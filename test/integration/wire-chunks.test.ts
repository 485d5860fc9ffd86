// Messages in chunks on a real broker, from here to here and through the runtime: asked for again, sought and settled as
// one message.
import { afterEach, describe, expect } from 'vitest';
import { Runtime, bytesCodec, consoleLogger, defineHandler, poison, retry, success, topic } from 'pulsework';
import type { Delivery, Outcome } from 'pulsework';
import { wire } from 'pulsework/wire';
import {
  SIX_MB,
  SMALL_CHUNKS,
  backlogOf,
  largeText,
  publishChunked,
  subscribeChunked,
} from '../support/chunked-messages.js';
import { openClient } from '../support/fault-clients.js';
import { eventually, receive } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';

const runtimes: Runtime[] = [];
afterEach(async () => {
  for (const runtime of runtimes.splice(0)) await runtime.drain();
});

describe('a message in three chunks', () => {
  test('is asked for again as one, comes again after an unload, and is sought as one', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    const consumer = await subscribeChunked(pulsar, topic, { prefetch: 1 });
    const payload = largeText(5_000);
    const id = await publishChunked(pulsar, topic, payload, SMALL_CHUNKS);
    await publishChunked(pulsar, topic, Buffer.from('next'), SMALL_CHUNKS);
    const whole = (message: { readonly payload: Uint8Array | null } | undefined): boolean =>
      Buffer.from(message?.payload ?? '').equals(payload);

    const [first] = await receive(consumer, 1);
    await consumer.redeliver([first!.id]);
    const again = await receive(consumer, 2);
    await pulsar.admin.unload(topic);
    const unloaded = await receive(consumer, 2);
    await consumer.acknowledge(unloaded.map((message) => message.id));
    expect(await backlogOf(pulsar, topic, (entries) => entries === 0)).toBe(0);
    await consumer.seek(id);
    const sought = await receive(consumer, 2);

    const all = [first, again.find(whole), unloaded.find(whole), sought[0]];
    expect(all.map(whole)).toEqual([true, true, true, true]);
    expect(all.map((message) => message?.redeliveryCount)).toEqual([0, 1, 0, 0]);
    expect(all.map((message) => message?.id)).toEqual([id, id, id, id]);
  });

  test('goes to one of two consumers that share a subscription (G-10)', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    const consumers = await Promise.all([subscribeChunked(pulsar, topic), subscribeChunked(pulsar, topic)]);
    const payloads = Array.from({ length: 20 }, () => largeText(5_000));
    const publisher = await openClient(pulsar.serviceUrl).publisher(topic, SMALL_CHUNKS);
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
    expect(await backlogOf(pulsar, topic, (entries) => entries === 0)).toBe(0);
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
    runtimes.push(runtime);
    return runtime;
  }

  test('it is one delivery, run again as one, and settled with all of its entries', async ({ pulsar }) => {
    const name = pulsar.newTopic();
    const payload = largeText(5_000);
    const runs: (readonly [boolean, number])[] = [];
    await handle(pulsar, name, ({ payload: got, attempt }) => {
      runs.push([payload.equals(got), attempt]);
      return attempt < 3 ? retry('again') : success();
    });

    await publishChunked(pulsar, name, payload, SMALL_CHUNKS);

    expect(await backlogOf(pulsar, name, (entries) => entries === 0 && runs.length === 3)).toBe(0);
    expect(runs).toEqual([1, 2, 3].map((attempt) => [true, attempt]));
  });

  test('its dead letter is one message that names it, where it is not larger than an entry may be', async ({
    pulsar,
  }) => {
    const name = pulsar.newTopic();
    const payload = largeText(5_000);
    const letters = await openClient(pulsar.serviceUrl).subscribe({ topics: [`${name}-s-DLQ`], subscription: 'desk' });
    await handle(pulsar, name, () => poison('burnt'));

    const id = await publishChunked(pulsar, name, payload, SMALL_CHUNKS);

    const [letter] = await receive(letters, 1);
    expect(Buffer.from(letter!.payload!).equals(payload)).toBe(true);
    expect(letter?.properties['ORIGIN_MESSAGE_ID']).toBe(`${id.ledgerId}:${id.entryId}:-1`);
    expect(letter?.id).not.toHaveProperty('firstChunk');
    expect(await backlogOf(pulsar, name, (entries) => entries === 0)).toBe(0);
  });

  test('a dead letter that is larger is refused: the message stays and health says why', async ({ pulsar }) => {
    const name = pulsar.newTopic();
    const runtime = await handle(pulsar, name, () => poison('burnt'));
    await publishChunked(pulsar, name, largeText(SIX_MB), { batching: false, chunking: true });

    const health = await eventually(
      () => Promise.resolve(runtime.subscription('s', name).health()),
      ({ reason }) => reason !== undefined,
    );

    expect(health).toMatchObject({
      state: 'degraded',
      reason: expect.stringMatching(/MESSAGE_TOO_LARGE|bytes/) as string,
    });
    expect(await backlogOf(pulsar, name, (entries) => entries === 2)).toBe(2);
  });
});
