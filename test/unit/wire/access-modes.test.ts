// Exclusive producers, migrated topics and what the broker shows of producers, against a scripted server.
import { describe, expect, it, vi } from 'vitest';
import { startClient } from '../../support/scripted-consumer.js';
import { SocketClock, WireServer } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

const TOPIC = 'persistent://public/default/t';
const FENCED = 25;
const message = { payload: Buffer.from('one'), properties: {} };

describe('a producer', () => {
  it('says what it is, how it wants the topic, and what the broker is to show', async () => {
    const { client, server } = await startClient();

    const options = { accessMode: 'exclusive-with-fencing', producerName: 'p', properties: { team: 'a' } } as const;
    await client.publisher(TOPIC, options);

    await expect(server.command('PRODUCER')).resolves.toMatchObject({
      producerAccessMode: 3,
      producerName: 'p',
      metadata: [{ key: 'team', value: 'a' }],
    });
  });

  it('in line waits without a time limit until the broker says that it is ready', async () => {
    const clock = new SocketClock();
    const { client, server } = await startClient(
      {
        PRODUCER: ({ requestId }, peer) =>
          peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', producerReady: false }),
      },
      { clock, keepAliveMs: 10_000_000 },
    );
    let isOpen = false;
    const opening = client.publisher(TOPIC, { accessMode: 'wait-for-exclusive' }).then(() => (isOpen = true));
    const { requestId } = await server.command('PRODUCER');
    server.peers.at(-1)?.send('PING', {});
    await server.command('PONG');

    await clock.advanceBy(3_600_000);
    expect(isOpen).toBe(false);
    server.peers.at(-1)?.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', producerReady: true });

    await opening;
  });

  it('in line takes its place again when the connection is lost, however long it has waited', async () => {
    let first = true;
    const { client, server } = await startClient(
      {
        PRODUCER: ({ requestId }, peer) => {
          peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', producerReady: !first });
          first = false;
        },
      },
      { operationTimeoutMs: 0 },
    );
    const opening = client.publisher(TOPIC, { accessMode: 'wait-for-exclusive' });
    await server.command('PRODUCER');
    server.peers.at(-1)?.send('PING', {});
    await server.command('PONG');

    server.peers.at(-1)?.cut();

    await opening;
    await expect(server.command('PRODUCER', 2)).resolves.toMatchObject({ producerAccessMode: 2 });
  });

  it('that waits fails when it is fenced, and when the client closes', async () => {
    const script: Script = {
      PRODUCER: ({ requestId }, peer) => {
        peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', producerReady: false });
      },
    };
    const { client, server } = await startClient(script);
    const fenced = client.publisher(TOPIC, { accessMode: 'wait-for-exclusive' });
    const { requestId } = await server.command('PRODUCER');
    server.peers.at(-1)?.send('ERROR', { requestId, error: FENCED, message: 'fenced' });
    await expect(fenced).rejects.toMatchObject({ code: 'PRODUCER_FENCED' });
    const closed = client.publisher(TOPIC, { accessMode: 'wait-for-exclusive' });
    closed.catch(() => undefined);
    await server.command('PRODUCER', 2);

    await client.close();

    await expect(closed).rejects.toMatchObject({ code: 'ALREADY_CLOSED' });
  });

  it('that is fenced when it comes back is not tried again: there would be two', async () => {
    let registrations = 0;
    const { client, server } = await startClient({
      PRODUCER: ({ requestId }, peer) =>
        registrations++ === 0
          ? peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', topicEpoch: 4 })
          : peer.send('ERROR', { requestId, error: FENCED, message: 'fenced' }),
    });
    const publisher = await client.publisher(TOPIC, { accessMode: 'exclusive' });

    server.peers.at(-1)?.cut();

    await expect(server.command('PRODUCER', 2)).resolves.toMatchObject({ topicEpoch: 4 });
    await vi.waitFor(() =>
      expect(publisher.publish(message, publisher.nextSequenceId())).rejects.toMatchObject({
        code: 'PRODUCER_FENCED',
        retriable: false,
      }),
    );
    expect(server.received.filter(({ name }) => name === 'PRODUCER')).toHaveLength(2);
  });

  it('takes the partitions of a topic one after the other, so that two who want all never wait for each other', async () => {
    const { client, server } = await startClient({
      PARTITIONED_METADATA: ({ requestId }, peer) =>
        peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions: 3, response: 0 }),
      PRODUCER: ({ requestId, topic }, peer) =>
        peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p', producerReady: topic.endsWith('-0') }),
    });
    const opening = client.publisher(TOPIC, { accessMode: 'wait-for-exclusive' });
    opening.catch(() => undefined);
    await server.command('PRODUCER', 2);
    server.peers.at(-1)?.send('PING', {});
    await server.command('PONG');

    const topics = server.received.flatMap(({ name, body }) =>
      name === 'PRODUCER' ? [(body as { topic: string }).topic] : [],
    );
    expect(topics).toEqual([`${TOPIC}-partition-0`, `${TOPIC}-partition-1`]);
  });

  it('with wrong options is refused with all that is wrong', async () => {
    const { client } = await startClient();
    const wrong = { accessMode: 'alone' as never, properties: { a: 1 as never }, partitionsUpdateMs: -1 };

    await expect(client.publisher(TOPIC, wrong)).rejects.toMatchObject({ problems: { length: 3 } });
  });
});

