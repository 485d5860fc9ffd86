// What is published in transactions: shown all at once or never, and nothing behind it before that. What of a transaction
// failed, or came too late.
import { SUBSCRIPTION_TYPES } from '../../core/subscription-spec.js';
import type { ConformanceCase } from './conformance-case.js';
import { forTypes } from './conformance-case.js';
import { expectEqual, expectRefused, expectTrue, textsOf } from './expectations.js';

const NEEDS = ['transactions'] as const;

const forEachType: readonly ConformanceCase[] = forTypes(
  SUBSCRIPTION_TYPES,
  (type) => ({
    title: `${type}: what is published in a transaction is shown once it is committed`,
    rules: ['T-07: nothing from the first entry of an open transaction on is dispatched'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const transaction = await world.begin();
      await world.publishIn(transaction, topic, 'a', 'b');
      await subscription.expectQuiet();
      await world.commit(transaction);
      expectEqual(transaction.state, 'committed', 'the state of the transaction');
      await subscription.expectTexts('a', 'b');
    },
  }),
  (type) => ({
    title: `${type}: what is published in a transaction that is aborted is never shown`,
    rules: ['T-07: entries of aborted transactions are filtered and acknowledged by the dispatcher'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const transaction = await world.begin();
      await world.publishIn(transaction, topic, 'a', 'b');
      await world.abort(transaction);
      await world.publish(topic, 'after');
      await subscription.expectTexts('after');
      await subscription.close();
      const later = await world.subscribe(topic, { type, subscription: 'later' });
      await later.expectTexts('after');
    },
  }),
  (type) => ({
    title: `${type}: what is published behind an open transaction waits for its end, and keeps its place`,
    rules: ['T-07: messages without a transaction wait behind an open one too'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type });
      const transaction = await world.begin();
      await world.publish(topic, 'before');
      await world.publishIn(transaction, topic, 'first');
      await world.publish(topic, 'between');
      await world.publishIn(transaction, topic, 'second');
      await world.publish(topic, 'behind');
      await subscription.expectTexts('before');
      await subscription.expectQuiet();
      await world.commit(transaction);
      await subscription.expectTexts('first', 'between', 'second', 'behind');
    },
  }),
);

const visibility: readonly ConformanceCase[] = [
  {
    title: 'a transaction that is committed is not shown before an earlier one on the topic has ended',
    rules: ['T-07: the earliest open transaction on the topic counts'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type: 'exclusive' });
      const [earlier, later] = [await world.begin(), await world.begin()];
      await world.publishIn(earlier, topic, 'earlier');
      await world.publishIn(later, topic, 'later');
      await world.commit(later);
      await subscription.expectQuiet();
      await world.abort(earlier);
      await subscription.expectTexts('later');
    },
  },
  {
    title: 'one transaction covers several topics and partitions',
    rules: ['T-07: on each topic by itself'],
    needs: NEEDS,
    async run(world) {
      const [partitioned, single] = [await world.newTopic(3), await world.newTopic()];
      const subscription = await world.subscribe([partitioned, single]);
      const keyed = ['0', '1', '2', '3', '4', '5'].map((key) => ({ key, payload: new TextEncoder().encode(key) }));
      const [aborted, committed] = [await world.begin(), await world.begin()];
      await world.publishIn(aborted, partitioned, ...keyed);
      await world.publishIn(aborted, single, 'no');
      await world.abort(aborted);
      await world.publishIn(committed, partitioned, ...keyed);
      await world.publishIn(committed, single, 'one');
      await subscription.expectQuiet();
      await world.commit(committed);
      expectEqual(textsOf(await subscription.take(7)).toSorted(), ['0', '1', '2', '3', '4', '5', 'one'], 'what came');
      await subscription.expectQuiet();
    },
  },
  {
    title: 'what one publisher publishes in a transaction and outside of it keeps the order of the calls',
    rules: ['T-07: what is committed is shown in its place'],
    needs: NEEDS,
    realTime: {
      only: 'never',
      reason: 'Pulsar 4.0.7 stores what comes without a transaction past what one producer sent in one before',
    },
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type: 'exclusive' });
      const publisher = await world.publisher(topic);
      const transaction = await world.begin();
      const texts = Array.from({ length: 12 }, (_, index) => String(index));
      const publishing = texts.map((text, index) => {
        const message = { payload: new TextEncoder().encode(text), properties: {} };
        return publisher.publish(message, publisher.nextSequenceId(), index % 3 === 1 ? { transaction } : undefined);
      });
      await world.until(Promise.all(publishing), 'twelve receipts');
      await world.commit(transaction);
      await subscription.expectTexts(...texts);
    },
  },
  {
    title: 'a message with a delivery time that is published in a transaction comes once it is committed and due',
    rules: ['T-07: what is committed is dispatched as any other'],
    needs: [...NEEDS, 'delayed-delivery'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const transaction = await world.begin();
      const deliverAtMs = world.clock.now() + 2_000;
      await world.publishIn(transaction, topic, { payload: new TextEncoder().encode('late'), deliverAtMs }, 'at once');
      await world.commit(transaction);
      await subscription.expectTexts('at once');
      await subscription.expectTexts('late');
      expectTrue(world.clock.now() >= deliverAtMs, 'the message came before its time');
    },
  },
  {
    title: 'an unload changes nothing about what an open transaction hides',
    rules: ['T-07: also for a topic that was loaded again'],
    needs: [...NEEDS, 'unload'],
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type: 'exclusive' });
      const later = await world.subscribe(topic, { subscription: 'later' });
      await later.close();
      const [committed, aborted] = [await world.begin(), await world.begin()];
      await world.publishIn(committed, topic, 'a');
      await world.publishIn(aborted, topic, 'no');
      await world.publish(topic, 'behind');
      await world.unload(topic);
      await subscription.expectQuiet();
      await world.publishIn(committed, topic, 'b');
      await world.commit(committed);
      await subscription.expectTexts('a');
      await subscription.expectQuiet();
      await world.abort(aborted);
      await subscription.expectTexts('behind', 'b');
      await world.unload(topic);
      const again = await world.subscribe(topic, { type: 'exclusive', subscription: 'later' });
      await again.expectTexts('a', 'behind', 'b');
    },
  },
];

