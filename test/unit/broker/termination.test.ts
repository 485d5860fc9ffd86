import { describe, expect, it } from 'vitest';
import { settlePromises } from '../../../src/testing/fake-clock.js';
import { TOPIC, TestBroker, TestClient, message } from './broker-kit.js';

const terminated = { code: 'TOPIC_TERMINATED', retriable: false };

class EndClient extends TestClient {
  ends = 0;

  endOfTopic(): void {
    this.ends += 1;
  }
}

async function connect(test: TestBroker, type: 'shared' | 'exclusive', name = 'c'): Promise<EndClient> {
  const client = new EndClient(TOPIC);
  const request = { topic: TOPIC, subscription: 's', type, initialPosition: 'earliest', consumerName: name } as const;
  client.handle = test.broker.subscribe(request, client);
  await client.flow(100);
  return client;
}

describe('G-13: a topic that is terminated', () => {
  it('gives its last id, the same each time', async () => {
    const test = new TestBroker();
    const [, last] = await test.publish('1', '2');
    const first = test.broker.terminate('t');
    expect([first, test.broker.terminate('t')]).toEqual([new Map([[TOPIC, last]]), first]);
  });

  it('whose last messages the store refused gives the last one that is there', async () => {
    const appends: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];
    const append = (): Promise<void> => new Promise((resolve, reject) => appends.push({ resolve, reject }));
    const test = new TestBroker({ store: { append, acknowledge: () => undefined } });
    const publishing = [message('1'), message('2'), message('3')].map((sent) => test.broker.publish('t', sent));
    appends[0]?.resolve();
    for (const { reject } of appends.slice(1)) reject(new Error('disk full'));
    const [stored] = await Promise.allSettled(publishing);
    expect(test.broker.terminate('t').get(TOPIC)).toEqual((stored as { readonly value?: unknown }).value);
    expect(stored).toMatchObject({ status: 'fulfilled', value: { entryId: 0 } });
  });

  it('without messages has no last id', () => {
    const test = new TestBroker();
    test.broker.createSubscription('t', 's');
    expect(test.broker.terminate('t')).toEqual(new Map([[TOPIC, undefined]]));
  });

  it('that does not exist is an error', () => {
    const { broker } = new TestBroker();
    expect(() => broker.terminate('t')).toThrow(expect.objectContaining({ code: 'TOPIC_NOT_FOUND' }));
  });

  it('takes no message any more, whoever publishes, also after an unload', async () => {
    const test = new TestBroker();
    const producer = test.broker.producer({ topic: 't' });
    await producer.publish(message('1'), 0);
    test.broker.terminate('t');
    await expect(producer.publish(message('2'), 1)).rejects.toMatchObject(terminated);
    await expect(producer.publishBatch([message('2')], 1)).rejects.toMatchObject(terminated);
    await expect(test.broker.publish('t', message('2'))).rejects.toMatchObject(terminated);
    test.broker.unload('t');
    await expect(producer.publish(message('2'), 1)).rejects.toMatchObject(terminated);
    expect(() => test.broker.producer({ topic: 't' })).toThrow(expect.objectContaining(terminated));
    expect(test.broker.stats('t').messagesIn).toBe(1);
  });

  it.each(['shared', 'exclusive'] as const)(
    'is told to its end after the last acknowledgement only, %s',
    async (type) => {
      const test = new TestBroker();
      const client = await connect(test, type);
      await test.publish('1', '2');
      test.broker.terminate('t');
      await settlePromises();
      await client.ack('1');
      expect([client.take(), client.ends]).toEqual(['1 2', 0]);
      await client.ack('2');
      expect(client.ends).toBe(1);
    },
  );

  it('is told to its end at once where everything is acknowledged, and to who comes later', async () => {
    const test = new TestBroker();
    const client = await connect(test, 'shared');
    await test.publish('1');
    await client.ack('1');
    test.broker.terminate('t');
    await settlePromises();
    const ends = client.ends;
    await client.close();
    expect([ends, (await connect(test, 'shared')).ends]).toEqual([1, 1]);
  });

  it('is read again after a seek, and a new subscription reads all of it', async () => {
    const test = new TestBroker();
    const client = await connect(test, 'shared');
    await test.publish('1');
    await client.ack('1');
    test.broker.terminate('t');
    client.handle.seek('earliest');
    await settlePromises();
    const again = await connect(test, 'shared');
    expect([again.take(), again.ends]).toEqual(['1', 0]);
    await again.ack('1');
    expect(again.ends).toBe(1);
  });

  it('is terminated with all its partitions', async () => {
    const test = new TestBroker();
    test.broker.createPartitionedTopic('p', 2);
    const id = await test.broker.publish('p', message('x', { key: 'a' }));
    expect([...test.broker.terminate('p').values()]).toEqual([undefined, id]);
    await expect(test.broker.publish('p', message('y'))).rejects.toMatchObject(terminated);
  });
});
