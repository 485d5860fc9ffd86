// Seek: by id, by time, to both ends, with several consumers and on several topics.
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectEqual, expectRefused, textsOf } from './expectations.js';
import { takeFromAny } from './test-subscription.js';

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `${type}: after a seek to earliest everything comes again, acknowledged or not`,
    rules: ['S-28: seek moves the subscription; everything acknowledged or pending after the target is forgotten'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type });
      const [a, b] = await subscription.take(3);
      await subscription.acknowledge(a, b);
      await subscription.seek('earliest');
      await subscription.expectTexts('a', 'b', 'c');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: after a seek to an id that message comes first`,
    rules: ['S-28: seek moves the subscription to the target, which is delivered'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c', 'd');
      const subscription = await world.subscribe(topic, { type });
      const messages = await subscription.take(4);
      await subscription.acknowledge(...messages);
      if (messages[1] !== undefined) await subscription.seek(messages[1].id);
      await subscription.expectTexts('b', 'c', 'd');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: after a seek to latest only what is published later comes`,
    rules: ['S-28: seek moves the subscription to the target'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type, prefetch: 1 });
      await subscription.takeOne();
      await subscription.seek('latest');
      await subscription.expectQuiet();
      await world.publish(topic, 'd');
      await subscription.expectTexts('d');
    },
  }),
);

const targets: readonly ConformanceCase[] = [
  {
    title: 'after a seek to a time the first message from then on comes first',
    rules: ['S-28: by time, the first entry with that publish time or a later one'],
    async run(world) {
      const topic = await world.newTopic();
      for (const text of ['a', 'b', 'c']) {
        await world.publish(topic, text);
        await world.elapse(50);
      }
      const subscription = await world.subscribe(topic);
      const messages = await subscription.take(3);
      await subscription.seek(new Date(messages[1]?.publishTimeMs ?? 0));
      await subscription.expectTexts('b', 'c');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a seek to a time before the first message begins there',
    rules: ['S-28: by time, where no entry is earlier, the first one'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic);
      await subscription.acknowledge(...(await subscription.take(2)));
      await subscription.seek(new Date(world.clock.now() - 3_600_000));
      await subscription.expectTexts('a', 'b');
    },
  },
  {
    title: 'a seek to a time after the last message waits for the next one',
    rules: ['S-28: an id or time after the last entry means the end'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic);
      await subscription.seek(new Date(world.clock.now() + 3_600_000));
      await subscription.takeUntilQuiet();
      await world.publish(topic, 'c');
      await subscription.expectTexts('c');
    },
  },
  {
    title: 'a seek into a batch begins at that message',
    rules: ['S-28: a seek into a batch starts at that index'],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, 'a', 'b', 'c', 'd');
      await world.publish(topic, 'next');
      const subscription = await world.subscribe(topic);
      const messages = await subscription.take(5);
      await subscription.acknowledge(...messages);
      if (messages[2] !== undefined) await subscription.seek(messages[2].id);
      await subscription.expectTexts('c', 'd', 'next');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a seek to what is no id, time or end is refused',
    rules: [],
    async run(world) {
      const { port } = await world.subscribe(await world.newTopic());
      await expectRefused(port.seek(new Date(NaN)), 'MESSAGE_ID_INVALID', 'an invalid date');
      await expectRefused(port.seek('first' as 'earliest'), 'MESSAGE_ID_INVALID', 'an unknown word');
    },
  },
];

