// Where a subscription begins, who may connect to it, and what it keeps while nobody is connected.
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectRefused, expectTrue } from './expectations.js';

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `${type}: a new subscription at earliest gets what was published before it`,
    rules: ['S-27: a new subscription begins at earliest or latest'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic, { type, initialPosition: 'earliest' });
      await subscription.expectTexts('a', 'b', 'c');
    },
  }),
  (type) => ({
    title: `${type}: a new subscription at latest gets only what is published after it is open`,
    rules: ['S-27: a new subscription begins at earliest or latest'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'before');
      const subscription = await world.subscribe(topic, { type, initialPosition: 'latest' });
      await world.publish(topic, 'after');
      await subscription.expectTexts('after');
      await subscription.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: what was not acknowledged comes again to the next consumer, in order and uncounted`,
    rules: [
      'S-24: when the last consumer leaves nothing is acknowledged and delivery begins again later',
      'A-18: closing does not count as a redelivery',
    ],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const first = await world.subscribe(topic, { type });
      await first.take(3);
      await first.close();
      const second = await world.subscribe(topic, { type });
      const again = await second.expectTexts('a', 'b', 'c');
      expectTrue(
        countsOf(again).every((count) => count === 0),
        `closing was counted: ${countsOf(again).join(', ')}`,
      );
    },
  }),
);

const forExclusive: readonly ConformanceCase[] = [
  {
    title: 'exclusive: a second consumer is refused, the first goes on',
    rules: ['S-01: Exclusive takes one consumer; a second is refused'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await world.subscribe(topic, { type: 'exclusive' });
      const transport = await world.newTransport();
      const error = await expectRefused(
        world.subscribe(topic, { type: 'exclusive', transport }),
        'CONSUMER_BUSY',
        'a second exclusive consumer',
      );
      expectTrue('retriable' in error && error.retriable === true, 'a busy subscription can be tried again later');
      await world.publish(topic, 'a');
      await first.expectTexts('a');
    },
  },
  {
    title: 'exclusive: when the consumer has closed, another one may connect',
    rules: ['S-01: Exclusive takes one consumer; a second is refused'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await world.subscribe(topic, { type: 'exclusive' });
      await first.close();
      const second = await world.subscribe(topic, { type: 'exclusive', transport: await world.newTransport() });
      await world.publish(topic, 'a');
      await second.expectTexts('a');
    },
  },
];

const forMixedTypes: readonly ConformanceCase[] = [
  ['shared', 'exclusive'] as const,
  ['exclusive', 'shared'] as const,
  ['failover', 'exclusive'] as const,
  ['key-shared', 'shared'] as const,
].map(([connected, other]) => ({
  title: `a ${other} consumer is refused while a ${connected} one is connected`,
  rules: ['K-07: a second consumer must ask for the same type, else the subscription is busy'],
  async run(world) {
    const topic = await world.newTopic();
    const first = await world.subscribe(topic, { type: connected });
    const transport = await world.newTransport();
    await expectRefused(world.subscribe(topic, { type: other, transport }), 'CONSUMER_BUSY', `a ${other} consumer`);
    await world.publish(topic, 'a');
    const [message] = await first.expectTexts('a');
    await first.acknowledge(message);
  },
}));

const others: readonly ConformanceCase[] = [
  {
    title: 'the type of a subscription may change while nobody is connected',
    rules: ['S-05: the type may change while nobody is connected'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const shared = await world.subscribe(topic, { type: 'shared' });
      const [a] = await shared.take(2);
      await shared.acknowledge(a);
      await shared.close();
      const exclusive = await world.subscribe(topic, { type: 'exclusive' });
      await exclusive.expectTexts('b');
    },
  },
  {
    title: 'an existing subscription ignores the initial position',
    rules: ['S-27: an existing subscription ignores the setting'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await world.subscribe(topic, { initialPosition: 'earliest' });
      await first.close();
      await world.publish(topic, 'a');
      const second = await world.subscribe(topic, { initialPosition: 'latest' });
      await second.expectTexts('a');
    },
  },
  {
    title: 'messages wait for a subscription while nobody is connected',
    rules: ['S-24: delivery begins again when someone connects'],
    async run(world) {
      const topic = await world.newTopic();
      const first = await world.subscribe(topic);
      await first.close();
      await world.publish(topic, 'a', 'b');
      const second = await world.subscribe(topic);
      await second.expectTexts('a', 'b');
    },
  },
  {
    title: 'a short name stands for a topic of the default namespace',
    rules: ['S-41: `t` and `tenant/namespace/t` are short for `persistent://...`'],
    async run(world) {
      const topic = await world.newTopic();
      const [, tenantAndMore = ''] = topic.split('://');
      const short = tenantAndMore.replace('public/default/', '');
      const one = await world.subscribe(short, { subscription: 'one' });
      const two = await world.subscribe(tenantAndMore, { subscription: 'two' });
      await world.publish(short, 'a');
      await world.publish(topic, 'b');
      for (const subscription of [one, two]) {
        const messages = await subscription.expectTexts('a', 'b');
        expectTrue(
          messages.every(({ id }) => id.topic === topic),
          'an id names its topic in full',
        );
      }
    },
  },
  {
    title: 'a name of another number of parts is refused',
    rules: ['S-41: other numbers of parts are errors'],
    async run(world) {
      const transport = await world.transport();
      for (const name of ['tenant/t', 'persistent://t', 'persistent://tenant/t', 'http://tenant/namespace/t', '']) {
        await expectRefused(world.subscribe(name), 'TOPIC_NAME_INVALID', `a subscription on "${name}"`);
        await expectRefused(transport.publisher(name), 'TOPIC_NAME_INVALID', `a publisher on "${name}"`);
      }
    },
  },
  {
    title: 'each subscription of a topic gets every message',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const billing = await world.subscribe(topic, { subscription: 'billing' });
      const shipping = await world.subscribe(topic, { subscription: 'shipping', type: 'exclusive' });
      await world.publish(topic, 'a', 'b');
      await billing.expectTexts('a', 'b');
      await shipping.expectTexts('a', 'b');
    },
  },
  {
    title: 'an acknowledgement counts for its own subscription only',
    rules: [],
    async run(world) {
      const topic = await world.newTopic();
      const billing = await world.subscribe(topic, { subscription: 'billing' });
      const shipping = await world.subscribe(topic, { subscription: 'shipping' });
      await world.publish(topic, 'a');
      await billing.acknowledge(await billing.takeOne());
      await shipping.takeOne();
      await shipping.close();
      const again = await world.subscribe(topic, { subscription: 'shipping' });
      await again.expectTexts('a');
    },
  },
  {
    title: 'a redelivery request counts for its own subscription only',
    rules: ['A-16: counts belong to a subscription'],
    needs: ['redelivery-count'],
    async run(world) {
      const topic = await world.newTopic();
      const billing = await world.subscribe(topic, { subscription: 'billing' });
      const shipping = await world.subscribe(topic, { subscription: 'shipping', prefetch: 0 });
      await world.publish(topic, 'a');
      await billing.redeliver(await billing.takeOne());
      const [again] = await billing.expectTexts('a');
      const [other] = await shipping.expectTexts('a');
      expectTrue(again?.redeliveryCount === 1 && other?.redeliveryCount === 0, 'the counts must be 1 and 0');
    },
  },
];

export const openingCases: readonly ConformanceCase[] = [...forEachType, ...forExclusive, ...forMixedTypes, ...others];
