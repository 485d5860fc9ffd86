// Service URLs with several hosts, and Pulsar proxies: which host is asked, and where producers and consumers connect.
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WireClient } from '../../../src/wire.js';
import type { WireOptions } from '../../../src/wire.js';
import { FaultyProxy } from '../../support/real-pulsar/faulty-proxy.js';
import { SocketClock, WireServer } from '../../support/wire-server.js';
import type { Script } from '../../support/wire-server.js';

const TOPIC = 'persistent://public/default/t';
/** The first host of the list is asked first, or the second one of two. */
const FIRST = { random: () => 0 };
const SECOND = { random: () => 0.9 };

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

async function broker(script: Script = {}): Promise<WireServer> {
  const server = await WireServer.start(script);
  open.push(server);
  return server;
}

function clientOf(hosts: readonly (WireServer | FaultyProxy | string)[], options: Partial<WireOptions> = {}) {
  const texts = hosts.map((host) => (typeof host === 'string' ? host : hostOf(host)));
  const client = new WireClient({ serviceUrl: `pulsar://${texts.join(',')}`, reconnectMinMs: 1, ...FIRST, ...options });
  open.push(client);
  return client;
}

const hostOf = (server: WireServer | FaultyProxy): string =>
  new URL(server instanceof WireServer ? server.url : server.serviceUrl).host;
const connects = (server: WireServer): number => server.received.filter(({ name }) => name === 'CONNECT').length;

/** A port of this machine where nobody listens. */
async function deadHost(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

const refuse = (error: number): Script => ({
  CONNECT: (_, peer) => peer.send('ERROR', { requestId: -1, error, message: 'no' }),
});

describe('several hosts', () => {
  it.each([
    ['first', FIRST, [1, 0]],
    ['second', SECOND, [0, 1]],
  ])('the %s one is asked where chance says so, and no other', async (_, chance, expected) => {
    const servers = [await broker(), await broker()];
    await clientOf(servers, chance).publisher(TOPIC);

    expect(servers.map(connects)).toEqual(expected);
  });

  it('the next one is asked when a host refuses connections, and stays the one', async () => {
    const server = await broker();
    const client = clientOf([await deadHost(), server], { operationTimeoutMs: 0 });
    await Promise.all(Array.from({ length: 25 }, (_, i) => client.publisher(`t${i}`)));

    expect(connects(server)).toBe(1);
  });

  it('after the loss of one the next is asked, and what was open comes back there', async () => {
    const server = await broker();
    const [a, b] = [
      await FaultyProxy.start({ targetPort: Number(new URL(server.url).port) }),
      await FaultyProxy.start({ targetPort: Number(new URL(server.url).port) }),
    ];
    open.push(a, b);
    // Lookups lead to the host that was asked: without a way back to the service nothing would come back.
    let asked = a;
    const script: Script = {
      LOOKUP: ({ requestId }, peer) =>
        peer.send('LOOKUP_RESPONSE', { requestId, response: 1, brokerServiceUrl: asked.serviceUrl }),
    };
    const broken = await broker(script);
    const viaA = await FaultyProxy.start({ targetPort: Number(new URL(broken.url).port) });
    const viaB = await FaultyProxy.start({ targetPort: Number(new URL(broken.url).port) });
    open.push(viaA, viaB);
    const subscription = await clientOf([viaA, viaB]).subscribe({ topics: [TOPIC], subscription: 's' });
    expect([viaA.openConnections, viaB.openConnections, a.openConnections]).toEqual([1, 0, 1]);
    asked = b;
    for (const proxy of [viaA, a]) {
      proxy.refuse();
      proxy.reset();
    }
    await server.command('SUBSCRIBE', 2);

    expect([viaB.openConnections, b.openConnections]).toEqual([1, 1]);
    await subscription.close();
  });

  it('one that takes connections and says nothing holds the others up for its time only', async () => {
    const clock = new SocketClock();
    const silent = await broker({ CONNECT: () => undefined });
    const server = await broker();
    let opened = false;
    const opening = clientOf([silent, server], { clock }).publisher(TOPIC);
    void opening.then(() => (opened = true));
    await silent.command('CONNECT');
    const beganMs = clock.now();
    await clock.advanceUntil(() => opened);

    expect(clock.now() - beganMs).toBeLessThan(11_000);
    expect(connects(server)).toBe(1);
  });

  it('one that refuses for good is passed over', async () => {
    const server = await broker();

    await expect(clientOf([await broker(refuse(3)), server]).publisher(TOPIC)).resolves.toBeDefined();
  });

  it('fail for good only when all do', async () => {
    const [a, b, dead] = [await broker(refuse(3)), await broker(refuse(3)), await deadHost()];

    await expect(clientOf([a, b]).publisher(TOPIC)).rejects.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      retriable: false,
      message: expect.stringContaining(`none of the 2 hosts of the service can be used: ${hostOf(a)}: `) as unknown,
    });
    await expect(clientOf([a, dead], { operationTimeoutMs: 0 }).publisher(TOPIC)).rejects.toMatchObject({
      code: 'CONNECTION_LOST',
      retriable: true,
      message: expect.stringContaining('AuthenticationError') as unknown,
    });
  });

  it('a host that does not answer does not keep the client from closing', async () => {
    const silent = await broker({ CONNECT: () => undefined });
    const client = clientOf([silent]);
    const failure = client.publisher(TOPIC).catch((error: unknown) => error);
    await silent.command('CONNECT');
    await client.close();

    await expect(failure).resolves.toMatchObject({ code: 'ALREADY_CLOSED' });
  });

  it('redirects and brokers that are named at a hand-over are followed', async () => {
    const [owner, next] = [await broker(), await broker()];
    const redirecting = await broker({
      LOOKUP: ({ requestId }, peer) =>
        peer.send('LOOKUP_RESPONSE', { requestId, response: 0, brokerServiceUrl: owner.url, authoritative: true }),
    });
    await clientOf([await deadHost(), redirecting]).subscribe({ topics: [TOPIC], subscription: 's' });
    const { consumerId } = await owner.command('FLOW');
    owner.peers[0]?.send('CLOSE_CONSUMER', { consumerId, requestId: -1, assignedBrokerServiceUrl: next.url });
    await next.command('SUBSCRIBE');

    expect(redirecting.received.filter(({ name }) => name === 'LOOKUP')).toHaveLength(1);
    // The one that was named may be gone again: then the service knows.
    next.peers[0]?.send('CLOSE_CONSUMER', {
      consumerId,
      requestId: -1,
      assignedBrokerServiceUrl: `pulsar://${await deadHost()}`,
    });
    await owner.command('SUBSCRIBE', 2);
    expect(redirecting.received.filter(({ name }) => name === 'LOOKUP')).toHaveLength(2);
  });
});

