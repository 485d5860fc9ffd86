// Connections against a scripted server: TLS, credentials, dead peers, hostile bytes, and finding the broker.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { SubscriptionState } from '../../../src/ports/transport.js';
import { WireClient, tokenAuthentication } from '../../../src/wire.js';
import type { TlsOptions } from '../../../src/wire.js';
import { TOPIC, receiveTexts, section, startClient, startSubscription } from '../../support/scripted-consumer.js';
import { SocketClock, WireServer } from '../../support/wire-server.js';

describe('TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pulsework-tls-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });

  const path = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test authority');

  /** A certificate of our authority for one address. */
  function identityFor(alternativeName: string): { readonly cert: string; readonly key: string } {
    writeFileSync(path('extensions'), `subjectAltName=${alternativeName}\n`);
    openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=broker');
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'extensions'];
    openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.pem', ...signing);
    return { cert: readFileSync(path('server.pem'), 'utf8'), key: readFileSync(path('server.key'), 'utf8') };
  }

  async function connect(alternativeName: string, tls: TlsOptions) {
    const server = await WireServer.start({}, identityFor(alternativeName));
    const client = new WireClient({ serviceUrl: server.url, tls, operationTimeoutMs: 0 });
    open.push(server, client);
    return { server, subscribed: client.subscribe({ topics: [TOPIC], subscription: 's' }) };
  }
  const ca = readFileSync(path('ca.pem'));

  it('a broker with a certificate of the given authority, for its address, is used', async () => {
    const { server, subscribed } = await connect('IP:127.0.0.1', { ca });

    await expect(subscribed).resolves.toBeDefined();
    await expect(server.command('FLOW')).resolves.toMatchObject({ messagePermits: 1_000 });
  });

  it('one of an unknown authority is refused', async () => {
    const { subscribed } = await connect('IP:127.0.0.1', {});

    await expect(subscribed).rejects.toMatchObject({
      code: 'CONNECTION_LOST',
      message: /unable to verify|self.signed/,
    });
  });

  it('one for another host is refused, unless names are not to be verified', async () => {
    const { subscribed } = await connect('DNS:other.example', { ca });
    await expect(subscribed).rejects.toThrow(/does not match/);

    const trusting = await connect('DNS:other.example', { ca, verifyHostName: false });
    await expect(trusting.subscribed).resolves.toBeDefined();
  });
});

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
