// Messages in chunks over the embedded transport: cut by its publishers, joined by its subscriptions within limits, and
// settled as one. What the conformance suite shows on both brokers is not here.
import { describe, expect, it } from 'vitest';
import { EmbeddedBroker, embedded } from '../../../src/embedded.js';
import type { EmbeddedBrokerOptions, EmbeddedPublisherOptions } from '../../../src/embedded.js';
import type { ReceivedMessage, SubscriptionSpec } from '../../../src/index.js';
import { defineHandler, minutes, success, topic } from '../../../src/index.js';
import { FakeClock, testRuntime } from '../../../src/testing.js';

const TOPIC = 'persistent://public/default/t';

class World {
  readonly clock = new FakeClock();
  readonly lines: string[] = [];
  readonly broker: EmbeddedBroker;
  readonly transport;

  constructor(options: Partial<EmbeddedBrokerOptions> = {}) {
    this.broker = new EmbeddedBroker({ clock: this.clock, ...options });
    const silent = (): void => undefined;
    const error = (line: string): void => void this.lines.push(line);
    this.transport = embedded({ broker: this.broker, logger: { debug: silent, info: silent, warn: silent, error } });
  }

  publisher(options: EmbeddedPublisherOptions = {}, topic = TOPIC) {
    return this.transport.publisher(topic, { chunking: true, ...options });
  }

  async subscribe(spec: Partial<SubscriptionSpec> = {}) {
    const required = { topics: [TOPIC], subscription: 's', type: 'shared', initialPosition: 'earliest' } as const;
    const subscription = await this.transport.subscribe({ ...required, prefetch: 100, consumerName: 'c', ...spec });
    const take = async (): Promise<ReceivedMessage | undefined> => {
      const end = new AbortController();
      const receiving = subscription.receive(end.signal);
      await this.clock.advanceBy(0);
      end.abort();
      return receiving;
    };
    return { subscription, take };
  }

  /** A producer that sends chunk by chunk, of messages in three chunks of two bytes. */
  producer(producerName = 'p') {
    const producer = this.broker.producer({ topic: TOPIC, producerName });
    return async (uuid: string, ...indexes: readonly number[]): Promise<void> => {
      for (const index of indexes) {
        const payload = new TextEncoder().encode(`${uuid}${index}`);
        await producer.publish({ payload, properties: {} }, 0, { uuid, index, count: 3, totalBytes: 6 });
      }
      await this.clock.advanceBy(0);
    };
  }

  stats() {
    return this.broker.stats(TOPIC).subscriptions.get('s');
  }
}

const large = (bytes: number): Uint8Array => Uint8Array.from({ length: bytes }, (_, index) => (index * 31) % 251);
const textOf = (message: ReceivedMessage | undefined): string | undefined =>
  message === undefined ? undefined : new TextDecoder().decode(message.payload ?? undefined);

