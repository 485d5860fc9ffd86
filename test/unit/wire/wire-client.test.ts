// The client against a scripted server: what a real broker does not produce on demand.

import { describe, expect, it } from 'vitest';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import { WireClient } from '../../../src/wire.js';
import { encodeSend } from '../../../src/transports/wire/protocol/frames.js';
import type { WireOptions } from '../../../src/transports/wire/wire-options.js';
import { SocketClock, WireServer, messageFrame, sectionOf } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';
import { closedAfterTest } from '../../support/closed-after-test.js';

const TOPIC = 'persistent://public/default/t';
const never = new AbortController().signal;
async function start(script: Script = {}, options: Partial<WireOptions> = {}) {
  const server = closedAfterTest(await WireServer.start(script));
  const client = closedAfterTest(
    new WireClient({ serviceUrl: server.url, random: () => 0.5, reconnectMinMs: 1, ...options }),
  );
  return { server, client };
}

/** The section of an entry with `text` as its payload. */
function section(text: string): Buffer {
  const metadata = { producerName: 'p', sequenceId: 0, publishTime: 1 };
  return sectionOf(encodeSend({ producerId: 1, sequenceId: 0 }, metadata, Buffer.from(text)));
}

describe('connection', () => {
  it('a refused authentication fails for good and says what the broker said', async () => {
    const { client } = await start({
      CONNECT: (_, peer) => peer.send('ERROR', { requestId: -1, error: 3, message: 'bad token' }),
    });

    await expect(client.publisher(TOPIC)).rejects.toMatchObject({
      retriable: false,
      message: expect.stringMatching(/AuthenticationError, "bad token"/) as unknown,
    });
  });

  it('a challenge is answered with fresh credentials', async () => {
    let token = 0;
    const authentication = { method: 'token', data: () => `token-${++token}` };
    const { server, client } = await start({}, { authentication });
    await client.publisher(TOPIC);

    server.peers[0]?.send('AUTH_CHALLENGE', { challenge: { authMethodName: 'token' } });

    const { response } = await server.command('AUTH_RESPONSE');
    expect(Buffer.from(response?.authData ?? '').toString()).toBe('token-2');
  });

  it('a ping is answered', async () => {
    const { server, client } = await start();
    await client.publisher(TOPIC);

    server.peers[0]?.send('PING', {});

    await expect(server.command('PONG')).resolves.toEqual({});
  });

  it('a server that never says CONNECTED costs the connect timeout', async () => {
    const clock = new SocketClock();
    const { server, client } = await start({ CONNECT: () => undefined }, { clock, operationTimeoutMs: 0 });
    const failure = client.publisher(TOPIC).catch((error: unknown) => error);
    await server.command('CONNECT');

    await clock.advanceBy(10_000);

    await expect(failure).resolves.toMatchObject({
      code: 'CONNECTION_LOST',
      message: expect.stringMatching(/no CONNECTED within 10000 ms/) as unknown,
    });
  });

  it('a server that falls silent is taken for dead after two intervals and a grace', async () => {
    const clock = new SocketClock();
    const { server, client } = await start({ PING: () => undefined }, { clock, keepAliveMs: 1_000 });
    const subscription = await client.subscribe({ topics: [TOPIC], subscription: 's' });
    const states: SubscriptionState['state'][] = [];
    subscription.onState(({ state }) => states.push(state));

    await clock.advanceBy(1_000);
    await server.command('PING');
    await clock.advanceBy(1_999);
    expect(states).toEqual(['connected']);
    await clock.advanceBy(1);

    expect(states).toEqual(['connected', 'lost']);
  });

  it('an unanswered request fails after its time limit', async () => {
    const clock = new SocketClock();
    const { server, client } = await start({ PRODUCER: () => undefined }, { clock, operationTimeoutMs: 0 });
    const failure = client.publisher(TOPIC).catch((error: unknown) => error);
    await server.command('PRODUCER');

    await clock.advanceBy(30_000);

    await expect(failure).resolves.toMatchObject({
      code: 'CALL_TIMED_OUT',
      message: expect.stringMatching(/PRODUCER of persistent/) as unknown,
    });
  });
});

