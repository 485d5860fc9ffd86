// Dead letters: after how many runs, what they carry, that the original goes only after them, and that they are kept.
import { formatMessageId } from '../../core/message-id.js';
import { poison, retry, success } from '../../core/outcome.js';
import { deadLetterTopicName } from '../../core/topic-name.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { expectEqual, textOf, textsOf } from './expectations.js';
import { WatchedCalls } from './watched-calls.js';
import { SUBSCRIPTION, WatchedHandler, expectSettled, json } from './watched-handler.js';

const encoder = new TextEncoder();

const letters: readonly ConformanceCase[] = [
  {
    title: 'runtime: a dead letter carries key bytes, ordering key, event time and properties of its original',
    rules: ['D-14: key, ordering key, payload and event time are copied', 'G-18: the dead letter carries the original'],
    async run(world) {
      const topic = await world.newTopic();
      const key = Uint8Array.of(0xff, 1, 2);
      const orderingKey = encoder.encode('o');
      await world.publish(topic, json('a', { key, orderingKey, eventTimeMs: 7_000, properties: { ä: '日本' } }));
      const handler = await WatchedHandler.start(world, topic, {}, () => poison('wrong'));
      await handler.until('a1');
      await handler.drain();
      const [letter] = await world.readDeadLetters(topic, SUBSCRIPTION);
      const carried = [letter?.key, letter?.orderingKey, letter?.eventTimeMs, letter?.properties['ä']];
      expectEqual(carried, [key, orderingKey, 7_000, '日本'], 'key, ordering key, event time and property');
    },
  },
  {
    title: 'runtime: a message that was a dead letter before keeps its first origin',
    rules: ['D-11: REAL_TOPIC and ORIGIN_MESSAGE_ID are set once and kept by later copies'],
    async run(world) {
      const topic = await world.newTopic();
      const properties = { REAL_TOPIC: 'persistent://public/default/first', ORIGIN_MESSAGE_ID: '(7,8,-1,-1)' };
      await world.publish(topic, json('a', { properties }));
      const handler = await WatchedHandler.start(world, topic, {}, () => poison('wrong'));
      await handler.until('a1');
      await handler.drain();
      const [letter] = await world.readDeadLetters(topic, SUBSCRIPTION);
      const { REAL_TOPIC, ORIGIN_MESSAGE_ID } = letter?.properties ?? {};
      expectEqual({ REAL_TOPIC, ORIGIN_MESSAGE_ID }, properties, 'the origin');
    },
  },
  {
    title: 'runtime: the origin id of a message of a batch on a partition names partition and index',
    rules: [
      'D-12: the origin id is written as ledger:entry:partition:index',
      'D-13: REAL_TOPIC is the full topic name without a partition',
      'D-07: a batch is given up message by message',
    ],
    needs: ['producer-batches'],
    async run(world) {
      const topic = await world.newTopic(1);
      const [, bad] = await world.publishBatch(topic, json('good'), json('bad'));
      const handler = await WatchedHandler.start(world, topic, {}, ({ payload }) =>
        payload === 'bad' ? poison('wrong') : success(),
      );
      await handler.until('good1', 'bad1');
      await handler.drain();
      const dead = await world.readDeadLetters(topic, SUBSCRIPTION);
      const { REAL_TOPIC, ORIGIN_MESSAGE_ID } = dead[0]?.properties ?? {};
      const origin = bad === undefined ? 'unknown' : formatMessageId(bad);
      expectEqual([textsOf(dead), REAL_TOPIC, ORIGIN_MESSAGE_ID], [['"bad"'], topic, origin], 'text and origin');
      expectEqual(/^\d+:\d+:0:1$/.test(origin), true, 'whether the id names partition 0 and index 1');
      await expectSettled(world, topic);
    },
  },
  ...forTypes(['shared', 'exclusive'], (type) => ({
    title: `runtime, ${type}: the original is acknowledged after the receipt of its dead letter, and not before`,
    rules: [
      'D-17: the dead letter is published, then the original acknowledged',
      'D-18: a dead letter that cannot be published now leaves its original, and is published later',
    ],
    async run(world) {
      const topic = await world.newTopic();
      const watched = new WatchedCalls(await world.newTransport(), deadLetterTopicName(topic, SUBSCRIPTION));
      watched.failing = true;
      const options = { type, transport: watched.transport };
      const handler = await WatchedHandler.start(world, topic, options, () => poison('wrong'));
      await world.publish(topic, json('a'));
      await world.eventually(() => watched.calls.length > 1, 'the second publish of the dead letter');
      expectEqual(watched.calls.includes('acknowledged'), false, 'whether the original went before');
      watched.failing = false;
      await world.eventually(() => watched.calls.includes('acknowledged'), 'the acknowledgement of the original');
      await handler.drain();
      const last = watched.calls.filter((call) => call !== 'failed');
      expectEqual(last, ['published', 'acknowledged'], 'the calls that succeeded');
      handler.expectRuns('a1');
      expectEqual(textsOf(await world.readDeadLetters(topic, SUBSCRIPTION)), ['"a"'], 'the dead letters');
      await expectSettled(world, topic, { type });
    },
  })),
];