describe('a topic that migrated', () => {
  const urlsOf = (other: WireServer) => ({ brokerServiceUrl: other.url });

  it('is published to on the other cluster, with what had no receipt yet', async () => {
    const other = await WireServer.start();
    const { client, server } = await startClient({ SEND: () => undefined });
    const publisher = await client.publisher(TOPIC);
    const receipt = publisher.publish(message, publisher.nextSequenceId());
    const { producerId } = await server.command('SEND');

    server.peers.at(-1)?.send('TOPIC_MIGRATED', { resourceId: producerId, resourceType: 0, ...urlsOf(other) });
    server.peers.at(-1)?.send('CLOSE_PRODUCER', { producerId, requestId: -1 });

    await expect(receipt).resolves.toMatchObject({ ledgerId: 1 });
    await expect(other.command('LOOKUP')).resolves.toMatchObject({ topic: TOPIC });
    await other.close();
  });

  it('is read on the other cluster', async () => {
    const other = await WireServer.start();
    const { client, server } = await startClient();
    await client.subscribe({ topics: [TOPIC], subscription: 's' });
    const { consumerId } = await server.command('FLOW');

    server.peers.at(-1)?.send('TOPIC_MIGRATED', { resourceId: consumerId, resourceType: 1, ...urlsOf(other) });
    server.peers.at(-1)?.send('CLOSE_CONSUMER', { consumerId, requestId: -1 });

    await expect(other.command('SUBSCRIBE')).resolves.toMatchObject({ topic: TOPIC, subscription: 's' });
    await other.command('FLOW');
    await other.close();
  });

  it('sends who only registers to the other cluster, without an answer to the registration', async () => {
    const other = await WireServer.start();
    const { client, server } = await startClient({
      PRODUCER: ({ producerId }, peer) => {
        peer.send('TOPIC_MIGRATED', { resourceId: producerId, resourceType: 0, ...urlsOf(other) });
        peer.send('CLOSE_PRODUCER', { producerId, requestId: -1 });
      },
    });

    await client.publisher(TOPIC);

    await other.command('PRODUCER');
    expect(server.received.filter(({ name }) => name === 'PRODUCER')).toHaveLength(1);
    await other.close();
  });

  it('is announced: the protocol version says that it is understood', async () => {
    const { client, server } = await startClient();
    await client.publisher(TOPIC);

    await expect(server.command('CONNECT')).resolves.toMatchObject({
      protocolVersion: 20,
      featureFlags: { supportsTopicWatchers: true },
    });
  });
});
