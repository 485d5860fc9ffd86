// What is acknowledged in transactions: not sent while they are open, done once they are committed, free after an abort; and
// what is published and acknowledged in one, together.
import { TransportError } from '../../core/errors.js';
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { countsOf, expectEqual, expectRefused, textsOf } from './expectations.js';

const NEEDS = ['transactions'] as const;

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `${type}: what is acknowledged in a transaction does not come again once it is committed`,
    rules: ['T-16: a commit acknowledges'],
    needs: [...NEEDS, 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const first = await world.subscribe(topic, { type });
      const [a, , c] = await first.take(3);
      const transaction = await world.begin();
      await first.acknowledgeIn(transaction, a, c);
      await world.commit(transaction);
      await world.backlogIs(topic, 1);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('b');
      await second.expectQuiet();
    },
  }),
  (type) => ({
    title: `${type}: what is acknowledged in an open transaction goes to nobody else`,
    rules: ['T-15: a pending position is not dispatched'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const first = await world.subscribe(topic, { type });
      const [a] = await first.take(2);
      const transaction = await world.begin();
      await first.acknowledgeIn(transaction, a);
      await first.close();
      const second = await world.subscribe(topic, { type });
      await second.expectTexts('b');
      await second.expectQuiet();
      await world.abort(transaction);
    },
  }),
);

const multi: readonly ConformanceCase[] = forTypes(['shared', 'key-shared'], (type) => ({
  title: `${type}: after an abort what was acknowledged comes again by itself, counted, and nothing else does`,
  rules: ['T-17: positions are freed and redelivered, the count raised on Shared and Key_Shared'],
  needs: NEEDS,
  async run(world) {
    const topic = await world.newTopic();
    await world.publish(topic, 'a', 'b', 'c');
    const subscription = await world.subscribe(topic, { type });
    const [a, , c] = await subscription.take(3);
    const transaction = await world.begin();
    await subscription.acknowledgeIn(transaction, a, c);
    await subscription.expectQuiet();
    await world.abort(transaction);
    const again = await subscription.take(2);
    expectEqual(textsOf(again).toSorted(), ['a', 'c'], 'what came again');
    expectEqual(countsOf(again), [1, 1], 'its redelivery counts');
    await subscription.acknowledge(...again);
    await subscription.expectQuiet();
  },
}));

const single: readonly ConformanceCase[] = forTypes(['exclusive', 'failover'], (type) => ({
  title: `${type}: after an abort what was acknowledged comes again when it is asked for`,
  rules: ['T-17: positions are freed; on Exclusive and Failover everything unacknowledged is read again'],
  needs: NEEDS,
  async run(world) {
    const topic = await world.newTopic();
    await world.publish(topic, 'a', 'b', 'c');
    const subscription = await world.subscribe(topic, { type });
    const [a] = await subscription.take(3);
    const transaction = await world.begin();
    await subscription.acknowledgeIn(transaction, a);
    await world.abort(transaction);
    // Moments later: brokers of Pulsar 4.0.7 send everything again by themselves, too.
    await subscription.takeUntilQuiet();
    await subscription.redeliver(a);
    await subscription.expectTexts('a', 'b', 'c');
    await subscription.expectQuiet();
  },
}));

const together: readonly ConformanceCase[] = [
  {
    title: 'what is published and acknowledged in one transaction counts together',
    rules: ['T-07: what is published is shown after the commit', 'T-16: what is acknowledged counts after the commit'],
    needs: [...NEEDS, 'statistics'],
    async run(world) {
      const [input, output] = [await world.newTopic(), await world.newTopic()];
      await world.publish(input, 'order');
      const [orders, invoices] = [await world.subscribe(input), await world.subscribe(output)];
      const [order] = await orders.take(1);
      const aborted = await world.begin();
      await world.publishIn(aborted, output, 'no invoice');
      await orders.acknowledgeIn(aborted, order);
      await world.abort(aborted);
      const [again] = await orders.expectTexts('order');
      const committed = await world.begin();
      await world.publishIn(committed, output, 'invoice');
      await orders.acknowledgeIn(committed, again);
      await invoices.expectQuiet();
      await world.commit(committed);
      await invoices.expectTexts('invoice');
      await world.backlogIs(input, 0);
      await orders.expectQuiet();
    },
  },
  {
    title: 'one transaction acknowledges on several topics and subscriptions',
    rules: ['T-16: on each subscription'],
    needs: [...NEEDS, 'statistics'],
    async run(world) {
      const topics = [await world.newTopic(), await world.newTopic()];
      for (const topic of topics) await world.publish(topic, 'a');
      const both = await world.subscribe(topics);
      const other = await world.subscribe(topics[0] ?? '', { subscription: 'other', type: 'exclusive' });
      const transaction = await world.begin();
      await both.acknowledgeIn(transaction, ...(await both.take(2)));
      await other.acknowledgeIn(transaction, ...(await other.take(1)));
      await world.commit(transaction);
      for (const topic of topics) await world.backlogIs(topic, 0);
      await world.backlogIs(topics[0] ?? '', 0, 'other');
    },
  },
];

