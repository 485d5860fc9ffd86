// Partitioned topics, several topics in one subscription, and what closing means.
import type { SubscriptionState } from '../../ports/transport.js';
import type { ConformanceCase } from './conformance-case.js';
import { expectEqual, expectRefused, expectTrue, textsOf } from './expectations.js';

const textBytes = (text: string): Uint8Array => new TextEncoder().encode(text);
/** A message whose text is its key. Java's hash of a one-letter key is its code. */
const keyed = (key: string) => ({ key, payload: textBytes(key) });

const partitioned: readonly ConformanceCase[] = [
  {
    title: 'a key goes to the partition that Java’s clients choose',
    rules: ['S-40: partition N of a topic is the topic `<name>-partition-N`'],
    async run(world) {
      const topic = await world.newTopic(4);
      await world.publish(topic, ...['a', 'b', 'c', 'd', 'ab', 'Grüße'].map(keyed));
      const messages = await (await world.subscribe(topic)).take(6);
      const partitions = Object.fromEntries(messages.map(({ key, id }) => [String(key), id.partition]));
      // String.hashCode modulo 4: of 97, 98, 99, 100, 3105 and 69215351.
      expectEqual(partitions, { a: 1, b: 2, c: 3, d: 0, ab: 1, Grüße: 3 }, 'partitions by key');
      expectTrue(
        messages.every(({ id }) => id.topic === `${topic}-partition-${id.partition}`),
        'an id must name the topic of its partition',
      );
    },
  },
  {
    title: 'messages without a key go round the partitions',
    rules: [],
    async run(world) {
      const topic = await world.newTopic(3);
      const texts = Array.from({ length: 9 }, (_, i) => String(i));
      const ids = await world.publish(topic, ...texts);
      const perPartition = [0, 1, 2].map((partition) => ids.filter((id) => id.partition === partition).length);
      expectEqual(perPartition, [3, 3, 3], 'messages per partition');
      const subscription = await world.subscribe(topic);
      expectEqual(textsOf(await subscription.take(9)).sort(), texts, 'what arrived');
    },
  },
  {
    title: 'each partition keeps its order',
    rules: [],
    async run(world) {
      const topic = await world.newTopic(3);
      const rounds = Array.from({ length: 20 }, (_, i) => i);
      await world.publish(
        topic,
        ...rounds.flatMap((round) => ['a', 'b', 'c'].map((key) => ({ key, payload: textBytes(String(round)) }))),
      );
      const messages = await (await world.subscribe(topic, { prefetch: 6 })).take(60);
      for (const key of ['a', 'b', 'c']) {
        const texts = textsOf(messages.filter((message) => message.key === key));
        expectEqual(texts, rounds.map(String), `messages of key ${key}`);
      }
    },
  },
  {
    title: 'acknowledgements and redelivery requests reach the partition of their message',
    rules: ['S-42: acknowledgements and requests go to the topic of the message'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic(3);
      await world.publish(topic, ...['a', 'b', 'c', 'd'].map(keyed));
      const first = await world.subscribe(topic);
      const messages = await first.take(4);
      const of = (key: string) => messages.find((message) => message.key === key);
      await first.acknowledge(of('a'), of('b'));
      await first.redeliver(of('c'));
      const [again] = await first.expectTexts('c');
      expectEqual(again?.redeliveryCount, 1, 'the redelivery count');
      await first.close();
      const second = await world.subscribe(topic);
      expectEqual(textsOf(await second.take(2)).sort(), ['c', 'd'], 'what was left');
      await second.expectQuiet();
    },
  },
  {
    title: 'a cumulative acknowledgement covers its own partition only',
    rules: ['S-25: a cumulative acknowledgement moves the mark-delete position of its topic'],
    needs: ['cumulative-ack'],
    async run(world) {
      const topic = await world.newTopic(2);
      await world.publish(topic, ...['a', 'b', 'a', 'b'].map(keyed));
      const first = await world.subscribe(topic, { type: 'exclusive' });
      const ofA = (await first.take(4)).filter(({ key }) => key === 'a');
      await first.acknowledgeCumulative(ofA[1]);
      await first.close();
      const second = await world.subscribe(topic, { type: 'exclusive' });
      await second.expectTexts('b', 'b');
      await second.expectQuiet();
    },
  },
  {
    title: 'exclusive: a redelivery request rewinds all partitions',
    rules: ['N-31: on Exclusive and Failover a request for redelivery sends everything unacknowledged again'],
    async run(world) {
      const topic = await world.newTopic(2);
      await world.publish(topic, ...['a', 'b', 'c', 'd'].map(keyed));
      const subscription = await world.subscribe(topic, { type: 'exclusive' });
      const [message] = await subscription.take(4);
      await subscription.redeliver(message);
      expectEqual(textsOf(await subscription.take(4)).sort(), ['a', 'b', 'c', 'd'], 'what came again');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'one partition can be subscribed to by its name',
    rules: ['S-40: partition N of a topic is the topic `<name>-partition-N`'],
    async run(world) {
      const topic = await world.newTopic(2);
      const subscription = await world.subscribe(`${topic}-partition-1`);
      await world.publish(topic, ...['a', 'b', 'c'].map(keyed));
      await subscription.expectTexts('a', 'c');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a partition that a topic does not have is refused',
    rules: ['S-40: partition N of a topic is the topic `<name>-partition-N`'],
    async run(world) {
      const topic = await world.newTopic(2);
      const opening = world.subscribe(`${topic}-partition-7`);
      await expectRefused(world.until(opening, 'the refusal'), 'TOPIC_NOT_FOUND', 'partition 7 of 2');
    },
  },
  {
    title: 'the prefetch is shared by the partitions',
    rules: ['S-10: without permits nothing is sent'],
    async run(world) {
      const topic = await world.newTopic(4);
      const slow = await world.subscribe(topic, { prefetch: 8 });
      const quick = await world.subscribe(topic, { transport: await world.newTransport() });
      await world.publish(topic, ...Array.from({ length: 80 }, (_, i) => String(i)));
      const others = await quick.takeUntilQuiet();
      const held = 80 - others.length;
      expectTrue(held <= 8, `a client with a prefetch of 8 holds ${held}`);
      await slow.take(held);
    },
  },
];

const several: readonly ConformanceCase[] = [
  {
    title: 'a subscription on several topics gets the messages of all, each with its topic',
    rules: ['S-42: order is kept per topic only'],
    async run(world) {
      const [one, two] = [await world.newTopic(), await world.newTopic(2)];
      const subscription = await world.subscribe([one, two]);
      await world.publish(one, 'one');
      await world.publish(two, keyed('a'));
      const messages = await subscription.take(2);
      const topics = Object.fromEntries(messages.map((message) => [textsOf([message])[0] ?? '', message.id.topic]));
      expectEqual(topics, { one, a: `${two}-partition-1` }, 'topics by text');
    },
  },
  {
    title: 'on several topics acknowledgements reach the topic of their message',
    rules: ['S-42: acknowledgements and requests go to the topic of the message'],
    async run(world) {
      const topics = [await world.newTopic(), await world.newTopic()];
      for (const topic of topics) await world.publish(topic, 'a', 'b');
      const first = await world.subscribe(topics);
      const messages = await first.take(4);
      await first.acknowledge(...messages.filter((message) => textsOf([message])[0] === 'a'));
      await first.close();
      const second = await world.subscribe(topics);
      await second.expectTexts('b', 'b');
      await second.expectQuiet();
    },
  },
  {
    title: 'a topic that is listed twice is subscribed to once',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe([topic, topic], { type: 'exclusive' });
      await subscription.expectTexts('a');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a subscription opens on all topics or on none',
    rules: [],
    async run(world) {
      const [free, taken] = [await world.newTopic(), await world.newTopic()];
      const transport = await world.newTransport();
      const holder = await world.subscribe(taken, { type: 'exclusive' });
      await expectRefused(
        world.subscribe([free, taken], { type: 'exclusive', transport }),
        'CONSUMER_BUSY',
        'a list with a topic that is taken',
      );
      await world.subscribe(free, { type: 'exclusive', transport });
      await holder.expectQuiet();
    },
  },
  {
    title: 'the state of each partition is reported at once, with the connection number of its messages',
    rules: [],
    async run(world) {
      const topic = await world.newTopic(2);
      const subscription = await world.subscribe(topic);
      const states = new Map<string, SubscriptionState>();
      subscription.port.onState((state) => states.set(state.topic, state));
      const shown = Object.fromEntries([...states].map(([name, { state }]) => [name, state]));
      const wanted = { [`${topic}-partition-0`]: 'connected', [`${topic}-partition-1`]: 'connected' };
      expectEqual(shown, wanted, 'the states');
      await world.publish(topic, keyed('a'));
      const message = await subscription.takeOne();
      expectEqual(states.get(message.id.topic)?.connection, message.connection, 'the connection number');
    },
  },
];

const closing: readonly ConformanceCase[] = [
  {
    title: 'a closed subscription says so, and may be closed again',
    rules: ['G-05: after closing, acknowledgements answer that it is closed'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const subscription = await world.subscribe(topic);
      const { id } = await subscription.takeOne();
      await subscription.close();
      await subscription.close();
      const { port } = subscription;
      await expectRefused(port.acknowledge([id]), 'ALREADY_CLOSED', 'acknowledge after close');
      await expectRefused(port.redeliver([id]), 'ALREADY_CLOSED', 'redeliver after close');
      await expectRefused(port.seek('earliest'), 'ALREADY_CLOSED', 'seek after close');
      expectEqual(await port.receive(new AbortController().signal), undefined, 'receive after close');
    },
  },
  {
    title: 'acknowledgements that are under way when the subscription closes are kept',
    rules: ['G-05: closing flushes acknowledgements'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, ...Array.from({ length: 20 }, (_, i) => String(i)));
      const first = await world.subscribe(topic);
      const messages = await first.take(20);
      const acknowledging = Promise.allSettled(messages.map(({ id }) => first.port.acknowledge([id])));
      await first.close();
      await world.until(acknowledging, 'the acknowledgements');
      const second = await world.subscribe(topic);
      await second.expectQuiet();
    },
  },
  {
    title: 'a closed transport closes what was opened on it and opens nothing more',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const transport = await world.newTransport();
      const subscription = await world.subscribe(topic, { transport });
      const publisher = await transport.publisher(topic);
      const receiving = subscription.port.receive(new AbortController().signal);
      await world.until(transport.close(), 'closing the transport');
      await world.until(transport.close(), 'closing it again');
      expectEqual(await world.until(receiving, 'the end of receive'), undefined, 'what receive gave');
      const publishing = publisher.publish({ payload: textBytes('a'), properties: {} }, publisher.nextSequenceId());
      await expectRefused(publishing, 'ALREADY_CLOSED', 'publish after close');
      await expectRefused(world.subscribe(topic, { transport }), 'ALREADY_CLOSED', 'subscribe after close');
      await expectRefused(transport.publisher(topic), 'ALREADY_CLOSED', 'publisher after close');
    },
  },
  {
    title: 'a closed publisher says so, and others of its topic go on',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const transport = await world.transport();
      const closed = await transport.publisher(topic);
      await world.until(closed.close(), 'closing a publisher');
      await world.until(closed.close(), 'closing it again');
      const publishing = closed.publish({ payload: textBytes('a'), properties: {} }, closed.nextSequenceId());
      await expectRefused(publishing, 'ALREADY_CLOSED', 'publish after close');
      await world.publish(topic, 'b');
      await (await world.subscribe(topic)).expectTexts('b');
    },
  },
];

export const topicCases: readonly ConformanceCase[] = [...partitioned, ...several, ...closing];
