// Subscriptions that this client shares with others: what one acknowledges the others do not get, and Key_Shared keeps the
// order of each key over all of them. docs/interop.md lists what each test here shows.
import { expect } from 'vitest';
import type { Subscription } from '../../src/ports/transport.js';
import { WireClient } from '../../src/wire.js';
import type { WireSubscribeOptions } from '../../src/wire.js';
import { numbered, receive, textOf } from '../support/received.js';
import { CLIENTS } from '../support/real-pulsar/each-client.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import type { PeerConsumer } from '../support/real-pulsar/pulsar-peer.js';
import { closedAfterTest } from '../support/closed-after-test.js';

function clientOf({ serviceUrl }: SharedPulsar): WireClient {
  return closedAfterTest(new WireClient({ serviceUrl }));
}

function subscribe(
  pulsar: SharedPulsar,
  topic: string,
  options: Partial<WireSubscribeOptions> = {},
): Promise<Subscription> {
  return clientOf(pulsar).subscribe({ topics: [topic], subscription: 's', ...options });
}

const even = <T>(list: readonly T[]): readonly T[] => list.filter((_, index) => index % 2 === 0);

for (const { client, test } of CLIENTS) {
  const shared = { subscription: 's', type: 'shared' } as const;
  const exclusive = { subscription: 's', type: 'exclusive' } as const;

  test(`${client} does not get the messages of a batch that were acknowledged here`, async ({ pulsar, peer }) => {
    const topic = pulsar.newTopic();
    await peer.produce(pulsar.serviceUrl, topic, numbered(10), { batching: 'on' });
    const subscription = await subscribe(pulsar, topic);
    const messages = await receive(subscription, 10);
    await subscription.acknowledge(even(messages).map(({ id }) => id));
    await subscription.close();

    const rest = await (await peer.subscribe(pulsar.serviceUrl, topic, shared)).receive(5);

    expect(rest.map(({ batchIndex }) => batchIndex)).toEqual([1, 3, 5, 7, 9]);
  });

  test(`messages of a batch that ${client} acknowledged do not come here`, async ({ pulsar, peer }) => {
    const topic = pulsar.newTopic();
    const publisher = await clientOf(pulsar).publisher(topic);
    const bodies = numbered(10).map(({ value }) => ({ payload: Buffer.from(value), properties: {} }));
    await Promise.all(bodies.map((body) => publisher.publish(body, publisher.nextSequenceId())));
    const consumer = await peer.subscribe(pulsar.serviceUrl, topic, shared);
    await consumer.acknowledge(even(await consumer.receive(10)));
    await consumer.close();

    const rest = await receive(await subscribe(pulsar, topic), 5);

    expect(rest.map(({ id }) => id.batchIndex)).toEqual([1, 3, 5, 7, 9]);
  });

  test(`${client} goes on inside the batch up to which was acknowledged here`, async ({ pulsar, peer }) => {
    const topic = pulsar.newTopic();
    await peer.produce(pulsar.serviceUrl, topic, numbered(10), { batching: 'on', batchSize: 5 });
    const subscription = await subscribe(pulsar, topic, { type: 'exclusive' });
    await subscription.acknowledgeCumulative((await receive(subscription, 10))[6]!.id);
    await subscription.close();

    const rest = await (await peer.subscribe(pulsar.serviceUrl, topic, exclusive)).receive(3);

    expect(rest.map(({ value }) => String(value))).toEqual(['message 7', 'message 8', 'message 9']);
  });

  test(`what comes here begins inside the batch up to which ${client} acknowledged`, async ({ pulsar, peer }) => {
    const topic = pulsar.newTopic();
    await peer.produce(pulsar.serviceUrl, topic, numbered(10), { batching: 'on', batchSize: 5 });
    const consumer = await peer.subscribe(pulsar.serviceUrl, topic, exclusive);
    await consumer.acknowledgeCumulative((await consumer.receive(10))[6]!);
    await consumer.close();

    const rest = await receive(await subscribe(pulsar, topic, { type: 'exclusive' }), 3);

    expect(rest.map(textOf)).toEqual(['message 7', 'message 8', 'message 9']);
  });
}

const KEYS = Array.from({ length: 40 }, (_, index) => `key ${index}`);
/** When nobody receives anything for so long, nothing more comes. */
const STALLED_MS = 30_000;
/** Messages of each key from each producer. */
const TURNS = 4;