const limits: readonly ConformanceCase[] = [
  ...forTypes(['shared', 'key-shared', 'exclusive', 'failover'], (type) => ({
    title: `runtime, ${type}: a limit of 1 means one call, then the dead letter`,
    rules: ['D-01: the limit counts deliveries to the handler, the first one included'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, json('a'));
      const handler = await WatchedHandler.start(world, topic, { type, redelivery: { maxDeliveries: 1 } }, () =>
        retry('never'),
      );
      await handler.until('a1');
      await handler.drain();
      handler.expectRuns('a1');
      const [letter] = await world.readDeadLetters(topic, SUBSCRIPTION);
      const cause = letter?.properties['pulsework-cause'];
      expectEqual([cause, letter?.properties['pulsework-attempt']], ['redeliveries-exhausted', '1'], 'why it died');
      await expectSettled(world, topic, { type });
    },
  })),
  ...forTypes(['shared', 'key-shared'], (type) => ({
    title: `runtime, ${type}: what the broker has counted past the limit already is still handled once`,
    rules: [
      'D-02: nothing is given up on its arrival, unseen by the handler',
      'A-18: a consumer that leaves gives its messages to others with their counts',
    ],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const before = await world.subscribe(topic, { type, subscription: SUBSCRIPTION });
      await world.publish(topic, json('a'));
      for (let failure = 0; failure < 4; failure++) await before.redeliver(await before.takeOne());
      await before.takeOne();
      const handler = await WatchedHandler.start(world, topic, { type }, () => retry('never'));
      await before.close();
      await world.eventually(() => handler.runs.length === 1, 'a run');
      await handler.drain();
      const dead = await world.readDeadLetters(topic, SUBSCRIPTION);
      expectEqual([textsOf(dead), handler.runs.length], [['"a"'], 1], 'dead letters and runs');
      expectEqual(handler.runs[0]?.delivery.redeliveryCount, 4, "the broker's count");
      await expectSettled(world, topic, { type });
    },
  })),
];

const kept: readonly ConformanceCase[] = [
  ...[0, 2].map((partitions): ConformanceCase => ({
    title: `what is published is kept for the initial subscription of its publisher, ${partitions} partitions`,
    rules: ['D-19: the initial subscription is made with the producer, at the earliest message'],
    async run(world) {
      const topic = await world.newTopic(partitions);
      const transport = await world.newTransport();
      const publisher = await world.until(transport.publisher(topic, { initialSubscription: 'desk' }), 'a publisher');
      const texts = ['a', 'b', 'c', 'd'];
      for (const text of texts) {
        const message = { payload: encoder.encode(text), key: text, properties: {} };
        await world.until(publisher.publish(message, publisher.nextSequenceId()), 'a receipt');
      }
      // A subscription that did not exist would begin after them.
      const desk = await world.subscribe(topic, { subscription: 'desk', initialPosition: 'latest' });
      expectEqual([...textsOf(await desk.take(4))].sort(), texts, 'what was kept');
    },
  })),
  {
    title: 'an initial subscription that is there already stays as it is',
    rules: ['D-19: only a subscription that does not exist is made'],
    async run(world) {
      const topic = await world.newTopic();
      const desk = await world.subscribe(topic, { subscription: 'desk' });
      await world.publish(topic, 'a', 'b');
      await desk.acknowledge(await desk.takeOne());
      const transport = await world.newTransport();
      const publisher = await world.until(transport.publisher(topic, { initialSubscription: 'desk' }), 'a publisher');
      await world.until(publisher.close(), 'closing the publisher');
      await desk.expectTexts('b');
      await desk.expectQuiet();
    },
  },
  {
    title: 'runtime: a dead letter is kept for who reads it later, from the first one on',
    rules: ['D-19: dead letters are kept for a subscription that is made with their producer'],
    async run(world) {
      const topic = await world.newTopic();
      const options = { deadLetterSubscription: 'desk' };
      const handler = await WatchedHandler.start(world, topic, options, () => poison('wrong'));
      await world.publish(topic, json('a'));
      await handler.until('a1');
      await handler.drain();
      const desk = await world.subscribe(deadLetterTopicName(topic, SUBSCRIPTION), {
        subscription: 'desk',
        initialPosition: 'latest',
      });
      expectEqual(textOf(await desk.takeOne()), '"a"', 'the dead letter');
      await desk.expectQuiet();
    },
  },
];

export const deadLetterCases: readonly ConformanceCase[] = [...letters, ...limits, ...kept];