describe('a publisher that cuts', () => {
  it('cuts what is larger than the broker takes, with key and properties on each chunk', async () => {
    const world = new World({ maxMessageBytes: 1_000 });
    const { take } = await world.subscribe();
    const publisher = await world.publisher();
    const payload = large(2_500);
    const id = await publisher.publish({ payload, key: 'k'.repeat(50), properties: { a: 'b' } }, 7);
    const message = await take();

    expect(id).toMatchObject({ entryId: 2, firstChunk: { entryId: 0, partition: -1 } });
    expect(message).toMatchObject({ id, payload, properties: { a: 'b' }, producerName: publisher.producerName });
    expect(message?.payload?.constructor).toBe(Uint8Array);
    expect(world.stats()?.backlog).toBe(3);
  });

  it('leaves alone what fits, and what has no payload', async () => {
    const world = new World({ maxMessageBytes: 1_000 });
    const publisher = await world.publisher();

    expect(await publisher.publish({ payload: large(1_000), properties: {} }, 0)).not.toHaveProperty('firstChunk');
    expect(await publisher.publish({ payload: null, properties: {} }, 1)).not.toHaveProperty('firstChunk');
  });

  it('stores what it was given at the call', async () => {
    const world = new World({ maxMessageBytes: 1_000 });
    const { take } = await world.subscribe();
    const publisher = await world.publisher();
    const payload = large(2_500);
    const publishing = publisher.publish({ payload, properties: {} }, 0);
    payload.fill(9);
    await publishing;

    expect((await take())?.payload).toEqual(large(2_500));
  });

  it('refuses what leaves no room for the payload, or would be too many chunks', async () => {
    const world = new World({ maxMessageBytes: 1_100 });
    const publisher = await world.publisher({ maxChunkBytes: 1_024 });
    const properties = { text: 'x'.repeat(600) };

    for (const message of [
      { payload: large(2_000), properties },
      { payload: large(10_001 * 1_024), properties: {} },
    ]) {
      await expect(publisher.publish(message, 0)).rejects.toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
    }
    expect(world.broker.stats(TOPIC).entries).toBe(0);
  });

  it('keeps the chunks of a message on one partition, in one piece', async () => {
    const world = new World();
    world.broker.createPartitionedTopic(TOPIC, 3);
    const { take } = await world.subscribe();
    const publisher = await world.publisher({ maxChunkBytes: 1_024 });
    const payloads = [0, 1, 2].map((index) => large(3_000 + index));
    const ids = await Promise.all(
      payloads.map((payload, index) => publisher.publish({ payload, properties: {} }, index)),
    );
    const taken = [await take(), await take(), await take()];

    expect(new Set(ids.map(({ partition }) => partition)).size).toBe(3);
    expect(taken.map((message) => message?.payload?.length).sort()).toEqual([3_000, 3_001, 3_002]);
    expect(taken.every((message) => message?.id.firstChunk?.partition === message?.id.partition)).toBe(true);
  });

  it('fails the message when one chunk fails; published again it comes once, and goes with what was left of it', async () => {
    const world = new World();
    const { subscription, take } = await world.subscribe();
    const publisher = await world.publisher({ maxChunkBytes: 1_024 });
    world.broker.inject({ failPublish: { times: 1, stored: false } });
    const message = { payload: large(3_000), properties: {} };

    await expect(publisher.publish(message, 0)).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    expect(await take()).toBeUndefined();
    await publisher.publish(message, 0);
    const again = await take();
    expect(again?.payload).toEqual(message.payload);
    expect(world.stats()?.backlog).toBe(5);
    await subscription.acknowledge([again!.id]);
    expect(world.stats()?.backlog).toBe(0);
  });

  it('gets -1:-1 where the broker has the message already, and what is stored of the repetition goes with it', async () => {
    const world = new World({ deduplication: true });
    const { subscription, take } = await world.subscribe();
    const publisher = await world.publisher({ maxChunkBytes: 1_024 });
    const message = { payload: large(3_000), properties: {} };
    await publisher.publish(message, 0);
    const { id } = (await take())!;

    const receipt = await publisher.publish(message, 0);
    expect(receipt).toMatchObject({ ledgerId: -1, entryId: -1 });
    expect(receipt).not.toHaveProperty('firstChunk');
    expect([await take(), world.stats()?.backlog]).toEqual([undefined, 5]);
    await subscription.acknowledge([id]);
    await world.clock.advanceBy(minutes(1));
    await world.clock.advanceBy(0);
    expect(world.stats()?.backlog).toBe(0);
    expect(world.lines).toEqual([]);
  });

  it.each([
    [{ chunking: false, maxChunkBytes: 5_000 }, /"maxChunkBytes" needs "chunking: true"/],
    [{ maxChunkBytes: 1_023 }, /"maxChunkBytes" must be at least 1024/],
    [{ chunking: 'yes' as unknown as boolean }, /"chunking" must be/],
  ])('is refused with %j', async (options, reason) => {
    await expect(new World().publisher(options)).rejects.toThrow(reason);
  });

  it('is refused on a topic that is not persistent', async () => {
    const publisher = new World().publisher({}, 'non-persistent://public/default/t');

    await expect(publisher).rejects.toThrow(/"chunking" needs a persistent topic/);
  });
});