const conflicts: readonly ConformanceCase[] = [
  {
    title: 'a message in two transactions is a conflict, and the one that was refused cannot be committed',
    rules: [
      'T-10: a position that is pending in any transaction is a conflict',
      'T-03: where something failed, a commit aborts instead',
    ],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic);
      const [a, b] = await subscription.take(2);
      const [one, other] = [await world.begin(), await world.begin()];
      await subscription.acknowledgeIn(one, a);
      await subscription.acknowledgeIn(other, b);
      await expectRefused(subscription.acknowledgeIn(other, a), 'TRANSACTION_CONFLICT', 'the second one');
      await expectRefused(other.commit(), 'TRANSACTION_ABORTED', 'its commit');
      expectEqual(other.state, 'aborted', 'its state');
      await subscription.expectTexts('b');
      await world.commit(one);
      await subscription.expectQuiet();
    },
  },
  {
    title: 'a message twice in one transaction, or acknowledged before it, is a conflict',
    rules: ['T-10: the same transaction included; also what was acknowledged already'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic);
      const [a, b] = await subscription.take(2);
      const [one, other] = [await world.begin(), await world.begin()];
      await subscription.acknowledgeIn(one, a);
      await expectRefused(subscription.acknowledgeIn(one, a), 'TRANSACTION_CONFLICT', 'the second time');
      await subscription.acknowledge(b);
      await expectRefused(subscription.acknowledgeIn(other, b), 'TRANSACTION_CONFLICT', 'what is acknowledged');
      await world.abort(one);
      await world.abort(other);
      await subscription.expectTexts('a');
    },
  },
  {
    title: 'of a list with a conflict nothing is acknowledged',
    rules: ['T-11: the list is all or nothing'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic);
      const [a, b] = await subscription.take(2);
      const [one, list, third] = [await world.begin(), await world.begin(), await world.begin()];
      await subscription.acknowledgeIn(one, b);
      await expectRefused(subscription.acknowledgeIn(list, a, b), 'TRANSACTION_CONFLICT', 'the list');
      await subscription.acknowledgeIn(third, a);
      await world.commit(third);
      await world.abort(list);
      await world.abort(one);
      await subscription.expectTexts('b');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'what is acknowledged outside of its open transaction stays so after an abort',
    rules: ['T-14: a normal acknowledgement of a pending position succeeds and takes it out'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic);
      const [a, b] = await subscription.take(2);
      const transaction = await world.begin();
      await subscription.acknowledgeIn(transaction, a, b);
      await subscription.acknowledge(a);
      await world.abort(transaction);
      await subscription.expectTexts('b');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'messages of one batch can be in several transactions, and each ends for itself',
    rules: [
      'T-10: of a batch there is a conflict only when the index sets overlap',
      'T-17: what was aborted comes again',
    ],
    needs: [...NEEDS, 'producer-batches'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publishBatch(topic, '0', '1', '2', '3');
      const subscription = await world.subscribe(topic);
      const [zero, one, two, three] = await subscription.expectTexts('0', '1', '2', '3');
      const [committed, aborted, refused] = [await world.begin(), await world.begin(), await world.begin()];
      await subscription.acknowledgeIn(committed, zero, two);
      await subscription.acknowledgeIn(aborted, one);
      await expectRefused(subscription.acknowledgeIn(refused, two), 'TRANSACTION_CONFLICT', 'an index that overlaps');
      await subscription.acknowledge(three);
      await world.abort(refused);
      await world.commit(committed);
      await world.elapse(500);
      await world.abort(aborted);
      await subscription.expectTexts('1');
      await subscription.expectQuiet();
    },
  },
];