const effects: readonly ConformanceCase[] = [
  {
    title: 'a seek forgets redelivery counts',
    rules: ['S-28: everything pending after the target is forgotten', 'A-19: the counts are reset'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic);
      await subscription.redeliver(await subscription.takeOne());
      await subscription.takeOne();
      await subscription.seek('earliest');
      expectEqual(countsOf(await subscription.expectTexts('a')), [0], 'the redelivery count');
    },
  },
  {
    title: 'after a seek the connection number of messages has grown',
    rules: ['S-28: consumers are disconnected and connect again'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic);
      const before = await subscription.takeOne();
      await subscription.seek('earliest');
      const after = await subscription.takeOne();
      expectEqual(after.connection > before.connection, true, 'whether the connection number grew');
    },
  },
  {
    title: 'what lay in the client before a seek is not handed on after it',
    rules: ['S-28: everything pending is forgotten'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c', 'd');
      const subscription = await world.subscribe(topic, { prefetch: 10 });
      await subscription.takeOne();
      await world.elapse(100);
      await subscription.seek('earliest');
      await subscription.expectTexts('a', 'b', 'c', 'd');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'acknowledgements made after a seek count from there',
    rules: ['S-28: everything acknowledged after the target is forgotten'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const first = await world.subscribe(topic);
      await first.acknowledge(...(await first.take(3)));
      await first.seek('earliest');
      const [, b] = await first.take(3);
      await first.acknowledge(b);
      await first.close();
      const second = await world.subscribe(topic);
      await second.expectTexts('a', 'c');
    },
  },
  {
    title: 'shared: after the seek of one consumer the others connect again and share what comes',
    rules: ['S-28: on Shared and Key_Shared all consumers are disconnected and connect again'],
    async run(world) {
      const topic = await world.newTopic();
      const one = await world.subscribe(topic, { prefetch: 10 });
      const two = await world.subscribe(topic, { prefetch: 10, transport: await world.newTransport() });
      const texts = Array.from({ length: 40 }, (_, i) => String(i).padStart(2, '0'));
      await world.publish(topic, ...texts);
      await takeFromAny(world, [one, two], 40);
      await one.seek('earliest');
      const again = await takeFromAny(world, [one, two], 40);
      expectEqual(textsOf(again.flat()).sort(), texts, 'what both got after the seek');
      await world.publish(topic, ...texts);
      await takeFromAny(world, [one, two], 40);
    },
  },
  {
    title: 'a seek past it forgets what waits for its time and what was asked back',
    rules: ['G-07: what skips messages drops the ones that wait for their time or for their redelivery, too'],
    needs: ['delayed-delivery', 'redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { prefetch: 1 });
      const deliverAtMs = world.clock.now() + 800;
      const late = { payload: new TextEncoder().encode('late'), deliverAtMs };
      await world.publish(topic, late, 'a', 'b', 'c');
      await subscription.redeliver(await subscription.takeOne());
      await subscription.seek('latest');
      await subscription.expectQuiet(1_300);
      await world.publish(topic, 'new');
      await subscription.expectTexts('new');
    },
  },
  {
    title: 'a seek to an end moves all partitions',
    rules: ['S-28: seek moves the subscription to the target'],
    async run(world) {
      const topic = await world.newTopic(3);
      await world.publish(topic, ...['a', 'b', 'c'].map((key) => ({ key, payload: new TextEncoder().encode(key) })));
      const subscription = await world.subscribe(topic);
      await subscription.acknowledge(...(await subscription.take(3)));
      await subscription.seek('earliest');
      expectEqual(textsOf(await subscription.take(3)).sort(), ['a', 'b', 'c'], 'what came again');
    },
  },
  {
    title: 'a seek to an id moves the partition that the id names',
    rules: ['G-03: seek on several topics needs an id that names its topic'],
    async run(world) {
      const topic = await world.newTopic(2);
      // Java's hash of a one-letter key is its code: `b` goes to partition 0, `a` to partition 1.
      await world.publish(topic, ...['a', 'b', 'a', 'b'].map((key) => ({ key })));
      const subscription = await world.subscribe(topic);
      const messages = await subscription.take(4);
      await subscription.acknowledge(...messages);
      const first = messages.find(({ key }) => key === 'a');
      if (first !== undefined) await subscription.seek(first.id);
      const again = await subscription.take(2);
      expectEqual(
        again.map(({ key }) => key),
        ['a', 'a'],
        'keys of what came again',
      );
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a seek on several topics to an id that names none of them is refused and moves nothing',
    rules: ['G-03: seek on several topics needs an id that names its topic'],
    async run(world) {
      const topics = [await world.newTopic(), await world.newTopic()];
      const subscription = await world.subscribe(topics);
      await world.publish(topics[0] ?? '', 'a');
      const { id } = await subscription.takeOne();
      await expectRefused(subscription.port.seek({ ...id, topic: '' }), 'MESSAGE_ID_INVALID', 'an id without a topic');
      await subscription.expectQuiet();
    },
  },
];

export const seekCases: readonly ConformanceCase[] = [...forEachType, ...targets, ...effects];
