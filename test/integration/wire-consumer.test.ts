// The wire client's consumer on a real broker: the requests that only a broker can answer truly. What it shares with other
// clients is in interop-messages.test.ts and interop-subscriptions.test.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import type { SubscriptionState } from '../../src/ports/transport.js';
import { WireClient } from '../../src/wire.js';
import type { WireConsumer, WireSubscribeOptions } from '../../src/wire.js';
import { eventually, names, numbered, receive, textOf, texts } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';
import type { SharedPulsar } from '../support/real-pulsar/integration-test.js';
import { closedAfterTest } from '../support/closed-after-test.js';

function subscribe(
  { serviceUrl }: { readonly serviceUrl: string },
  topic: string,
  options: Partial<WireSubscribeOptions> = {},
): Promise<WireConsumer> {
  const client = closedAfterTest(new WireClient({ serviceUrl }));
  return client.subscribe({ topics: [topic], subscription: 's', ...options });
}

const statsOf = async (pulsar: SharedPulsar, topic: string) => (await pulsar.admin.stats(topic)).subscriptions['s'];

describe('acknowledgements', () => {
  test('of all messages of a batch, one by one, leave no backlog', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(100), { batching: 'on' });
    const subscription = await subscribe(pulsar, topic);

    for (const { id } of await receive(subscription, 100)) await subscription.acknowledge([id]);

    expect(
      (
        await eventually(
          () => statsOf(pulsar, topic),
          (s) => s?.msgBacklog === 0,
        )
      )?.msgBacklog,
    ).toBe(0);
  });

  test('cumulative ones take everything before, into a batch too', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(10), { batching: 'on', batchSize: 5 });
    const subscription = await subscribe(pulsar, topic, { type: 'exclusive' });
    await subscription.acknowledgeCumulative((await receive(subscription, 10))[6]!.id);
    await subscription.close();

    expect(texts(await receive(await subscribe(pulsar, topic, { type: 'exclusive' }), 3))).toEqual(names(10).slice(7));
  });

  test('cumulative in the first batch of a topic takes only what it names', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(5), { batching: 'on' });
    const subscription = await subscribe(pulsar, topic, { type: 'exclusive' });
    await subscription.acknowledgeCumulative((await receive(subscription, 5))[1]!.id);
    await subscription.close();

    expect(texts(await receive(await subscribe(pulsar, topic, { type: 'exclusive' }), 3))).toEqual(names(5).slice(2));
  });
});

describe('redelivery', () => {
  test('is counted by the broker, for the messages asked for only', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(5));
    const subscription = await subscribe(pulsar, topic);
    const messages = await receive(subscription, 5);

    for (const count of [1, 2]) {
      await subscription.redeliver([messages[1]!.id, messages[3]!.id]);
      const again = await receive(subscription, 2);
      expect(texts(again)).toEqual(['message 1', 'message 3']);
      expect(again.map(({ redeliveryCount }) => redeliveryCount)).toEqual([count, count]);
    }
    expect(await receive(subscription, 1, 300)).toEqual([]);
  });

  test('on Exclusive sends everything again in order', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(20));
    // All of them are here before the request: a rewind that meets a read under way passes over entries or repeats them.
    const subscription = await subscribe(pulsar, topic, { type: 'exclusive', prefetch: 40 });
    const messages = await receive(subscription, 20);
    await subscription.acknowledge([messages[0]!.id]);

    await subscription.redeliver([messages[3]!.id]);

    expect(texts(await receive(subscription, 19))).toEqual(names(20).slice(1));
  });
});

describe('limits', () => {
  test('a consumer at its limit of unacknowledged messages goes on when it acknowledges', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await pulsar.admin.createTopic(topic);
    await pulsar.admin.topicPolicy(topic, 'maxUnackedMessagesOnConsumer', 10);
    await sleep(1_500); // How long a policy takes to act.
    await java.produce(pulsar.serviceUrl, topic, numbered(40));
    const subscription = await subscribe(pulsar, topic);

    const first = await receive(subscription, 40, 1_000);
    const received = [...first];
    let unacknowledged = first;
    while (received.length < 40 && unacknowledged.length > 0) {
      await subscription.acknowledge(unacknowledged.map(({ id }) => id));
      unacknowledged = await receive(subscription, Math.min(10, 40 - received.length), 2_000);
      received.push(...unacknowledged);
    }

    expect(first.length).toBeLessThan(40);
    expect(texts(received)).toEqual(names(40));
  });

  test('a paused subscription gets no more than it was granted', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    const subscription = await subscribe(pulsar, topic, { prefetch: 5 });
    subscription.pause();
    await java.produce(pulsar.serviceUrl, topic, numbered(20));

    const whilePaused = await receive(subscription, 20, 500);
    subscription.resume();
    const afterwards = await receive(subscription, 15);

    expect([texts(whilePaused), texts(afterwards)]).toEqual([names(20).slice(0, 5), names(20).slice(5)]);
  });

  test('with a prefetch of 0 no message lies here that nobody waits for', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(3));
    const subscription = await subscribe(pulsar, topic, { prefetch: 0 });

    const [first] = await receive(subscription, 1);
    const stats = await eventually(
      () => statsOf(pulsar, topic),
      (s) => s?.unackedMessages === 1,
    );

    expect([first === undefined ? '' : textOf(first), stats?.unackedMessages]).toEqual(['message 0', 1]);
    expect(texts(await receive(subscription, 2))).toEqual(['message 1', 'message 2']);
  });
});