describe('lookup', () => {
  it('redirects in a circle end after twenty', async () => {
    const { server, client } = await start(
      {
        LOOKUP: ({ requestId }, peer) =>
          peer.send('LOOKUP_RESPONSE', { requestId, response: 0, brokerServiceUrl: server.url, authoritative: true }),
      },
      { operationTimeoutMs: 0 },
    );

    await expect(client.publisher(TOPIC)).rejects.toThrow('more than 20 redirects');
    expect(server.received.filter(({ name }) => name === 'LOOKUP')).toHaveLength(21);
  });

  it('a broker behind a proxy is reached through the proxy that was asked', async () => {
    const { server, client } = await start({
      LOOKUP: ({ requestId }, peer) =>
        peer.send('LOOKUP_RESPONSE', {
          requestId,
          response: 1,
          brokerServiceUrl: 'pulsar://inside:6650',
          proxyThroughServiceUrl: true,
        }),
    });

    await client.publisher(TOPIC);

    await expect(server.command('CONNECT', 2)).resolves.toMatchObject({ proxyToBrokerUrl: 'inside:6650' });
  });

  it('a topic that does not exist fails with its code, at once', async () => {
    const { client } = await start({
      PARTITIONED_METADATA: ({ requestId }, peer) =>
        peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, response: 1, error: 11, message: 'no topic' }),
    });

    await expect(client.publisher(TOPIC)).rejects.toMatchObject({ code: 'TOPIC_NOT_FOUND', retriable: false });
  });

  it('a broker that is not ready is looked up again', async () => {
    let refused = 0;
    const { server, client } = await start({
      PRODUCER: ({ requestId }, peer) =>
        refused++ === 0
          ? peer.send('ERROR', { requestId, error: 6, message: 'not served here' })
          : peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'p' }),
    });

    await client.publisher(TOPIC);

    expect(server.received.filter(({ name }) => name === 'LOOKUP')).toHaveLength(2);
  });
});

describe('consumer', () => {
  const subscribe = (client: WireClient, prefetch = 10) =>
    client.subscribe({ topics: [TOPIC], subscription: 's', prefetch });

  it('no permits are granted before the subscription is confirmed', async () => {
    let confirm = (): void => undefined;
    const { client, server } = await start({
      SUBSCRIBE: ({ requestId }, peer) => (confirm = () => peer.send('SUCCESS', { requestId })),
    });
    const opening = subscribe(client);
    await server.command('SUBSCRIBE');
    expect(server.received.some(({ name }) => name === 'FLOW')).toBe(false);
    confirm();
    await opening;

    await expect(server.command('FLOW')).resolves.toMatchObject({ messagePermits: 10 });
  });

  it('two losses in a row leave one consumer with one full set of permits', async () => {
    const { client, server } = await start();
    const subscription = await subscribe(client);
    const { consumerId } = await server.command('FLOW');
    server.peers[0]?.send('CLOSE_CONSUMER', { consumerId, requestId: -1 });
    await server.command('SUBSCRIBE', 2);
    server.peers[0]?.cut();
    await server.command('FLOW', server.received.filter(({ name }) => name === 'FLOW').length + 1);
    const last = server.received.map(({ name }) => name).lastIndexOf('SUBSCRIBE');

    const after = server.received.slice(last).filter(({ name }) => name === 'FLOW');
    expect(after.map(({ body }) => (body as { messagePermits: number }).messagePermits)).toEqual([10]);
    await subscription.close();
  });

  it('an acknowledgement under way fails when the broker closes the consumer', async () => {
    const { client, server } = await start({ ACK: () => undefined });
    const subscription = await subscribe(client);
    const { consumerId } = await server.command('FLOW');
    server.peers[0]?.raw(messageFrame({ consumerId, messageId: { ledgerId: 1, entryId: 1 } }, section('one')));
    const message = await subscription.receive(never);
    const failure = subscription
      .acknowledge(message === undefined ? [] : [message.id])
      .catch((error: unknown) => error);
    await server.command('ACK');

    server.peers[0]?.send('CLOSE_CONSUMER', { consumerId, requestId: -1 });

    await expect(failure).resolves.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
  });

  it('a taken place is told at once', async () => {
    const { client } = await start({
      SUBSCRIBE: ({ requestId }, peer) => peer.send('ERROR', { requestId, error: 5, message: 'Exclusive' }),
    });

    await expect(subscribe(client)).rejects.toMatchObject({ code: 'CONSUMER_BUSY' });
  });
});