test('Key_Shared keeps the order of each key over consumers of this client, Java and Python, of which two join in the middle', async ({
  pulsar,
  java,
  python,
}) => {
  const topic = pulsar.newTopic();
  const options = { subscription: 's', type: 'key-shared', receiverQueueSize: 20 } as const;
  // Names decide which keys a consumer has: the same in each run.
  const here = (consumerName: string) => subscribe(pulsar, topic, { type: 'key-shared', prefetch: 20, consumerName });
  const arrivals = new Arrivals(3 * TURNS * KEYS.length);
  arrivals.takeHere('here', await here('here'));
  arrivals.takeThere('java', await java.subscribe(pulsar.serviceUrl, topic, { ...options, consumerName: 'java' }));
  arrivals.takeThere(
    'python',
    await python.subscribe(pulsar.serviceUrl, topic, { ...options, consumerName: 'python' }),
  );

  await java.produce(pulsar.serviceUrl, topic, turns(0));
  const publisher = await clientOf(pulsar).publisher(topic, {
    batching: { byKey: true, maxMessages: 2 * KEYS.length },
  });
  const receipts = turns(1).map(({ key, value }) =>
    publisher.publish({ payload: Buffer.from(value), key, properties: {} }, publisher.nextSequenceId()),
  );
  arrivals.takeHere('here, later', await here('here, later'));
  await Promise.all(receipts);
  const later = { ...options, consumerName: 'java, later' };
  const producing = python.produce(pulsar.serviceUrl, topic, turns(2));
  arrivals.takeThere('java, later', await java.subscribe(pulsar.serviceUrl, topic, later));
  await producing;
  await arrivals.all();

  const expected = Array.from({ length: 3 * TURNS }, (_, turn) => String(turn));
  expect(Object.fromEntries(arrivals.valuesByKey())).toEqual(Object.fromEntries(KEYS.map((key) => [key, expected])));
  expect([...arrivals.consumers()].sort()).toEqual(['here', 'here, later', 'java', 'java, later', 'python']);
}, 120_000);

/** What the producer of number `producer` sends: for each key in turn, values that go on where the one before ended. */
function turns(producer: number): { readonly key: string; readonly value: string }[] {
  const values = Array.from({ length: TURNS }, (_, turn) => String(producer * TURNS + turn));
  return values.flatMap((value) => KEYS.map((key) => ({ key, value })));
}

/**
 * What the consumers of a subscription get, in the order in which it was noted. A message is acknowledged only after it
 * was noted, so a later one of its key cannot reach another consumer before.
 */
class Arrivals {
  readonly #list: { readonly consumer: string; readonly key: string; readonly value: string }[] = [];
  readonly #expected: number;
  readonly #taking: Promise<void>[] = [];
  #lastMs = Date.now();

  constructor(expected: number) {
    this.#expected = expected;
  }

  takeHere(consumer: string, subscription: Subscription): void {
    this.#take(async () => {
      const messages = await receive(subscription, 5, 500);
      for (const message of messages) this.#note(consumer, message.key, textOf(message));
      await subscription.acknowledge(messages.map(({ id }) => id));
      return messages.length;
    });
  }

  takeThere(consumer: string, other: PeerConsumer): void {
    this.#take(async () => {
      const messages = await other.receive(5, 500);
      for (const { key, value } of messages) this.#note(consumer, key ?? undefined, String(value));
      await other.acknowledge(messages);
      return messages.length;
    });
  }

  /** Until all came and none more after them, or none came for long. */
  async all(): Promise<void> {
    await Promise.all(this.#taking);
  }

  consumers(): ReadonlySet<string> {
    return new Set(this.#list.map(({ consumer }) => consumer));
  }

  valuesByKey(): ReadonlyMap<string, readonly string[]> {
    const byKey = new Map<string, string[]>();
    for (const { key, value } of this.#list) byKey.set(key, [...(byKey.get(key) ?? []), value]);
    return byKey;
  }

  #note(consumer: string, key: unknown, value: string): void {
    this.#list.push({ consumer, key: String(key), value });
    this.#lastMs = Date.now();
  }

  #take(some: () => Promise<number>): void {
    const taking = async (): Promise<void> => {
      let quiet = 0;
      // A consumer may have nothing for as long as others do not acknowledge: all of them wait for all messages.
      while (this.#list.length < this.#expected && Date.now() - this.#lastMs < STALLED_MS) await some();
      while (quiet < 2) quiet = (await some()) === 0 ? quiet + 1 : 0;
    };
    this.#taking.push(taking());
  }
}
