// Producer batches: several messages in one entry, acknowledged one by one, redelivered together.
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectEqual } from './expectations.js';

const TEXTS = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] as const;

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `${type}: messages of a batch that were acknowledged do not come again`,
    rules: ['A-11: in an ack set a bit that is set means still unacknowledged'],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, ...TEXTS);
      const first = await world.subscribe(topic, { type });
      const messages = await first.expectTexts(...TEXTS);
      await first.acknowledge(...messages.filter((_, index) => index % 2 === 0));
      await first.close();
      const second = await world.subscribe(topic, { type });
      const left = await second.expectTexts('1', '3', '5', '7', '9');
      expectEqual(
        left.map(({ id }) => [id.batchIndex, id.batchSize]),
        [1, 3, 5, 7, 9].map((index) => [index, 10]),
        'index and size of what was left',
      );
    },
  }),
  (type) => ({
    title: `${type}: a batch is done when all of its messages are acknowledged`,
    rules: ['A-11: the entry goes when none is left'],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, 'a', 'b', 'c');
      await world.publish(topic, 'next');
      const first = await world.subscribe(topic, { type });
      const [a, b, c] = await first.take(4);
      for (const message of [b, c, a]) await first.acknowledge(message);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('next');
      await second.expectQuiet();
    },
  }),
);

const cumulative: readonly ConformanceCase[] = forTypes(['exclusive', 'failover'], (type) => ({
  title: `${type}: a cumulative acknowledgement inside a batch covers its messages up to that one`,
  rules: [
    'A-11: the broker combines sets by AND',
    'A-12: a cumulative acknowledgement inside a batch covers that batch up to its message, and what lies before it',
  ],
  needs: ['producer-batches', 'cumulative-ack'],
  async run(world) {
    const topic = await world.newTopic();
    await world.publish(topic, 'before');
    await world.publishBatch(topic, ...TEXTS);
    const first = await world.subscribe(topic, { type });
    const messages = await first.take(11);
    await first.acknowledgeCumulative(messages[6]);
    await first.close();
    const second = await world.subscribe(topic, { type });
    await second.expectTexts('6', '7', '8', '9');
    await second.expectQuiet();
  },
}));

const redelivery: readonly ConformanceCase[] = forTypes(
  ['shared', 'key-shared'],
  (type) => ({
    title: `${type}: asking for one message of a batch brings all of the batch that is not acknowledged`,
    rules: ['N-22: the unit of redelivery is the entry; a batch index cannot be asked back alone'],
    needs: ['producer-batches', 'redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, 'a', 'b', 'c', 'd');
      const subscription = await world.subscribe(topic, { type });
      const [a, b] = await subscription.take(4);
      await subscription.acknowledge(b);
      await subscription.redeliver(a);
      expectEqual(countsOf(await subscription.expectTexts('a', 'c', 'd')), [1, 1, 1], 'redelivery counts');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: asking for all messages of a batch at once counts once`,
    rules: ['A-17: the count of an entry grows by one per redelivery request'],
    needs: ['producer-batches', 'redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type });
      await subscription.redeliver(...(await subscription.take(3)));
      expectEqual(countsOf(await subscription.expectTexts('a', 'b', 'c')), [1, 1, 1], 'redelivery counts');
    },
  }),
  (type) => ({
    title: `${type}: acknowledging one message of a batch resets the count of the batch`,
    rules: ["A-19: an acknowledgement, also of one message of a batch, resets the entry's count"],
    needs: ['producer-batches', 'redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type });
      await subscription.redeliver(...(await subscription.take(3)));
      const [a, b] = await subscription.take(3);
      await subscription.acknowledge(a);
      await subscription.redeliver(b);
      expectEqual(countsOf(await subscription.expectTexts('b', 'c')), [1, 1], 'redelivery counts');
    },
  }),
);

const others: readonly ConformanceCase[] = [
  {
    title: 'messages of a batch have ids of their own, in order',
    rules: ['S-46: all four numbers of a message id make it equal'],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      const published = await world.publishBatch(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic);
      const received = await subscription.expectTexts('a', 'b', 'c');
      const shown = received.map(({ id }) => [id.ledgerId, id.entryId, id.partition, id.batchIndex, id.topic]);
      const wanted = published.map((id) => [id.ledgerId, id.entryId, -1, id.batchIndex, topic]);
      expectEqual(shown, wanted, 'the ids that came');
      expectEqual(
        received.map(({ id }) => id.batchIndex),
        [0, 1, 2],
        'batch indexes',
      );
    },
  },
  {
    title: 'a message that is alone in its entry has no batch index',
    rules: ['S-46: all four numbers of a message id make it equal'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const { id } = await (await world.subscribe(topic)).takeOne();
      expectEqual([id.batchIndex, id.batchSize], [-1, 0], 'batch index and size');
    },
  },
  {
    title: 'an id without a batch index acknowledges the whole batch',
    rules: ['A-11: the entry goes when none is left'],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, 'a', 'b', 'c');
      const first = await world.subscribe(topic);
      const [a] = await first.take(3);
      if (a !== undefined) await first.port.acknowledge([{ ...a.id, batchIndex: -1, batchSize: 0 }]);
      await first.close();
      const second = await world.subscribe(topic);
      await second.expectQuiet();
    },
  },
  {
    title: 'each message of a batch has its own key, properties and event time',
    rules: [],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(
        topic,
        { key: 'k', properties: { one: '1' }, eventTimeMs: 1_000 },
        { properties: { two: '2' } },
      );
      const messages = await (await world.subscribe(topic)).take(2);
      expectEqual(
        messages.map(({ key, properties, eventTimeMs }) => [key, properties, eventTimeMs]),
        [
          ['k', { one: '1' }, 1_000],
          [undefined, { two: '2' }, undefined],
        ],
        'what the messages carry',
      );
    },
  },
  {
    title: 'a batch arrives whole where there is room for one message, and permits recover after it',
    rules: ['S-11: permits count messages, dispatch is by entry: a batch may take them below zero'],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 1 });
      await world.publishBatch(topic, ...TEXTS);
      await world.publishBatch(topic, ...TEXTS);
      await world.publish(topic, 'last');
      await subscription.expectTexts(...TEXTS, ...TEXTS, 'last');
    },
  },
  {
    title: 'of a batch that comes to a client with a prefetch of 0 the rest waits for who asks next',
    rules: [
      'G-11: a client that has no room for more than it asked for holds the rest of a batch for the next receive',
    ],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 0 });
      await world.publishBatch(topic, 'a', 'b', 'c');
      await world.publish(topic, 'd');
      const other = await world.subscribe(topic, { transport: await world.newTransport(), prefetch: 0 });
      const [a] = await subscription.expectTexts('a');
      await other.expectTexts('d');
      const [b, c] = await subscription.expectTexts('b', 'c');
      await subscription.acknowledge(a, b, c);
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a batch counts as one entry in the backlog and as its messages in what is unacknowledged',
    rules: ['S-11: permits count messages, dispatch is by entry'],
    needs: ['producer-batches', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      await world.publishBatch(topic, 'a', 'b', 'c', 'd');
      const [a] = await subscription.take(4);
      const before = await world.figures(topic);
      expectEqual([before.backlog, before.unacknowledged], [1, 4], 'backlog and unacknowledged before');
      await subscription.acknowledge(a);
      const after = await world.figures(topic);
      expectEqual([after.backlog, after.unacknowledged], [1, 3], 'backlog and unacknowledged after');
    },
  },
];

export const batchCases: readonly ConformanceCase[] = [...forEachType, ...cumulative, ...redelivery, ...others];
