import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/core/errors.js';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TestBroker, message } from './broker-kit.js';

const NAME = 'persistent://public/default/p';
const partition = (index: number): string => `${NAME}-partition-${index}`;

describe('S-43: a partitioned topic that grows', () => {
  it('has the new partitions at once, and keys are spread over all of them', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 2);
    test.broker.growPartitions('p', 4);
    expect(test.broker.partitionsOf('p')).toEqual([0, 1, 2, 3].map(partition));
    // 97 mod 2 and 97 mod 4, then 98 mod 4.
    const ids = await Promise.all(['a', 'b'].map((key) => test.broker.publish('p', message('x', { key }))));
    expect(ids.map((id) => id.partition)).toEqual([1, 2]);
  });

  it('gives new partitions the subscriptions that there are, so that nothing published to them is lost', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 1);
    test.broker.createSubscription('p', 's');
    test.broker.growPartitions('p', 2);
    await test.broker.publish(partition(1), message('early'));
    const client = await test.connect('shared', 'c', { topic: partition(1), from: 'latest' });
    expect(client.take()).toBe('early');
  });

  it('keeps what was stored in the old ones', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 1);
    await test.broker.publish('p', message('1'));
    test.broker.growPartitions('p', 3);
    expect(test.broker.stats('p')).toMatchObject({ partitions: 3, messagesIn: 1, entries: 1 });
  });

  it('is not changed by the number that it has, and refuses a smaller one', () => {
    const { broker } = new TestBroker();
    broker.createPartitionedTopic('p', 2);
    broker.growPartitions('p', 2);
    const shrink = (): void => broker.growPartitions('p', 1);
    expect(shrink).toThrow(expect.objectContaining({ code: 'NOT_SUPPORTED', retriable: false }));
    expect(broker.partitionsOf('p')).toHaveLength(2);
  });

  it('must be partitioned', async () => {
    const test = new TestBroker();
    await test.publish('1');
    const notPartitioned = expect.objectContaining({ code: 'NOT_SUPPORTED' }) as Error;
    expect(() => test.broker.growPartitions('t', 2)).toThrow(notPartitioned);
    expect(() => test.broker.growPartitions('t', 2)).toThrow('t" is not partitioned');
    expect(() => test.broker.growPartitions('nobody', 2)).toThrow(notPartitioned);
    expect(() => test.broker.growPartitions('nobody', 2)).toThrow('nobody" does not exist');
  });

  it.each([0, 1.5, undefined])('cannot grow to %s', (partitions) => {
    const { broker } = new TestBroker();
    broker.createPartitionedTopic('p', 1);
    expect(() => broker.growPartitions('p', partitions as number)).toThrow(ConfigurationError);
  });
});

describe('watching topics', () => {
  it('tells of those that come and go, in a turn of its own and together', async () => {
    const test = new TestBroker();
    const told: (readonly string[])[] = [];
    const end = test.broker.watchTopics((names) => void told.push(names));
    test.broker.createPartitionedTopic('p', 2);
    expect(told).toEqual([]);
    await settlePromises();
    test.broker.growPartitions('p', 3);
    test.broker.deleteTopic('p');
    await settlePromises();
    end();
    test.broker.partitionsOf('q');
    await settlePromises();
    expect(told).toEqual([
      [partition(0), partition(1)],
      [partition(2), partition(0), partition(1), partition(2)],
    ]);
  });
});
