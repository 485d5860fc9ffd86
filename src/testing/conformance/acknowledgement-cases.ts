// Acknowledgement of single messages, one by one and cumulative.
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { expectEqual, expectRefused, textsOf } from './expectations.js';
import { takeFromAny } from './test-subscription.js';

const SINGLE_ACTIVE = ['exclusive', 'failover'] as const;
const MULTI = ['shared', 'key-shared'] as const;

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `${type}: what was acknowledged does not come again`,
    rules: ['S-25: acknowledged entries are passed over'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const first = await world.subscribe(topic, { type });
      await first.acknowledge(...(await first.take(2)));
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: acknowledgements beyond a gap are kept one by one`,
    rules: ['S-25: beyond the mark-delete position acknowledgements are kept one by one'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, '0', '1', '2', '3', '4', '5');
      const first = await world.subscribe(topic, { type });
      const messages = await first.take(6);
      await first.acknowledge(messages[1], messages[3], messages[4]);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('0', '2', '5');
      await second.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: acknowledging again is no error`,
    rules: ['A-15: acknowledging again is no error for the client'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic, { type });
      const [a, b] = await subscription.take(2);
      await subscription.acknowledge(a);
      await subscription.acknowledge(a);
      await subscription.acknowledge(a, b, a);
    },
  }),
);

const cumulative: readonly ConformanceCase[] = forTypes(
  SINGLE_ACTIVE,
  (type) => ({
    title: `${type}: a cumulative acknowledgement covers everything up to its message`,
    rules: ['S-25: a cumulative acknowledgement moves the mark-delete position'],
    needs: ['cumulative-ack'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c', 'd');
      const first = await world.subscribe(topic, { type });
      const messages = await first.take(4);
      await first.acknowledgeCumulative(messages[2]);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('d');
      await second.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: a cumulative acknowledgement takes in what was acknowledged beyond it`,
    rules: ['S-25: the mark-delete position is the end of the first unbroken run of acknowledged entries'],
    needs: ['cumulative-ack'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c', 'd');
      const first = await world.subscribe(topic, { type });
      const messages = await first.take(4);
      await first.acknowledge(messages[2]);
      await first.acknowledgeCumulative(messages[1]);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('d');
      await second.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: a cumulative acknowledgement of an earlier message takes nothing back`,
    rules: ['A-15: acknowledging again is no error for the client'],
    needs: ['cumulative-ack'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const first = await world.subscribe(topic, { type });
      const messages = await first.take(3);
      await first.acknowledgeCumulative(messages[1]);
      await first.acknowledgeCumulative(messages[0]);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('c');
    },
  }),
);

const multi: readonly ConformanceCase[] = forTypes(
  MULTI,
  (type) => ({
    title: `${type}: cumulative acknowledgement is refused and acknowledges nothing`,
    rules: ['A-13: cumulative acknowledgement belongs to Exclusive and Failover only'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const first = await world.subscribe(topic, { type });
      const [, b] = await first.take(2);
      await expectRefused(first.acknowledgeCumulative(b), 'NOT_SUPPORTED', `acknowledgeCumulative on ${type}`);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('a', 'b');
    },
  }),
  (type) => ({
    title: `${type}: a consumer may acknowledge what another one holds`,
    rules: ['A-14: any consumer may acknowledge a message that another one holds'],
    async run(world) {
      const topic = await world.newTopic();
      const one = await world.subscribe(topic, { type });
      const two = await world.subscribe(topic, { type, transport: await world.newTransport() });
      await world.publish(topic, ...Array.from({ length: 20 }, (_, i) => ({ key: `key-${i}` })));
      const [ofOne = [], ofTwo = []] = await takeFromAny(world, [one, two], 20);
      await one.acknowledge(...ofTwo);
      await two.acknowledge(...ofOne);
      await one.close();
      await two.close();
      const next = await world.subscribe(topic, { type });
      await next.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: an acknowledgement overtakes a redelivery that waits for permits`,
    rules: ['S-21: replay passes over what was acknowledged meanwhile'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic, { type, prefetch: 0 });
      const a = await subscription.takeOne();
      await subscription.redeliver(a);
      await subscription.acknowledge(a);
      await subscription.expectTexts('b');
      await subscription.expectQuiet();
    },
  }),
);

const others: readonly ConformanceCase[] = [
  {
    title: 'an id acknowledges its message also after the subscription was opened again',
    rules: ['A-15: an acknowledgement needs no pending delivery'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const first = await world.subscribe(topic);
      const [a] = await first.take(2);
      await first.close();
      const second = await world.subscribe(topic, { prefetch: 0 });
      await second.acknowledge(a);
      await second.expectTexts('b');
      await second.expectQuiet();
    },
  },
  {
    title: 'a list of ids with one of a foreign topic fails before anything is acknowledged',
    rules: ['G-04: a list of ids with one that cannot be meant fails before anything is acknowledged'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const first = await world.subscribe(topic);
      const { id } = await first.takeOne();
      const foreign = { ...id, topic: await world.newTopic() };
      await expectRefused(first.port.acknowledge([id, foreign]), 'MESSAGE_ID_INVALID', 'a foreign id');
      await first.close();
      const second = await world.subscribe(topic);
      await second.expectTexts('a');
    },
  },
  {
    title: 'what is no list, no message id and no signal is refused by name, and nothing is acknowledged',
    rules: ['G-04: a list of ids with one that cannot be meant fails before anything is acknowledged'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a');
      const first = await world.subscribe(topic);
      const [a] = await first.expectTexts('a');
      const { port } = first;
      for (const wrong of [undefined, 5, [a?.id, null], [a?.id, 'b']] as never[]) {
        await expectRefused(port.acknowledge(wrong), 'MESSAGE_ID_INVALID', `acknowledging ${String(wrong)}`);
        await expectRefused(port.redeliver(wrong), 'MESSAGE_ID_INVALID', `asking back ${String(wrong)}`);
      }
      await expectRefused(port.receive(undefined as never), 'CONFIGURATION_INVALID', 'receiving without a signal');
      await first.close();
      await (await world.subscribe(topic)).expectTexts('a');
    },
  },
  {
    title: 'many messages are acknowledged by one call',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, ...Array.from({ length: 120 }, (_, i) => String(i)));
      const first = await world.subscribe(topic, { prefetch: 200 });
      const messages = await first.take(120);
      await first.acknowledge(...messages.filter((_, i) => i % 40 !== 7));
      await first.close();
      const second = await world.subscribe(topic);
      expectEqual(textsOf(await second.take(3)), ['7', '47', '87'], 'what was left');
      await second.expectQuiet();
    },
  },
  {
    title: 'acknowledgements made at the same time are all kept',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, ...Array.from({ length: 50 }, (_, i) => String(i)));
      const first = await world.subscribe(topic);
      const messages = await first.take(50);
      await Promise.all(messages.map((message) => first.acknowledge(message)));
      await first.close();
      const second = await world.subscribe(topic);
      await second.expectQuiet();
    },
  },
  {
    title: 'the broker has an acknowledgement once its promise has resolved',
    rules: ['A-09: an acknowledgement is sent at once, and its promise resolves when the broker has it'],
    needs: ['ack-receipts', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic);
      const [a, , c] = await subscription.take(3);
      await subscription.acknowledge(a, c);
      expectEqual((await world.figures(topic)).unacknowledged, 1, 'messages that the consumer still holds');
    },
  },
];

export const acknowledgementCases: readonly ConformanceCase[] = [...forEachType, ...cumulative, ...multi, ...others];
