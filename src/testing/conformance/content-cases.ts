// What a message carries from publisher to subscriber, and what is refused.
import { compareMessageIds, sameMessageId } from '../../core/message-id.js';
import type { ConformanceCase } from './conformance-case.js';
import { expectEqual, expectRefused, expectTrue } from './expectations.js';

const bytes = (...values: readonly number[]): Uint8Array => Uint8Array.from(values);
const textBytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const payloads: readonly ConformanceCase[] = [
  {
    title: 'every byte value of a payload arrives',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const payload = Uint8Array.from({ length: 256 }, (_, i) => i);
      await world.publish(topic, { payload });
      const message = await (await world.subscribe(topic)).takeOne();
      expectEqual(message.payload, payload, 'the payload');
    },
  },
  {
    title: 'a null value and an empty payload arrive as what they are',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, { payload: null, key: 'k' }, { payload: bytes(), key: 'k' });
      const messages = await (await world.subscribe(topic)).take(2);
      expectEqual(
        messages.map(({ payload }) => payload),
        [null, bytes()],
        'the payloads',
      );
    },
  },
  {
    title: 'a null value in a batch arrives as one',
    rules: [],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, { payload: null }, { payload: bytes() }, { payload: bytes(1) });
      const messages = await (await world.subscribe(topic)).take(3);
      expectEqual(
        messages.map(({ payload }) => payload),
        [null, bytes(), bytes(1)],
        'the payloads',
      );
    },
  },
  {
    title: 'a message of a megabyte arrives whole',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const payload = Uint8Array.from({ length: 1_000_000 }, (_, i) => (i * 31) % 251);
      await world.publish(topic, { payload }, 'next');
      const [message] = await (await world.subscribe(topic)).take(2);
      const received = message?.payload ?? bytes();
      const same = received.length === payload.length && payload.every((byte, i) => byte === received[i]);
      expectTrue(same, `the payload came changed, ${received.length} of ${payload.length} bytes`);
    },
  },
  {
    title: 'a message above the limit is refused for good, and the publisher goes on',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const publisher = await world.publisher(topic);
      const { maxMessageBytes } = await world.transport();
      const large = { payload: new Uint8Array(maxMessageBytes + 1), properties: {} };
      const publishing = publisher.publish(large, publisher.nextSequenceId());
      const error = await expectRefused(
        world.until(publishing, 'the refusal'),
        'MESSAGE_TOO_LARGE',
        'one byte too many',
      );
      expectTrue('retriable' in error && error.retriable === false, 'a message that is too large stays too large');
      await world.publish(topic, 'after');
      await (await world.subscribe(topic)).expectTexts('after');
    },
  },
  {
    title: 'properties count against the limit',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const publisher = await world.publisher(topic);
      const { maxMessageBytes } = await world.transport();
      const payload = new Uint8Array(maxMessageBytes - 1_000);
      const large = { payload, properties: { text: 'x'.repeat(1_001) } };
      const publishing = publisher.publish(large, publisher.nextSequenceId());
      await expectRefused(world.until(publishing, 'the refusal'), 'MESSAGE_TOO_LARGE', 'properties beyond the limit');
    },
  },
  {
    title: 'what the caller does to its bytes after publishing changes nothing',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const publisher = await world.publisher(topic);
      const payload = bytes(1, 2, 3);
      const properties = { name: 'before' };
      const publishing = publisher.publish({ payload, properties }, publisher.nextSequenceId());
      payload.fill(9);
      properties.name = 'after';
      await world.until(publishing, 'the receipt');
      const message = await (await world.subscribe(topic)).takeOne();
      expectEqual([message.payload, message.properties], [bytes(1, 2, 3), { name: 'before' }], 'what arrived');
    },
  },
  {
    title: 'what a handler does to the bytes of a delivery does not change what comes again',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, { payload: bytes(1, 2, 3) });
      const subscription = await world.subscribe(topic);
      const first = await subscription.takeOne();
      first.payload?.fill(9);
      await subscription.redeliver(first);
      expectEqual((await subscription.takeOne()).payload, bytes(1, 2, 3), 'the payload that came again');
    },
  },
];