describe('a subscription that joins', () => {
  it('tells chunks of several messages apart, and grants anew for all but the last ones', async () => {
    const world = new World();
    const { take } = await world.subscribe({ prefetch: 1 });
    const [p, q] = [world.producer('p'), world.producer('q')];
    await p('a', 0, 1);
    await q('a', 0);
    await p('a', 2);
    await q('a', 1, 2);

    expect([textOf(await take()), textOf(await take())]).toEqual(['a0a1a2', 'a0a1a2']);
  });

  it('does so with a prefetch of 0 while somebody waits', async () => {
    const world = new World();
    const { take } = await world.subscribe({ prefetch: 0 });
    await world.producer()('a', 0, 1, 2);

    expect(world.stats()?.unacked).toBe(0);
    expect(textOf(await take())).toBe('a0a1a2');
  });

  it('gives up the oldest of more than ten incomplete ones, unacknowledged and told, and joins it after all', async () => {
    const world = new World();
    const { subscription, take } = await world.subscribe();
    const send = world.producer();
    for (const name of 'abcdefghijk') await send(name, 0);

    expect(world.lines).toEqual([expect.stringMatching(/entry \d+:0 of .* stays unacknowledged .* more than 10 /)]);
    expect(world.stats()?.backlog).toBe(11);
    await send('a', 1, 2);
    const message = await take();
    expect([textOf(message), message?.redeliveryCount]).toEqual(['a0a1a2', 0]);
    await subscription.acknowledge([message!.id]);
    expect(world.stats()?.backlog).toBe(10);
  });

  it.each(['exclusive', 'failover'] as const)(
    'joins it after all on %s, where everything comes again',
    async (type) => {
      const world = new World();
      const { take } = await world.subscribe({ type });
      await world.clock.advanceBy(1_000);
      const send = world.producer();
      await send('b', 0);
      await world.clock.advanceBy(minutes(1));
      expect(world.lines).toHaveLength(1);
      await send('a', 0);
      await send('b', 1, 2);

      const taken = [await take(), await take()];
      expect(taken.map(textOf)).toEqual(['b0b1b2', undefined]);
      await send('a', 1, 2);
      expect(textOf(await take())).toBe('a0a1a2');
    },
  );

  it('gives up what waits for a chunk for a minute, not before', async () => {
    const world = new World();
    await world.subscribe();
    const send = world.producer();
    await send('a', 0);
    await world.clock.advanceBy(minutes(1) - 1);
    await send('a', 1);
    await world.clock.advanceBy(minutes(1) - 1);
    expect(world.lines).toEqual([]);
    await world.clock.advanceBy(1);

    expect(world.lines).toEqual([
      expect.stringMatching(/2 of 3 chunks of its message came, and no further one within/),
    ]);
    expect(world.stats()?.backlog).toBe(2);
  });

  it('does not give up what the broker may not send', async () => {
    const world = new World();
    const { subscription, take } = await world.subscribe({ prefetch: 1 });
    subscription.pause();
    const send = world.producer();
    await send('a', 0, 1, 2);
    await world.clock.advanceBy(minutes(5));
    expect(world.lines).toEqual([]);
    subscription.resume();

    expect(textOf(await take())).toBe('a0a1a2');
  });

  it('does not keep the chunks of a message above 64 MiB', async () => {
    const world = new World();
    const { take } = await world.subscribe();
    const producer = world.broker.producer({ topic: TOPIC });
    const chunk = { uuid: 'm', index: 0, count: 3, totalBytes: 64 * 1024 * 1024 + 1 };
    await producer.publish({ payload: large(2), properties: {} }, 0, chunk);
    await world.clock.advanceBy(0);

    expect([await take(), world.stats()?.backlog]).toEqual([undefined, 1]);
    expect(world.lines).toEqual([expect.stringMatching(/67108865 bytes, "maxChunkedMessageBytes" is 67108864/)]);
  });

  it('waits for nothing any more after close', async () => {
    const world = new World();
    const { subscription } = await world.subscribe();
    await world.producer()('a', 0);
    expect(world.clock.pendingTimers).toEqual([minutes(1)]);
    await subscription.close();

    expect(world.clock.pendingTimers).toEqual([]);
  });

  it('joins nothing from before an unload with what comes after it', async () => {
    const world = new World();
    const { take } = await world.subscribe();
    const send = world.producer();
    await send('a', 0, 1);
    world.broker.unload(TOPIC);
    await send('a', 2);
    const message = await take();

    expect(textOf(message)).toBe('a0a1a2');
    expect(world.stats()?.unacked).toBe(3);
  });

  it('settles all entries by the text form of an id too', async () => {
    const world = new World();
    const { subscription, take } = await world.subscribe();
    await world.producer()('a', 0, 1, 2);
    const { firstChunk, ...id } = (await take())!.id;
    await subscription.acknowledge([id]);

    expect(firstChunk).toMatchObject({ entryId: 0 });
    expect(world.stats()?.backlog).toBe(0);
  });

  it('acknowledges again what lost its receipt, as a whole', async () => {
    const world = new World();
    const { subscription, take } = await world.subscribe();
    await world.producer()('a', 0, 1, 2);
    const { id } = (await take())!;
    world.broker.inject({ slowAcknowledge: { times: 1, ms: 1_000 } });
    const lost = expect(subscription.acknowledge([id])).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    world.broker.unload(TOPIC);
    await world.clock.advanceBy(0);
    await lost;
    await subscription.acknowledge([id]);

    expect(world.stats()?.backlog).toBe(0);
    expect(await take()).toBeUndefined();
  });

  it('hands on once what is delivered twice', async () => {
    const world = new World();
    const { subscription, take } = await world.subscribe();
    world.broker.inject({ duplicate: { times: 3 } });
    await world.producer()('a', 0, 1, 2);
    const taken = [await take(), await take()];

    expect(taken.map(textOf)).toEqual(['a0a1a2', undefined]);
    await subscription.acknowledge([taken[0]!.id]);
    await world.clock.advanceBy(minutes(1));
    expect([world.stats()?.backlog, world.lines]).toEqual([0, []]);
  });

  it('comes whole to the consumer that becomes active on Failover', async () => {
    const world = new World();
    const consumers = [
      await world.subscribe({ type: 'failover', consumerName: 'a' }),
      await world.subscribe({ type: 'failover', consumerName: 'b' }),
    ];
    await world.clock.advanceBy(1_000);
    const send = world.producer();
    await send('a', 0, 1);
    const active = world.stats()?.consumers.findIndex(({ unacked }) => unacked > 0) ?? -1;
    await consumers[active]?.subscription.close();
    await world.clock.advanceBy(1_000);
    await send('a', 2);

    expect(textOf(await consumers[1 - active]?.take())).toBe('a0a1a2');
  });

  it('has no part in the order of a key that failed (K-43): what failed of it comes when it is asked for', async () => {
    const world = new World();
    const { subscription, take } = await world.subscribe({ type: 'key-shared', orderedNegativeAck: 'best-effort' });
    const publisher = await world.publisher({ maxChunkBytes: 1_024 });
    await publisher.publish({ payload: large(3_000), key: 'k', properties: {} }, 0);
    await publisher.publish({ payload: large(2_000), key: 'k', properties: {} }, 1);
    const [first, second] = [(await take())!, (await take())!];
    subscription.negativeAcknowledgeOrdered([first.id], [second.id]);
    const returned = await take();

    expect([returned?.payload?.length, returned?.redeliveryCount]).toEqual([2_000, 0]);
    await subscription.redeliver([first.id]);
    const failed = await take();
    expect([failed?.payload?.length, failed?.redeliveryCount]).toEqual([3_000, 1]);
  });
});

it('is one message to the test kit', async () => {
  const scans = topic<{ readonly id: string }>('scans');
  const reading = defineHandler({ name: 'reading', source: scans, subscription: 's', handle: () => success() });
  await using kit = await testRuntime([reading]);
  const large = { id: 'A-1'.repeat(1_000) };
  const transport = embedded({ broker: kit.broker });
  const publisher = await transport.publisher('scans', { chunking: true, maxChunkBytes: 1_024 });
  const message = { payload: new TextEncoder().encode(JSON.stringify(large)), key: 'k', properties: {} };
  await publisher.publish(message, publisher.nextSequenceId());
  await kit.settled();
  await transport.close();

  expect(kit.outcomes()).toMatchObject([{ payload: large, key: 'k', outcome: 'success' }]);
  expect(kit.published(scans)).toMatchObject([{ payload: large, key: 'k' }]);
});