describe('seek', () => {
  test('to a message delivers from that message on', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(10), { batching: 'on', batchSize: 5 });
    const subscription = await subscribe(pulsar, topic);
    const messages = await receive(subscription, 10);
    await subscription.acknowledge(messages.map(({ id }) => id));

    await subscription.seek(messages[7]!.id);
    const inBatch = await receive(subscription, 3);
    await subscription.seek(messages[5]!.id);
    const wholeBatch = await receive(subscription, 5);

    expect([texts(inBatch), texts(wholeBatch)]).toEqual([names(10).slice(7), names(10).slice(5)]);
  });

  test('to the ends of a topic', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(3));
    const subscription = await subscribe(pulsar, topic, { type: 'exclusive' });
    await receive(subscription, 3);

    await subscription.seek('latest');
    const nothing = await receive(subscription, 1, 300);
    await subscription.seek('earliest');

    expect([nothing, texts(await receive(subscription, 3))]).toEqual([[], names(3)]);
  });

  test('to a time, on all partitions', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await pulsar.admin.createPartitionedTopic(topic, 2);
    const keyed = (from: number) =>
      names(20)
        .slice(from, from + 10)
        .map((value) => ({ value, key: value }));
    await java.produce(pulsar.serviceUrl, topic, keyed(0));
    const subscription = await subscribe(pulsar, topic);
    await receive(subscription, 10);
    await sleep(20);
    const between = new Date();
    await sleep(20);
    await java.produce(pulsar.serviceUrl, topic, keyed(10));
    await receive(subscription, 10);

    await subscription.seek(between);

    expect(texts(await receive(subscription, 20, 1_000)).toSorted()).toEqual([...names(20).slice(10)].sort());
  });

  test('to a message moves its own partition only', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await pulsar.admin.createPartitionedTopic(topic, 2);
    for (const partition of [0, 1])
      await java.produce(pulsar.serviceUrl, `${topic}-partition-${partition}`, numbered(5));
    const subscription = await subscribe(pulsar, topic);
    const messages = await receive(subscription, 10);
    const third = messages.find(({ id, ...message }) => id.partition === 1 && textOf(message) === 'message 3');
    await subscription.acknowledge(messages.map(({ id }) => id));

    await subscription.seek(third!.id);
    const again = await receive(subscription, 10, 1_000);

    expect(again.map(({ id, ...message }) => [id.partition, textOf(message)])).toEqual([
      [1, 'message 3'],
      [1, 'message 4'],
    ]);
  });
});

describe('what a broker tells', () => {
  test('the last message of each topic', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    const subscription = await subscribe(pulsar, topic);
    const before = await subscription.lastMessageIds();
    await java.produce(pulsar.serviceUrl, topic, numbered(4), { batching: 'on' });
    const after = await subscription.lastMessageIds();

    const last = (await receive(subscription, 4)).at(-1);
    expect([before.get(topic), after.get(topic)]).toEqual([undefined, last?.id]);
  });

  test('that a terminated topic has been read to its end', async ({ pulsar, java }) => {
    const topic = pulsar.newTopic();
    await java.produce(pulsar.serviceUrl, topic, numbered(1));
    const subscription = await subscribe(pulsar, topic);
    const [only] = await receive(subscription, 1);
    await pulsar.admin.terminate(topic);
    const before = subscription.hasReachedEnd();

    await subscription.acknowledge([only!.id]);
    const after = await eventually(async () => subscription.hasReachedEnd(), Boolean);

    expect([before, after]).toEqual([false, true]);
  });

  test('which of two Failover consumers is active; the other takes over what was not acknowledged', async ({
    pulsar,
    java,
  }) => {
    const topic = pulsar.newTopic();
    const states = new Map<string, SubscriptionState['state']>();
    const open = async (consumerName: string): Promise<WireConsumer> => {
      const one = await subscribe(pulsar, topic, { type: 'failover', consumerName });
      one.onState(({ state }) => states.set(consumerName, state));
      return one;
    };
    const byName = new Map([
      ['a', await open('a')],
      ['b', await open('b')],
    ]);
    await eventually(
      async () => [...states.values()].sort().join(),
      (all) => all === 'active,standby',
    );
    const active = states.get('a') === 'active' ? 'a' : 'b';
    const other = active === 'a' ? 'b' : 'a';
    await java.produce(pulsar.serviceUrl, topic, numbered(3));
    const first = await receive(byName.get(active)!, 3);
    await byName.get(active)!.acknowledge([first[0]!.id]);
    await byName.get(active)!.close();

    expect(texts(await receive(byName.get(other)!, 2))).toEqual(['message 1', 'message 2']);
    expect(states.get(other)).toBe('active');
  });

  test('that an Exclusive subscription is taken', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await subscribe(pulsar, topic, { type: 'exclusive' });

    await expect(subscribe(pulsar, topic, { type: 'exclusive' })).rejects.toMatchObject({ code: 'CONSUMER_BUSY' });
  });
});
