// Redelivery of single messages on Shared and Key_Shared: order, counts when they grow and when they reset.
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectEqual, expectTrue, textOf, textsOf } from './expectations.js';
import { takeFromAny } from './test-subscription.js';

const forEachType: readonly ConformanceCase[] = forTypes(
  ['shared', 'key-shared'],
  (type) => ({
    title: `${type}: each request for redelivery counts one`,
    rules: ['A-17: the count of an entry grows by one per redelivery request, whatever its reason'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic, { type });
      for (const count of [0, 1, 2, 3]) {
        const message = await subscription.takeOne();
        expectEqual(message.redeliveryCount, count, 'the redelivery count');
        await subscription.redeliver(message);
      }
    },
  }),
  (type) => ({
    title: `${type}: only what was asked for comes again, and only its count grows`,
    rules: ['A-17: the count of an entry grows by one per redelivery request, whatever its reason'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type });
      const [, b] = await subscription.take(3);
      await subscription.redeliver(b);
      expectEqual(countsOf(await subscription.expectTexts('b')), [1], 'the redelivery count');
      await subscription.expectQuiet();
      await world.publish(topic, 'd');
      expectEqual(countsOf(await subscription.expectTexts('d')), [0], 'the redelivery count of a new message');
    },
  }),
  (type) => ({
    title: `${type}: what comes again goes before what is new, smallest position first`,
    rules: ['S-20: what must be delivered again goes out before anything new, smallest position first'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c', 'd', 'e');
      const subscription = await world.subscribe(topic, { type, prefetch: 0 });
      const [a, , c] = await subscription.take(3);
      await subscription.redeliver(c, a);
      await subscription.expectTexts('a', 'c', 'd', 'e');
    },
  }),
  (type) => ({
    title: `${type}: an id that is not pending at the asking consumer is ignored and not counted`,
    rules: ['S-22: ids that are not pending at the asking consumer are ignored'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const one = await world.subscribe(topic, { type });
      const two = await world.subscribe(topic, { type, transport: await world.newTransport() });
      await world.publish(topic, ...Array.from({ length: 20 }, (_, i) => ({ key: `key-${i}` })));
      const [ofOne = [], ofTwo = []] = await takeFromAny(world, [one, two], 20);
      await one.redeliver(...ofTwo);
      await one.expectQuiet();
      await two.expectQuiet();
      await one.redeliver(...ofOne);
      // On Shared they may come to either consumer.
      const again = (await takeFromAny(world, [one, two], ofOne.length)).flat();
      expectTrue(
        again.every(({ redeliveryCount }) => redeliveryCount === 1),
        `counts must be 1, got ${countsOf(again).join(', ')}`,
      );
    },
  }),
  (type) => ({
    title: `${type}: an acknowledged message is not asked back`,
    rules: [
      'S-22: ids that are not pending at the asking consumer are ignored',
      'N-26: a request for what is acknowledged meanwhile is harmless',
    ],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic, { type });
      const a = await subscription.takeOne();
      await subscription.acknowledge(a);
      await subscription.redeliver(a);
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: an id that is listed twice is asked for once`,
    rules: ['A-17: the count of an entry grows by one per redelivery request'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic, { type });
      const a = await subscription.takeOne();
      await subscription.redeliver(a, a);
      expectEqual(countsOf(await subscription.expectTexts('a')), [1], 'the redelivery count');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: the last consumer leaving resets the counts`,
    rules: ['A-19: the last consumer leaving resets the counts'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const first = await world.subscribe(topic, { type });
      await first.redeliver(await first.takeOne());
      await first.takeOne();
      await first.close();
      const second = await world.subscribe(topic, { type });
      expectEqual(countsOf(await second.expectTexts('a')), [0], 'the redelivery count');
    },
  }),
  (type) => ({
    title: `${type}: a consumer that leaves gives its messages to the others, counts unchanged`,
    rules: [
      'S-24: a consumer that leaves gives its entries to the others',
      'A-18: closing does not count as a redelivery',
    ],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const leaving = await world.subscribe(topic, { type });
      await world.publish(topic, 'a', 'b', 'c');
      const [a, b] = await leaving.take(3);
      await leaving.redeliver(a);
      await leaving.takeOne();
      await leaving.acknowledge(b);
      const staying = await world.subscribe(topic, { type, transport: await world.newTransport() });
      await leaving.close();
      expectEqual(countsOf(await staying.expectTexts('a', 'c')), [1, 0], 'redelivery counts');
      await staying.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: a message that still lies in the client when it is asked back is handed on once`,
    rules: ['N-33: copies that lie in the client leave it before the request is made'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const [, id] = await world.publish(topic, 'a', 'b', 'c');
      await subscription.expectTexts('a');
      await world.elapse(200);
      if (id !== undefined) await subscription.port.redeliver([id]);
      const messages = await subscription.take(2);
      expectEqual([...textsOf(messages)].sort(), ['b', 'c'], 'the messages that came');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: a message whose acknowledgement is under way does not come again for a request made after it`,
    rules: ['A-10: a message is not handed on again while its acknowledgement is on its way'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic, { type });
      const [a, b] = await subscription.take(2);
      await Promise.all([subscription.acknowledge(a), subscription.redeliver(a, b)]);
      await subscription.expectTexts('b');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: asking for everything counts also what only lies in the client`,
    rules: ["A-20: asking for everything back counts also what only lay in the client's queue"],
    needs: ['redelivery-count', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const ids = await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type });
      await subscription.takeOne();
      await world.eventually(async () => (await world.figures(topic)).unacknowledged === 3, 'all are in the client');
      await world.until(subscription.port.redeliver(ids), 'a request for redelivery');
      expectEqual(countsOf(await subscription.expectTexts('a', 'b', 'c')), [1, 1, 1], 'redelivery counts');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: the first consumer after a time without any finds what is left once, whatever was asked back`,
    rules: ['S-06: the first consumer of an empty subscription finds a fresh state: nothing replayed twice'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const texts = ['a', 'b', 'c', 'd', 'e', 'f'];
      await world.publish(topic, ...texts);
      const first = await world.subscribe(topic, { type, prefetch: 1 });
      const [a, b] = await first.take(2);
      await first.redeliver(a, b);
      await first.close();
      const second = await world.subscribe(topic, { type });
      expectEqual(countsOf(await second.expectTexts(...texts)), [0, 0, 0, 0, 0, 0], 'redelivery counts');
      await second.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: a steady stream of redelivery requests starves neither the old nor the new`,
    rules: ['S-20: what must be delivered again goes out before anything new', 'S-10: a client grants permits again'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, ...Array.from({ length: 10 }, (_, i) => String(i)));
      const subscription = await world.subscribe(topic, { type, prefetch: 4 });
      const counts = new Map<string, number>();
      // Each fails five times: 60 deliveries settle all ten.
      for (let left = 60; left > 0; left -= 1) {
        const message = await subscription.takeOne();
        counts.set(textOf(message), message.redeliveryCount);
        if (message.redeliveryCount < 5) await subscription.redeliver(message);
        else await subscription.acknowledge(message);
      }
      expectEqual([...counts.values()], new Array(10).fill(5), 'the last count of each message');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: asking back without end leaves the permits right`,
    rules: ['G-12: whatever the client drops gives its permit back', 'A-21: a request lowers what is unacknowledged'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type, prefetch: 2 });
      const ids = await world.publish(topic, 'a', 'b', 'c', 'd');
      await world.elapse(100);
      // Some lie in the client, some do not: either way nothing may be lost.
      for (let round = 0; round < 10; round++) {
        await subscription.port.redeliver(ids);
        await world.elapse(10);
      }
      // A copy that was on its way when it was asked back may come beside the new one.
      const messages = await subscription.takeUntilQuiet();
      expectEqual([...new Set(textsOf(messages))].sort(), ['a', 'b', 'c', 'd'], 'the messages that came');
      await subscription.acknowledge(...messages);
      await subscription.expectQuiet();
    },
  }),
);

const others: readonly ConformanceCase[] = [
  {
    title: 'shared: what one consumer gave back may go to another one',
    rules: ['S-20: what must be delivered again goes to anyone'],
    needs: ['flow-pause'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const one = await world.subscribe(topic, { prefetch: 0 });
      const a = await one.takeOne();
      const two = await world.subscribe(topic, { transport: await world.newTransport() });
      await one.redeliver(a);
      expectEqual(countsOf(await two.expectTexts('a')), [1], 'the redelivery count');
    },
  },
  {
    title: 'an empty list of ids asks for nothing',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic);
      await subscription.takeOne();
      await subscription.redeliver();
      await subscription.acknowledge();
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a redelivery request lowers what the consumer holds',
    rules: ["A-21: a redelivery request lowers the consumer's unacknowledged count"],
    needs: ['statistics'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic, { prefetch: 0 });
      const [a] = await subscription.take(2);
      await subscription.redeliver(a);
      await world.eventually(
        async () => (await world.figures(topic)).unacknowledged === 1,
        'one message less is unacknowledged',
      );
    },
  },
];

export const redeliveryCases: readonly ConformanceCase[] = [...forEachType, ...others];
