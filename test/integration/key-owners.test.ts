// Whose a key is on Key_Shared: a real Pulsar and the ring of this repository must say the same of every key, whoever is
// connected. Otherwise the embedded broker would show an order, and moves of keys, that production does not have.
import { describe, expect } from 'vitest';
import { HashRing, slotOf } from '../../src/broker/hash-ring.js';
import { murmur3 } from '../../src/core/key-hash.js';
import type { EncodedMessage, MessageKey } from '../../src/core/message.js';
import type { WireConsumer } from '../../src/wire.js';
import { WireClient } from '../../src/wire.js';
import { test } from '../support/real-pulsar/integration-test.js';
import { textOf } from '../support/received.js';

/** The same name twice, and one that is not ASCII: names are hashed too. */
const NAMES = ['c1', 'c2', 'c3', 'zähler-4', 'c2', 'consumer-with-a-long-name-6', 'c2'];
const PREFETCH = 1_000;

interface KeyedMessage {
  /** What the hash is made of. */
  readonly hashed: MessageKey;
  readonly message: EncodedMessage;
}

/** Text, bytes and ordering keys beside a key that must not count: 1,000 in all, an empty one of each among them. */
const KEYED: readonly KeyedMessage[] = [
  ...keyed(
    400,
    (n) => (n === 0 ? '' : `order-${n}`),
    (key) => ({ key }),
  ),
  ...keyed(
    50,
    (n) => `приказ-${n}-注文`,
    (key) => ({ key }),
  ),
  ...keyed(250, bytesOf, (key) => ({ key })),
  ...keyed(300, bytesOf, (orderingKey) => ({ orderingKey: orderingKey as Uint8Array, key: 'the same' })),
];

function keyed(
  count: number,
  keyOf: (n: number) => MessageKey,
  fieldsOf: (key: MessageKey) => Pick<EncodedMessage, 'key' | 'orderingKey'>,
): readonly KeyedMessage[] {
  return Array.from({ length: count }, (_, n) => {
    const hashed = keyOf(n);
    return { hashed, message: { payload: new Uint8Array(), properties: {}, ...fieldsOf(hashed) } };
  });
}

/** Up to 12 bytes, also such as are no text. */
function bytesOf(n: number): Uint8Array {
  return Uint8Array.from({ length: n % 13 }, (_, at) => (n * 31 + at * 97) % 256);
}

/** For each consumer of `names`, in their order, which of the messages are its own. */
function ownedByRing(names: readonly string[]): readonly (readonly number[])[] {
  const ring = new HashRing<{ readonly name: string }>();
  const owners = names.map((name) => ({ name }));
  for (const owner of owners) ring.add(owner);
  const owned = owners.map((): number[] => []);
  for (const [n, { hashed }] of KEYED.entries()) {
    const owner = ring.select(slotOf(murmur3(hashed)));
    owned[owners.findIndex((each) => each === owner)]?.push(n);
  }
  return owned;
}

/** Everything that each of the consumers gets; so many messages come in all. */
async function owned(consumers: readonly WireConsumer[]): Promise<readonly (readonly number[])[]> {
  const numbers = consumers.map((): number[] => []);
  let left = KEYED.length;
  const nothingLeft = new AbortController();
  await Promise.all(
    consumers.map(async (consumer, at) => {
      const signal = AbortSignal.any([nothingLeft.signal, AbortSignal.timeout(60_000)]);
      for (
        let message = await consumer.receive(signal);
        message !== undefined;
        message = await consumer.receive(signal)
      ) {
        numbers[at]?.push(Number(textOf(message)));
        if (--left === 0) nothingLeft.abort();
      }
    }),
  );
  return numbers;
}

describe('the owner of 1,000 keys', () => {
  test('is the one that the ring says, with 1 to 7 consumers (K-01, K-02, K-03, K-05)', async ({ pulsar }) => {
    expect(KEYED).toHaveLength(1_000);
    const client = new WireClient({ serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic('owners');
    // Each number of consumers is a subscription of its own; all of them are there before the first message.
    const subscriptions: WireConsumer[][] = [];
    for (let count = 1; count <= NAMES.length; count++) {
      const consumers: WireConsumer[] = [];
      for (const consumerName of NAMES.slice(0, count)) {
        const options = { topics: [topic], subscription: `of-${count}`, consumerName, prefetch: PREFETCH };
        consumers.push(await client.subscribe({ ...options, type: 'key-shared' }));
      }
      subscriptions.push(consumers);
    }
    const publisher = await client.publisher(topic, { batching: false });
    const receipts = KEYED.map(({ message }, n) =>
      publisher.publish({ ...message, payload: Buffer.from(String(n)) }, publisher.nextSequenceId()),
    );
    await Promise.all(receipts);

    for (const consumers of subscriptions) {
      const names = NAMES.slice(0, consumers.length);
      expect(await owned(consumers), names.join(', ')).toEqual(ownedByRing(names));
    }
    await client.close();
  });

  test('changes as the ring does when one leaves and one of its name comes (K-05)', async ({ pulsar }) => {
    const client = new WireClient({ serviceUrl: pulsar.serviceUrl });
    const topic = pulsar.newTopic('owners');
    const open = (consumerName: string): Promise<WireConsumer> =>
      client.subscribe({ topics: [topic], subscription: 's', type: 'key-shared', consumerName, prefetch: PREFETCH });
    const first = await open('same');
    const second = await open('same');
    const other = await open('other');
    await first.close();
    // The first index of the name is free again, and the next one of that name gets its points.
    const third = await open('same');
    const publisher = await client.publisher(topic, { batching: false });
    const receipts = KEYED.map(({ message }, n) =>
      publisher.publish({ ...message, payload: Buffer.from(String(n)) }, publisher.nextSequenceId()),
    );
    await Promise.all(receipts);

    expect(await owned([third, second, other])).toEqual(ownedByRing(['same', 'same', 'other']));
    await client.close();
  });
});