const ends: readonly ConformanceCase[] = [
  {
    title: 'a transaction whose time is over is aborted by itself, and what is behind it is shown',
    rules: [
      'T-02: a local timer ends it, after which every operation fails',
      'T-07: until it ends, others wait behind it',
    ],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const transaction = await world.begin({ timeoutMs: 1_500 });
      await world.publishIn(transaction, topic, 'never');
      await world.publish(topic, 'behind');
      await subscription.expectTexts('behind');
      expectEqual(transaction.state, 'timed-out', 'the state of the transaction');
      await expectRefused(transaction.commit(), 'TRANSACTION_ENDED', 'a commit that is late');
      await expectRefused(world.publishIn(transaction, topic, 'x'), 'TRANSACTION_ENDED', 'a publish that is late');
    },
  },
  {
    title: 'in a transaction that has ended nothing can be done, and it cannot be ended again',
    rules: ['T-02: every operation fails unless it is open', 'T-03: a commit needs a transaction that is open'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic);
      const [committed, aborted] = [await world.begin(), await world.begin()];
      await world.publishIn(committed, topic, 'a');
      await world.commit(committed);
      await world.abort(aborted);
      const [a] = await subscription.expectTexts('a');
      for (const transaction of [committed, aborted]) {
        const { state } = transaction;
        await expectRefused(world.publishIn(transaction, topic, 'x'), 'TRANSACTION_ENDED', `publishing, ${state}`);
        await expectRefused(subscription.acknowledgeIn(transaction, a), 'TRANSACTION_ENDED', `acknowledging, ${state}`);
        await expectRefused(transaction.commit(), 'TRANSACTION_ENDED', `a commit, ${state}`);
      }
      await expectRefused(committed.abort(), 'TRANSACTION_ENDED', 'an abort after the commit');
    },
  },
  {
    title: 'a commit waits for what is under way, and is one commit however often it is asked for meanwhile',
    rules: ['T-03: a commit waits for all sends of the transaction, and is allowed while one is under way'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { type: 'exclusive' });
      const publisher = await world.publisher(topic);
      const transaction = await world.begin();
      const texts = ['a', 'b', 'c'];
      const publishing = texts.map((text) => {
        const message = { payload: new TextEncoder().encode(text), properties: {} };
        return publisher.publish(message, publisher.nextSequenceId(), { transaction });
      });
      const commits = Promise.all([transaction.commit(), transaction.commit()]);
      await world.until(commits, 'two commits');
      await world.until(Promise.all(publishing), 'three receipts');
      await subscription.expectTexts(...texts);
      await subscription.expectQuiet();
    },
  },
  {
    title: 'closing the transport aborts its open transactions',
    rules: ['T-02: whoever could commit it is gone'],
    needs: NEEDS,
    async run(world) {
      const topic = await world.newTopic();
      const subscription = await world.subscribe(topic, { transport: await world.newTransport() });
      const transaction = await world.begin();
      await world.publishIn(transaction, topic, 'never');
      await world.publish(topic, 'behind');
      await world.until((await world.transport()).close(), 'closing the transport');
      await subscription.expectTexts('behind');
      await subscription.expectQuiet();
    },
  },
];

export const transactionCases: readonly ConformanceCase[] = [...forEachType, ...visibility, ...ends];