const sentOf = (error: Error): boolean | undefined => (error instanceof TransportError ? error.sent : undefined);

const refusals: readonly ConformanceCase[] = [
  {
    title: 'an acknowledgement that is refused before it is sent says so, and one that the broker refuses does not',
    rules: [
      'T-02: nothing can be done in a transaction that is not open: it is refused here, and the port says that nothing was sent',
      'T-10: what is pending in another one the broker refuses: that was sent',
    ],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b');
      const subscription = await world.subscribe(topic);
      const [a, b] = await subscription.take(2);
      const [ended, open, other] = [await world.begin(), await world.begin(), await world.begin()];
      await world.abort(ended);
      const late = await expectRefused(subscription.acknowledgeIn(ended, a), 'TRANSACTION_ENDED', 'after the end');
      expectEqual(sentOf(late), false, 'after the end: whether it was sent');
      await subscription.acknowledgeIn(open, a);
      const twice = await expectRefused(subscription.acknowledgeIn(other, a), 'TRANSACTION_CONFLICT', 'in two of them');
      expectEqual(sentOf(twice), true, 'in two of them: whether it was sent');
      await subscription.close();
      const closed = await expectRefused(subscription.acknowledgeIn(open, b), 'ALREADY_CLOSED', 'when it is closed');
      expectEqual(sentOf(closed), false, 'when it is closed: whether it was sent');
      await world.abort(open);
      await world.abort(other);
      const next = await world.subscribe(topic);
      expectEqual(textsOf(await next.take(2)).toSorted(), ['a', 'b'], 'what is unacknowledged');
    },
  },
];

const loaded: readonly ConformanceCase[] = [
  {
    title: 'what is pending when its topic is unloaded stays pending, and ends with its transaction',
    rules: [
      'G-15: pending acknowledgements survive an unload; committed ones conflict afterwards, aborted ones can be acknowledged',
    ],
    needs: [...NEEDS, 'unload'],
    async run(world) {
      const topic = await world.newTopic();
      await world.publish(topic, 'a', 'b', 'c');
      const subscription = await world.subscribe(topic);
      const [a, b] = await subscription.take(3);
      const [committed, aborted] = [await world.begin(), await world.begin()];
      await subscription.acknowledgeIn(committed, a);
      await subscription.acknowledgeIn(aborted, b);
      await world.unload(topic);
      const [c] = await subscription.expectTexts('c');
      await subscription.expectQuiet();
      const other = await world.begin();
      await expectRefused(subscription.acknowledgeIn(other, a), 'TRANSACTION_CONFLICT', 'what is pending');
      await world.abort(other);
      await world.commit(committed);
      await world.abort(aborted);
      const [again] = await subscription.expectTexts('b');
      const last = await world.begin();
      await subscription.acknowledgeIn(last, again, c);
      await expectRefused(subscription.acknowledgeIn(last, a), 'TRANSACTION_CONFLICT', 'what is committed');
      await world.abort(last);
    },
  },
  {
    title: 'a message in chunks is acknowledged in a transaction as one, and comes again whole after an abort',
    rules: ['T-16: a commit acknowledges all of it', 'T-17: an abort frees all of it'],
    needs: [...NEEDS, 'producer-chunks', 'statistics'],
    async run(world) {
      const topic = await world.newTopic();
      const text = 'x'.repeat(4_000);
      await world.publishChunked(topic, text, 1_024);
      const subscription = await world.subscribe(topic);
      const [message] = await subscription.take(1);
      const aborted = await world.begin();
      await subscription.acknowledgeIn(aborted, message);
      await world.abort(aborted);
      const [again] = await subscription.expectTexts(text);
      const committed = await world.begin();
      await subscription.acknowledgeIn(committed, again);
      await world.commit(committed);
      await world.backlogIs(topic, 0);
    },
  },
];

export const transactionalAckCases: readonly ConformanceCase[] = [
  ...forEachType,
  ...multi,
  ...single,
  ...together,
  ...conflicts,
  ...refusals,
  ...loaded,
];
