// A subscription by pattern against a scripted server: what is told, what is asked, and what comes between the two.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import type { Script } from '../../support/wire-server.js';
import { SocketClock } from '../../support/wire-server.js';
import { never, section, startClient } from '../../support/scripted-consumer.js';
import { messageFrame } from '../../support/wire-server.js';
import type { WireConsumerOptions, WireOptions } from '../../../src/wire.js';

const PREFIX = 'persistent://public/default/';
const full = (...names: string[]): string[] => names.map((name) => `${PREFIX}${name}`);
const NOT_ALLOWED = 22;
const TOPIC_NOT_FOUND = 11;

afterEach(() => vi.restoreAllMocks());

/** A broker with topics, which tells of those that come and go where `watches`. */
function namespaceOf(topics: string[], more: { readonly watches?: boolean; readonly script?: Script } = {}) {
  const { watches = true, script = {} } = more;
  const list = { topics: full(...topics), hash: 1 };
  const answers: Script = {
    CONNECT: (_, peer) =>
      peer.send('CONNECTED', {
        serverVersion: 'scripted',
        protocolVersion: 20,
        maxMessageSize: 100_000,
        featureFlags: { supportsTopicWatchers: watches, supportsGetPartitionedMetadataWithoutAutoCreation: true },
      }),
    WATCH_TOPIC_LIST: ({ requestId, watcherId }, peer) =>
      peer.send('WATCH_TOPIC_LIST_SUCCESS', { requestId, watcherId, topics: list.topics, topicsHash: `${list.hash}` }),
    WATCH_TOPIC_LIST_CLOSE: ({ requestId }, peer) => peer.send('SUCCESS', { requestId }),
    GET_TOPICS_OF_NAMESPACE: ({ requestId, topicsHash }, peer) => {
      const changed = topicsHash !== `${list.hash}`;
      const { topics } = list;
      const answer = { requestId, changed, topicsHash: `${list.hash}`, ...(changed ? { topics } : {}) };
      peer.send('GET_TOPICS_OF_NAMESPACE_RESPONSE', answer);
    },
    ...script,
  };
  const set = (...names: string[]): void => {
    list.topics = full(...names);
    list.hash += 1;
  };
  return { list, set, answers };
}

async function start(
  { answers }: { readonly answers: Script },
  options: Partial<WireConsumerOptions> = {},
  client: Partial<WireOptions> = {},
) {
  const started = await startClient(answers, client);
  const { server } = started;
  const subscription = await started.client.subscribe({ pattern: 'orders-.*', subscription: 's', ...options });
  const names = (): readonly string[] =>
    subscription
      .topics()
      .map((topic) => topic.slice(PREFIX.length))
      .sort();
  return {
    ...started,
    subscription,
    names,
    /** Says that topics came and went. */
    tell: async (newTopics: string[], deletedTopics: string[] = []): Promise<void> => {
      const { watcherId } = await server.command('WATCH_TOPIC_LIST');
      const update = { watcherId, newTopics: full(...newTopics), deletedTopics: full(...deletedTopics) };
      server.peers.at(-1)?.send('WATCH_TOPIC_UPDATE', { ...update, topicsHash: 'told' });
    },
    until: (expected: readonly string[]) =>
      vi.waitFor(() => expect(names()).toEqual(expected), { timeout: 5_000, interval: 2 }),
    subscribed: (topic: string) =>
      server.received.flatMap(({ name, body }) =>
        name === 'SUBSCRIBE' && (body as { topic: string }).topic === PREFIX + topic
          ? [body as { initialPosition?: number; forceTopicCreation?: boolean; consumerId: number }]
          : [],
      ),
  };
}

