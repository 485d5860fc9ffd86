import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/core/errors.js';
import type { SubscriptionSpec } from '../../../src/core/subscription-spec.js';
import type { EmbeddedSubscription } from '../../../src/embedded.js';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestTransport, drain, next, text } from './transport-kit.js';

const name = (local: string): string => `persistent://public/default/${local}`;

class Topics extends TestTransport {
  open(spec: Partial<SubscriptionSpec> = {}): Promise<EmbeddedSubscription> {
    return super.subscribe(spec) as Promise<EmbeddedSubscription>;
  }
}

const texts = async (subscription: EmbeddedSubscription): Promise<string[]> =>
  (await drain(subscription)).map((message) => text(message)).toSorted();

function states(subscription: EmbeddedSubscription): string[] {
  const told: string[] = [];
  subscription.onState(({ topic, connection, state }: SubscriptionState) => {
    told.push(`${topic.slice(name('').length)} ${connection} ${state}`);
  });
  return told;
}

describe('S-43: partitions that are added', () => {
  it('are read within 60 s of the clock, from their first message', async () => {
    const test = new Topics();
    test.broker.createPartitionedTopic('orders', 1);
    const subscription = await test.open({ initialPosition: 'latest' });
    await test.clock.advanceBy(50_000);
    const told = states(subscription);
    test.broker.growPartitions('orders', 2);
    await test.publish(['new'], {}, `${TOPIC}-partition-1`);
    await test.clock.advanceBy(9_999);
    expect([await drain(subscription), subscription.topics()]).toEqual([[], [`${TOPIC}-partition-0`]]);
    await test.clock.advanceBy(1);
    expect(text(await next(subscription))).toBe('new');
    expect(told).toEqual(['orders-partition-0 1 connected', 'orders-partition-1 1 connected']);
  });

  it('leave what is read of the others alone', async () => {
    const test = new Topics();
    test.broker.createPartitionedTopic('orders', 1);
    const subscription = await test.open();
    await test.publish(['1']);
    const message = await next(subscription);
    test.broker.growPartitions('orders', 3);
    await test.clock.advanceBy(60_000);
    await subscription.acknowledge([message.id]);
    expect([test.stats().backlog, subscription.topics().length]).toEqual([0, 3]);
  });

  it('cost no timer while there are none, and none after the end', async () => {
    const test = new Topics();
    test.broker.createPartitionedTopic('orders', 1);
    const subscription = await test.open();
    expect(test.clock.pendingTimers).toEqual([]);
    test.broker.growPartitions('orders', 2);
    await settlePromises();
    expect(test.clock.pendingTimers).toEqual([60_000]);
    await subscription.close();
    expect(test.clock.pendingTimers).toEqual([]);
  });

  it('are published to within 60 s, keys and messages without', async () => {
    const test = new Topics();
    test.broker.createPartitionedTopic('orders', 1);
    const publisher = await test.transport.publisher('orders');
    test.broker.growPartitions('orders', 2);
    const publish = async (key?: string): Promise<number> =>
      (await publisher.publish({ payload: null, properties: {}, key }, publisher.nextSequenceId())).partition;
    await test.clock.advanceBy(59_999);
    expect([await publish('a'), publisher.topics()]).toEqual([0, [`${TOPIC}-partition-0`]]);
    await test.clock.advanceBy(1);
    // 97 mod 2
    expect(await publish('a')).toBe(1);
    expect(new Set([await publish(), await publish()])).toEqual(new Set([0, 1]));
  });
});

describe('a topic that is deleted by force', () => {
  it('is made again by its subscriptions and publishers, which lose nothing that comes later', async () => {
    const test = new Topics();
    const subscription = await test.open();
    await test.publish(['1']);
    const told = states(subscription);
    test.broker.deleteTopic('orders', { force: true });
    await settlePromises();
    expect(told).toEqual(['orders 1 connected', 'orders 1 lost', 'orders 2 connected']);
    expect(test.broker.stats('orders').producers).toHaveLength(1);
    await test.publish(['2']);
    expect(await texts(subscription)).toEqual(['2']);
  });

  it('leaves a subscription by pattern, and is not made again by it', async () => {
    const test = new Topics();
    await test.broker.publish('orders', { payload: new TextEncoder().encode('1'), properties: {} });
    const subscription = await test.open({ topics: [], pattern: /public\/default\/or.*/ });
    const told = states(subscription);
    expect(await texts(subscription)).toEqual(['1']);
    test.broker.deleteTopic('orders', { force: true });
    await settlePromises();
    expect([told.at(-1), subscription.topics(), test.broker.topics()]).toEqual(['orders 1 lost', [], []]);
  });
});

describe('G-13: the end of a topic', () => {
  it('is reached when all topics were terminated and everything is acknowledged', async () => {
    const test = new Topics();
    const subscription = await test.open({ topics: [TOPIC, name('lines')] });
    await test.publish(['1']);
    test.broker.terminate('lines');
    test.broker.terminate('orders');
    await settlePromises();
    expect(subscription.hasReachedEnd()).toBe(false);
    await subscription.acknowledge([(await next(subscription)).id]);
    await settlePromises();
    expect(subscription.hasReachedEnd()).toBe(true);
    await subscription.seek('earliest');
    expect(subscription.hasReachedEnd()).toBe(false);
  });

  it('fails what is published afterwards, for good', async () => {
    const test = new Topics();
    await test.publish(['1']);
    test.broker.terminate('orders');
    const terminated = { code: 'TOPIC_TERMINATED', retriable: false };
    await expect(test.publish(['2'])).rejects.toMatchObject(terminated);
    await expect(test.transport.publisher(TOPIC)).rejects.toMatchObject(terminated);
  });
});

