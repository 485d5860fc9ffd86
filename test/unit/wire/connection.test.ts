// Connections against a scripted server: credentials, dead peers, hostile bytes, and finding the broker.
import { describe, expect, it } from 'vitest';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import { tokenAuthentication } from '../../../src/wire.js';
import { TOPIC, receiveTexts, section, startClient, startSubscription } from '../../support/scripted-consumer.js';
import { SocketClock } from '../../support/wire-server.js';

describe('credentials', () => {
  it('that the broker wants renewed are asked of their supplier again', async () => {
    let calls = 0;
    const authentication = tokenAuthentication(async () => `token ${++calls}`);
    const { server, say } = await startSubscription({}, {}, { authentication });
    say('AUTH_CHALLENGE', { challenge: { authMethodName: 'token', authData: Buffer.from('PulsarAuthRefresh') } });

    const { response } = await server.command('AUTH_RESPONSE');

    expect([response?.authMethodName, Buffer.from(response?.authData ?? []).toString()]).toEqual(['token', 'token 2']);
  });

  it('that cannot be renewed cost the connection, and the next one asks again', async () => {
    let calls = 0;
    const authentication = tokenAuthentication(() => {
      calls += 1;
      if (calls === 2) throw new Error('no token today');
      return `token ${calls}`;
    });
    const { server, say } = await startSubscription({}, {}, { authentication });
    say('AUTH_CHALLENGE', { challenge: { authMethodName: 'token' } });

    const { authData } = await server.command('CONNECT', 2);

    expect(Buffer.from(authData ?? []).toString()).toBe('token 3');
  });

  it('that have expired do not make what was asked meanwhile look refused for good', async () => {
    const { subscription, server, say } = await startSubscription({}, { GET_LAST_MESSAGE_ID: () => undefined });
    const failure = subscription.lastMessageIds().catch((error: unknown) => error);
    await server.command('GET_LAST_MESSAGE_ID');
    say('ERROR', { requestId: -1, error: 3, message: 'expired' });

    await expect(failure).resolves.toMatchObject({ code: 'CONNECTION_LOST', retriable: true });
  });

  it('that are refused fail for good with a code of their own', async () => {
    const { client } = await startClient({
      CONNECT: (_, peer) => peer.send('ERROR', { requestId: -1, error: 3, message: 'who are you' }),
    });

    await expect(client.subscribe({ topics: [TOPIC], subscription: 's' })).rejects.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      retriable: false,
    });
  });
});

describe('a silent peer', () => {
  const KEEP_ALIVE = { keepAliveMs: 1_000, connectTimeoutMs: 60_000 };

  it('is left after an interval without a word and the grace, and the subscription comes back elsewhere', async () => {
    const clock = new SocketClock();
    const { server, subscription, deliver } = await startSubscription(
      {},
      { PING: () => undefined },
      { ...KEEP_ALIVE, clock },
    );
    const states: SubscriptionState['state'][] = [];
    subscription.onState(({ state }) => states.push(state));
    await clock.advanceBy(1_000);
    await server.command('PING');

    await clock.advanceBy(2_000);
    expect(states).toEqual(['connected', 'lost']);
    await clock.advanceBy(10);
    await server.command('SUBSCRIBE', 2);
    await server.command('FLOW', server.received.filter(({ name }) => name === 'FLOW').length + 1);
    deliver(0, section('after'));

    expect(await receiveTexts(subscription, 1)).toEqual(['after']);
  });

  it('whose words come within the grace, say after a long computation here, is not left', async () => {
    const clock = new SocketClock();
    const { server, subscription, settled } = await startSubscription(
      {},
      { PING: () => undefined },
      { ...KEEP_ALIVE, clock },
    );
    const states: SubscriptionState['state'][] = [];
    subscription.onState(({ state }) => states.push(state));
    await clock.advanceBy(1_000);
    await server.command('PING');
    await clock.advanceBy(1_000);
    await settled();
    await clock.advanceBy(1_000);

    expect(states).toEqual(['connected']);
  });
});

describe('what is not the protocol', () => {
  it('ends the connection with a reason that names it', async () => {
    const { client } = await startClient(
      { CONNECT: (_, peer) => peer.raw(Buffer.from('HTTP/1.1 400 Bad Request')) },
      { operationTimeoutMs: 0 },
    );

    await expect(client.publisher(TOPIC)).rejects.toThrow('a frame of 1213486160 bytes');
  });

  it('costs one connection, and the subscription goes on over the next', async () => {
    const { server, say, consumerId, subscription, deliver } = await startSubscription();
    server.peers[0]?.raw(Buffer.from('0000000a000000060802ffffffffff', 'hex'));
    await server.command('FLOW', 2);
    deliver(0, section('after'));

    expect(await receiveTexts(subscription, 1)).toEqual(['after']);
    say('CLOSE_CONSUMER', { consumerId, requestId: -1 });
  });
});

describe('finding the broker', () => {
  it('too many requests are asked again later, for partitions and for the broker', async () => {
    let refusals = 4;
    const refuse = (): boolean => refusals-- > 0;
    const { server, client } = await startClient({
      PARTITIONED_METADATA: ({ requestId }, peer) =>
        refusals > 2 && refuse()
          ? peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, response: 1, error: 14, message: 'too many' })
          : peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, response: 0, partitions: 0 }),
      LOOKUP: ({ requestId }, peer) =>
        refuse()
          ? peer.send('LOOKUP_RESPONSE', { requestId, response: 2, error: 14, message: 'too many' })
          : peer.send('LOOKUP_RESPONSE', { requestId, response: 1, brokerServiceUrl: server.url }),
    });

    await client.subscribe({ topics: [TOPIC], subscription: 's' });

    const names = server.received.map(({ name }) => name);
    expect(names.filter((name) => name === 'PARTITIONED_METADATA' || name === 'LOOKUP')).toEqual([
      ...['PARTITIONED_METADATA', 'PARTITIONED_METADATA', 'PARTITIONED_METADATA'],
      ...['LOOKUP', 'LOOKUP', 'LOOKUP'],
    ]);
  });

  it('no more than fifty lookups are under way at once', async () => {
    let underWay = 0;
    let most = 0;
    const { server, client } = await startClient({
      LOOKUP: ({ requestId }, peer) => {
        underWay += 1;
        most = Math.max(most, underWay);
        setImmediate(() => {
          underWay -= 1;
          peer.send('LOOKUP_RESPONSE', { requestId, response: 1, brokerServiceUrl: server.url });
        });
      },
    });

    await client.subscribe({ topics: Array.from({ length: 120 }, (_, i) => `t${i}`), subscription: 's' });

    expect(most).toBe(50);
    expect(server.received.filter(({ name }) => name === 'SUBSCRIBE')).toHaveLength(120);
  });

  it('a service that cannot be reached yet is tried again until it can', async () => {
    let refused = 0;
    const { client } = await startClient({
      CONNECT: (_, peer) => {
        if (refused++ < 3) peer.cut();
        else peer.send('CONNECTED', { serverVersion: 'scripted', protocolVersion: 19 });
      },
    });

    await expect(client.subscribe({ topics: [TOPIC], subscription: 's' })).resolves.toBeDefined();
    expect(refused).toBe(4);
  });
});