describe('where the broker tells of topics', () => {
  it('those that match are read, also when the broker does not filter', async () => {
    const { names } = await start(namespaceOf(['orders-a', 'other', 'orders-b', '__orders-c', 'orders-s-DLQ']));

    expect(names()).toEqual(['orders-a', 'orders-b']);
  });

  it('those that are deleted have nothing to ask back: a negative acknowledgement of their message is no error', async () => {
    const { tell, until, subscription, subscribed, server } = await start(namespaceOf(['orders-a', 'orders-b']), {
      negativeAckRedeliveryDelayMs: 0,
    });
    const consumerId = subscribed('orders-b')[0]!.consumerId;
    server.peers.at(-1)?.raw(messageFrame({ consumerId, messageId: { ledgerId: 1, entryId: 1 } }, section('one')));
    const message = await subscription.receive(never);
    await tell([], ['orders-b']);
    await until(['orders-a']);

    subscription.negativeAcknowledge(message!);
    subscription.negativeAcknowledgeId(message!.id);

    await subscription.close();
    expect(server.received.some(({ name }) => name === 'REDELIVER_UNACKNOWLEDGED_MESSAGES')).toBe(false);
  });

  it('those that are made later join, from where the subscription begins', async () => {
    const { tell, until, subscribed } = await start(namespaceOf(['orders-a']));

    await tell(['orders-b', 'other']);

    await until(['orders-a', 'orders-b']);
    expect(subscribed('orders-b')).toMatchObject([{ initialPosition: 1, forceTopicCreation: false }]);
  });

  it('those that are deleted leave, and late settlements of their messages say so', async () => {
    const { tell, until, subscription, subscribed, server } = await start(namespaceOf(['orders-a', 'orders-b']));
    const states: SubscriptionState[] = [];
    subscription.onState((state) => states.push(state));
    const consumerId = subscribed('orders-b')[0]!.consumerId;
    server.peers.at(-1)?.raw(messageFrame({ consumerId, messageId: { ledgerId: 1, entryId: 1 } }, section('one')));
    const message = await subscription.receive(never);

    await tell([], ['orders-b']);

    await until(['orders-a']);
    await server.command('CLOSE_CONSUMER');
    await vi.waitFor(() => expect(states.at(-1)).toMatchObject({ topic: `${PREFIX}orders-b`, state: 'lost' }));
    await expect(subscription.acknowledge([message!.id])).rejects.toMatchObject({
      code: 'TOPIC_NOT_FOUND',
      retriable: false,
    });
  });

  it('a topic that is made between the list and the watching is found at once', async () => {
    const broker = namespaceOf(['orders-a']);
    const { WATCH_TOPIC_LIST: watch } = broker.answers;
    broker.answers.WATCH_TOPIC_LIST = (body, peer) => {
      watch?.(body, peer);
      broker.set('orders-a', 'orders-b');
    };

    const { names } = await start(broker);

    expect(names()).toEqual(['orders-a', 'orders-b']);
  });

  it('what is told while a list is under way is not undone by that list', async () => {
    const broker = namespaceOf(['orders-a', 'orders-b']);
    broker.answers.GET_TOPICS_OF_NAMESPACE = ({ requestId }, peer) => {
      const newTopics = full('orders-c');
      peer.send('WATCH_TOPIC_UPDATE', { watcherId: 1, newTopics, deletedTopics: full('orders-a'), topicsHash: 'x' });
      const topics = full('orders-a', 'orders-b');
      peer.send('GET_TOPICS_OF_NAMESPACE_RESPONSE', { requestId, topics, topicsHash: 'older' });
    };

    const { names } = await start(broker);

    expect(names()).toEqual(['orders-b', 'orders-c']);
  });

  it('they are watched again after the connection was lost, and what came meanwhile joins', async () => {
    const broker = namespaceOf(['orders-a']);
    const { server, until } = await start(broker);
    broker.set('orders-a', 'orders-b');

    server.peers.at(-1)?.cut();

    await server.command('WATCH_TOPIC_LIST', 2);
    await until(['orders-a', 'orders-b']);
  });

  it('a pattern that the broker refuses is watched as the whole namespace', async () => {
    const broker = namespaceOf(['orders-a', 'other']);
    const { WATCH_TOPIC_LIST: watch } = broker.answers;
    broker.answers.WATCH_TOPIC_LIST = (body, peer) => {
      if (body.topicsPattern === `${PREFIX}.*`) return watch?.(body, peer);
      peer.send('ERROR', { requestId: body.requestId, error: NOT_ALLOWED, message: 'too long' });
    };

    const { names, tell, until } = await start(broker);

    expect(names()).toEqual(['orders-a']);
    await tell(['orders-b']);
    await until(['orders-a', 'orders-b']);
  });

  it('closing ends the watching', async () => {
    const { subscription, server } = await start(namespaceOf(['orders-a']));

    await subscription.close();

    await expect(server.command('WATCH_TOPIC_LIST_CLOSE')).resolves.toMatchObject({ watcherId: 1 });
  });
});

