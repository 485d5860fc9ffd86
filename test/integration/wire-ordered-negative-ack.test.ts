// The order of a key that failed (PIP-493) on a broker that cannot keep it, as all of today: who requires it is told so by
// name, who does not goes on, and the command that such a broker does not know is never sent.
import { afterEach, describe, expect, vi } from 'vitest';
import type { OrderedNegativeAckMode, SubscriptionSpec } from '../../src/core/subscription-spec.js';
import { Connection } from '../../src/transports/wire/connection.js';
import { wire } from '../../src/wire.js';
import type { WireSubscription, WireTransport } from '../../src/wire.js';
import { receive, texts } from '../support/received.js';
import { test } from '../support/real-pulsar/integration-test.js';

const opened: WireTransport[] = [];
afterEach(async () => {
  for (const transport of opened.splice(0)) await transport.close();
  vi.restoreAllMocks();
});

function open(serviceUrl: string): WireTransport {
  const transport = wire({ serviceUrl, experimentalOrderedNegativeAck: true });
  opened.push(transport);
  return transport;
}

const subscribe = (transport: WireTransport, topic: string, orderedNegativeAck: OrderedNegativeAckMode) => {
  const spec: SubscriptionSpec = {
    ...{ topics: [topic], subscription: 's', initialPosition: 'earliest', consumerName: 'c', prefetch: 10 },
    type: 'key-shared',
    orderedNegativeAck,
  };
  return transport.subscribe(spec) as Promise<WireSubscription>;
};

describe('a broker without the feature', () => {
  test('ends the connection at the command, so that nobody may send it there', async ({ pulsar }) => {
    const sent = vi.spyOn(Connection.prototype, 'send');
    await subscribe(open(pulsar.serviceUrl), pulsar.newTopic(), 'best-effort');
    const connection = sent.mock.contexts.at(-1) as Connection;

    connection.send('NEGATIVE_ACK', { consumerId: 1, negativeAcked: [{ ledgerId: 1, entryId: 1 }] });

    await expect(connection.closed).resolves.toMatchObject({ code: 'CONNECTION_LOST' });
  });

  test('is refused by who requires it, by the name of the partition', async ({ pulsar }) => {
    const topic = pulsar.newTopic();
    await pulsar.admin.createPartitionedTopic(topic, 2);

    await expect(subscribe(open(pulsar.serviceUrl), topic, 'required')).rejects.toMatchObject({
      ...{ code: 'NOT_SUPPORTED', retriable: false },
      message: expect.stringMatching(
        /-partition-[01]: "orderedNegativeAck" is "required", and its broker does not have it/,
      ),
    });
  });

  test('serves who takes it where it is: what failed comes when asked for, what is returned at once', async ({
    pulsar,
  }) => {
    const topic = pulsar.newTopic();
    const transport = open(pulsar.serviceUrl);
    const sent = vi.spyOn(Connection.prototype, 'send');
    const subscription = await subscribe(transport, topic, 'best-effort');
    const publisher = await transport.publisher(topic);
    for (const text of ['a1', 'a2', 'a3']) {
      const message = { payload: Buffer.from(text), key: 'a', properties: {} };
      await publisher.publish(message, publisher.nextSequenceId());
    }
    const [first, second, third] = (await receive(subscription, 3)).map(({ id }) => id);

    subscription.negativeAcknowledgeOrdered([first!], [second!, third!]);
    const returned = await receive(subscription, 2);
    await subscription.redeliver([first!]);
    const failed = await receive(subscription, 1);
    await subscription.acknowledge([...returned, ...failed].map(({ id }) => id));

    expect([texts(returned), texts(failed)]).toEqual([['a2', 'a3'], ['a1']]);
    expect(subscription.states()).toMatchObject([{ connection: 1, state: 'connected', orderedNegativeAck: false }]);
    expect(sent.mock.calls.map(([name]) => name)).toContain('REDELIVER_UNACKNOWLEDGED_MESSAGES');
    expect(sent.mock.calls.map(([name]) => name)).not.toContain('NEGATIVE_ACK');
  });
});