describe('S-42: a subscription by pattern', () => {
  const byPattern = { topics: [], pattern: /public\/default\/orders-.*/ } as const;

  it('reads all topics of one namespace that match, partitions too', async () => {
    const test = new Topics();
    test.broker.createPartitionedTopic('orders-b', 2);
    for (const topic of ['orders-a', 'orders-b-partition-1', 'lines', 'other/ns/orders-c'])
      await test.publish([topic], {}, topic);
    const subscription = await test.open(byPattern);
    expect(await texts(subscription)).toEqual(['orders-a', 'orders-b-partition-1']);
    expect(subscription.topics()).toEqual(['orders-b-partition-0', 'orders-b-partition-1', 'orders-a'].map(name));
  });

  it('leaves out its own retry and dead letter topics', async () => {
    const test = new Topics();
    for (const topic of ['orders-a', 'orders-a-s-DLQ', 'orders-a-s-RETRY', 'orders-a-t-DLQ'])
      await test.publish(['x'], {}, topic);
    const subscription = await test.open(byPattern);
    expect(subscription.topics()).toEqual(['orders-a', 'orders-a-t-DLQ'].map(name));
  });

  it('takes topics that come later, and new partitions, at once', async () => {
    const test = new Topics();
    const subscription = await test.open(byPattern);
    expect(await texts(subscription)).toEqual([]);
    test.broker.createPartitionedTopic('orders-p', 1);
    await settlePromises();
    test.broker.growPartitions('orders-p', 2);
    await settlePromises();
    await test.publish(['late'], {}, 'orders-p-partition-1');
    expect(await texts(subscription)).toEqual(['late']);
  });

  it('acknowledges and asks back at the topic of each message', async () => {
    const test = new Topics();
    const subscription = await test.open(byPattern);
    const topics = ['orders-a', 'orders-b'];
    for (const topic of topics) test.broker.createSubscription(topic, 's');
    await settlePromises();
    for (const topic of topics) await test.publish([topic], {}, topic);
    const [a, b] = (await drain(subscription)).toSorted((x, y) => text(x).localeCompare(text(y)));
    await subscription.acknowledge([a!.id]);
    await subscription.redeliver([b!.id]);
    expect(await texts(subscription)).toEqual(['orders-b*']);
    expect([test.stats('orders-a').backlog, test.stats('orders-b').backlog]).toEqual([0, 1]);
  });

  it('is checked', async () => {
    const test = new Topics();
    await expect(test.open({ topics: [], pattern: /a\/b/ })).rejects.toThrow(ConfigurationError);
    await expect(test.open({ pattern: /orders/ })).rejects.toThrow('"topics" must be an empty list beside "pattern"');
  });
});

describe('the topics of one subscription', () => {
  it('are connected one by one: an unload of one leaves what came of the others', async () => {
    const test = new Topics();
    const subscription = await test.open({ topics: [TOPIC, name('lines')] });
    await test.publish(['1']);
    await test.publish(['2'], {}, 'lines');
    const [first, second] = await drain(subscription);
    const told = states(subscription);
    test.broker.unload('lines');
    await settlePromises();
    expect(told.slice(2)).toEqual(['lines 1 lost', 'lines 2 connected']);
    const again = await next(subscription);
    expect([text(again), again.connection, text(first)]).toEqual(['2', 2, '1']);
    await subscription.acknowledge([first!.id, second!.id]);
    expect([test.stats().backlog, test.stats('lines').backlog]).toEqual([0, 0]);
  });

  it('connect again after a restart of the broker, with nothing lost', async () => {
    const test = new Topics();
    const subscription = await test.open({ topics: [TOPIC, name('lines')] });
    await test.publish(['1']);
    await test.publish(['2'], {}, 'lines');
    await drain(subscription);
    test.broker.restart();
    await settlePromises();
    await test.publish(['3']);
    expect(await texts(subscription)).toEqual(['1', '2', '3']);
  });

  it('are tried again every second where somebody else came first', async () => {
    const test = new Topics();
    const subscription = await test.open({ type: 'exclusive' });
    const told = states(subscription);
    const other = { deliver: () => 0, activeChanged: () => 0, disconnected: () => 0 };
    const request = { topic: TOPIC, subscription: 's', type: 'exclusive', initialPosition: 'earliest' } as const;
    test.broker.unload('orders');
    const handle = test.broker.subscribe({ ...request, consumerName: 'faster' }, other);
    await settlePromises();
    await expect(subscription.redeliver([])).resolves.toBeUndefined();
    await expect(subscription.seek('earliest')).rejects.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
    handle.close();
    await test.clock.advanceBy(1_000);
    expect(told).toEqual(['orders 1 connected', 'orders 1 lost', 'orders 2 connected']);
  });
});