const properties: readonly ConformanceCase[] = [
  {
    title: 'properties named like parts of an object are properties like any other',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const given: Record<string, string> = Object.assign(Object.create(null) as Record<string, string>, {
        length: '7',
        constructor: 'c',
        toString: 't',
        hasOwnProperty: 'h',
      });
      Object.defineProperty(given, '__proto__', { value: 'p', enumerable: true });
      await world.publish(topic, { properties: given });
      const message = await (await world.subscribe(topic)).takeOne();
      expectEqual(message.properties, given, 'the properties');
      expectEqual(Object.getPrototypeOf(message.properties), null, 'the prototype of the properties');
    },
  },
  {
    title: 'properties keep any text, and there may be many',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`name-${i}`, `value-${i}`]));
      const given = { ...many, empty: '', 'näme with space': 'Grüße, 世界 🎉', '': 'without a name' };
      await world.publish(topic, { properties: given });
      const message = await (await world.subscribe(topic)).takeOne();
      expectEqual(message.properties, given, 'the properties');
    },
  },
  {
    title: 'a message without properties has an empty set of them',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      expectEqual((await (await world.subscribe(topic)).takeOne()).properties, {}, 'the properties');
    },
  },
  {
    title: 'a key arrives as it was given, in text or in bytes, or not at all',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, { key: 'Grüße' }, { key: bytes(0, 255, 128) }, { key: '' }, 'no key');
      const messages = await (await world.subscribe(topic)).take(4);
      expectEqual(
        messages.map(({ key }) => key),
        ['Grüße', bytes(0, 255, 128), '', undefined],
        'the keys',
      );
    },
  },
  {
    title: 'an ordering key arrives in bytes, beside the key',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, { key: 'k', orderingKey: textBytes('order') }, { orderingKey: bytes(0, 200) }, 'none');
      const messages = await (await world.subscribe(topic)).take(3);
      expectEqual(
        messages.map(({ key, orderingKey }) => [key, orderingKey]),
        [
          ['k', textBytes('order')],
          [undefined, bytes(0, 200)],
          [undefined, undefined],
        ],
        'keys and ordering keys',
      );
    },
  },
  {
    title: 'the event time arrives as it was set',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, { eventTimeMs: 1_234_567_890_123 }, 'none');
      const messages = await (await world.subscribe(topic)).take(2);
      expectEqual(
        messages.map(({ eventTimeMs }) => eventTimeMs),
        [1_234_567_890_123, undefined],
        'event times',
      );
    },
  },
  {
    title: 'publish time and producer come with each message',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const beforeMs = world.clock.now();
      await world.publish(topic, 'a', 'b');
      const messages = await (await world.subscribe(topic)).take(2);
      for (const { publishTimeMs, producerName } of messages) {
        const within = publishTimeMs >= beforeMs && publishTimeMs <= world.clock.now();
        expectTrue(within, `publish time ${publishTimeMs} is not between ${beforeMs} and now`);
        expectTrue((producerName ?? '') !== '', 'the name of the producer is missing');
      }
      expectEqual(messages[0]?.producerName, messages[1]?.producerName, 'the producer of both');
    },
  },
];

const receipts: readonly ConformanceCase[] = [
  {
    title: 'a receipt names the message that arrives',
    rules: ['S-46: all four numbers of a message id make it equal'],
    async run(world) {
      const topic = await world.newTopic();
      const ids = await world.publish(topic, 'a', 'b', 'c');
      const messages = await (await world.subscribe(topic)).take(3);
      for (const [i, id] of ids.entries()) {
        const arrived = messages[i]?.id;
        expectTrue(arrived !== undefined && sameMessageId(id, arrived), `receipt ${i} names another message`);
        expectEqual(id.topic, topic, 'the topic of a receipt');
      }
    },
  },
  {
    title: 'later messages have greater ids',
    rules: ['S-46: message ids have an order'],
    async run(world) {
      const topic = await world.newTopic();
      const ids = await world.publish(topic, ...Array.from({ length: 20 }, (_, i) => String(i)));
      const sorted = ids.toSorted(compareMessageIds);
      expectEqual(sorted, ids, 'the ids in their order');
    },
  },
  {
    title: 'publishing at the same time keeps the order of the calls',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const publisher = await world.publisher(topic);
      const texts = Array.from({ length: 500 }, (_, i) => String(i));
      const publishing = texts.map((text) =>
        publisher.publish({ payload: textBytes(text), properties: {} }, publisher.nextSequenceId()),
      );
      const ids = await world.until(Promise.all(publishing), 'the receipts');
      expectEqual(
        new Set(ids.map(({ ledgerId, entryId, batchIndex }) => `${ledgerId}:${entryId}:${batchIndex}`)).size,
        500,
        'different ids',
      );
      await (await world.subscribe(topic, { prefetch: 1_000 })).expectTexts(...texts);
    },
  },
  {
    title: 'sequence ids rise, and only whole numbers are taken',
    rules: [],
    async run(world) {
      const publisher = await world.publisher(await world.newTopic());
      const [first, second] = [publisher.nextSequenceId(), publisher.nextSequenceId()];
      expectTrue(second > first && first >= 0, `sequence ids must rise from 0, got ${first} and ${second}`);
      const message = { payload: bytes(1), properties: {} };
      for (const wrong of [-1, 0.5, NaN]) {
        await expectRefused(publisher.publish(message, wrong), 'CONFIGURATION_INVALID', `sequence id ${wrong}`);
      }
    },
  },
];

export const contentCases: readonly ConformanceCase[] = [...payloads, ...properties, ...receipts];