describe('where the broker does not tell', () => {
  it('it is asked at an interval, and says nothing when nothing changed', async () => {
    const clock = new SocketClock();
    const broker = namespaceOf(['orders-a'], { watches: false });
    const { server, until } = await start(broker, {}, { clock, keepAliveMs: 10_000_000, requestTimeoutMs: 10_000_000 });
    expect(server.received.some(({ name }) => name === 'WATCH_TOPIC_LIST')).toBe(false);

    await clock.advanceBy(60_000);
    await expect(server.command('GET_TOPICS_OF_NAMESPACE', 2)).resolves.toMatchObject({ topicsHash: '1' });
    broker.set('orders-b');
    const asked = (): number => server.received.filter(({ name }) => name === 'GET_TOPICS_OF_NAMESPACE').length;
    await vi.waitFor(
      () => {
        void clock.advanceBy(10_000);
        expect(asked()).toBeGreaterThan(2);
      },
      { timeout: 5_000, interval: 5 },
    );

    await until(['orders-b']);
  });

  it('topics that are not stored are asked for without a pattern of the broker', async () => {
    const { server } = await start(namespaceOf([]), { pattern: 'non-persistent://public/default/.*' });

    const asked = await server.command('GET_TOPICS_OF_NAMESPACE');
    expect(asked).toMatchObject({ mode: 1, namespace: 'public/default' });
    expect(asked.topicsPattern).toBeUndefined();
    expect(server.received.some(({ name }) => name === 'WATCH_TOPIC_LIST')).toBe(false);
  });
});

describe('topics of a pattern', () => {
  it('with partitions are read with all of them, and with those that come later from their start', async () => {
    let partitions = 2;
    const broker = namespaceOf(['orders-a-partition-0', 'orders-a-partition-1'], {
      script: {
        PARTITIONED_METADATA: ({ requestId }, peer) =>
          peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions, response: 0 }),
      },
    });
    const { names, tell, until, subscribed, server } = await start(broker, { initialPosition: 'latest' });
    expect(names()).toEqual(['orders-a-partition-0', 'orders-a-partition-1']);

    partitions = 3;
    await tell(['orders-a-partition-2']);

    await until(['orders-a-partition-0', 'orders-a-partition-1', 'orders-a-partition-2']);
    expect(subscribed('orders-a-partition-1')).toMatchObject([{ initialPosition: 0 }]);
    expect(subscribed('orders-a-partition-2')).toMatchObject([{ initialPosition: 1 }]);
    await expect(server.command('PARTITIONED_METADATA')).resolves.toMatchObject({ metadataAutoCreationEnabled: false });
  });

  it('that are gone before they are read are left out', async () => {
    const broker = namespaceOf(['orders-a', 'orders-b']);
    broker.answers.SUBSCRIBE = ({ requestId, topic }, peer) =>
      topic.endsWith('b')
        ? peer.send('ERROR', { requestId, error: TOPIC_NOT_FOUND, message: 'gone' })
        : peer.send('SUCCESS', { requestId });

    const { names } = await start(broker);

    expect(names()).toEqual(['orders-a']);
  });

  it('that cannot be joined for a passing reason are tried again', async () => {
    const broker = namespaceOf(['orders-a']);
    const { tell, until, server } = await start(broker, {}, { operationTimeoutMs: 0 });
    let refused = 0;
    broker.answers.SUBSCRIBE = ({ requestId }, peer) =>
      refused++ < 2
        ? peer.send('ERROR', { requestId, error: 6, message: 'not ready' })
        : peer.send('SUCCESS', { requestId });

    await tell(['orders-b']);

    await server.command('SUBSCRIBE', 4);
    await until(['orders-a', 'orders-b']);
  });

  it('may be none', async () => {
    const { names, subscription, tell, until } = await start(namespaceOf([]));
    expect([names(), subscription.hasReachedEnd()]).toEqual([[], false]);

    await tell(['orders-a']);

    await until(['orders-a']);
  });
});

it('topics and a pattern at once, a bad pattern, a bad interval: all are told at once', async () => {
  const { client } = await startClient();

  await expect(
    client.subscribe({
      topics: ['a'],
      pattern: '(',
      subscription: 's',
      patternUpdateMs: 5,
      properties: { a: 1 as never },
    }),
  ).rejects.toMatchObject({
    problems: [
      expect.stringContaining('exclude each other'),
      expect.stringContaining('is no regular expression'),
      expect.stringContaining('"patternUpdateMs"'),
      expect.stringContaining('"properties" must be texts'),
    ],
  });
  await expect(client.subscribe({ subscription: 's' })).rejects.toThrow('"topics" is missing');
});