describe('a Pulsar proxy', () => {
  /** Answers as a proxy before two brokers does: by topic. */
  const proxyBefore = (brokerOf: (topic: string) => string): Script => ({
    LOOKUP: ({ requestId, topic }, peer) =>
      peer.send('LOOKUP_RESPONSE', {
        requestId,
        response: 1,
        brokerServiceUrl: `pulsar://${brokerOf(topic)}`,
        proxyThroughServiceUrl: true,
      }),
  });

  it('has one connection for each broker behind it, and one for lookups', async () => {
    const proxy = await broker(proxyBefore((topic) => (topic.endsWith('a') ? 'inside-a:6650' : 'inside-b:6650')));
    const client = clientOf([proxy]);
    for (const topic of ['1a', '2a', '1b', '2b']) await client.publisher(topic);

    const wanted = proxy.received.flatMap((command) =>
      command.name === 'CONNECT' ? [command.body.proxyToBrokerUrl] : [],
    );
    expect(wanted).toEqual([undefined, 'inside-a:6650', 'inside-b:6650']);
  });

  it('is used for the broker that is named at a hand-over', async () => {
    const proxy = await broker(proxyBefore(() => 'inside-a:6650'));
    await clientOf([proxy]).subscribe({ topics: [TOPIC], subscription: 's' });
    const { consumerId } = await proxy.command('FLOW');
    const assignedBrokerServiceUrl = 'pulsar://inside-b:6650';
    proxy.peers.at(-1)?.send('CLOSE_CONSUMER', { consumerId, requestId: -1, assignedBrokerServiceUrl });

    await expect(proxy.command('CONNECT', 3)).resolves.toMatchObject({ proxyToBrokerUrl: 'inside-b:6650' });
  });

  it('of several the one that was asked is the one that leads to the broker', async () => {
    const proxy = await broker(proxyBefore(() => 'inside:6650'));
    await clientOf([await deadHost(), proxy]).publisher(TOPIC);

    await expect(proxy.command('CONNECT', 2)).resolves.toMatchObject({ proxyToBrokerUrl: 'inside:6650' });
  });
});
