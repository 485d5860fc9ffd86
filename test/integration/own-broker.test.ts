// What happens when a whole broker is killed, stands still or is stopped, and what it says to clients that are not who they
// should be: one broker for this file, which no other test uses. Every message is counted, and none is missing.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterAll, describe, expect } from 'vitest';
import { runOutage } from '../campaign/outage-run.js';
import {
  WireClient,
  basicAuthentication,
  oauth2Authentication,
  tlsAuthentication,
  tokenAuthentication,
} from '../../src/wire.js';
import type { Authentication, TlsOptions, WireOptions } from '../../src/wire.js';
import { CountingPublisher, consume, texts } from '../support/fault-clients.js';
import { ADMIN, BrokerSecurity } from '../support/real-pulsar/broker-security.js';
import { testWithBroker } from '../support/real-pulsar/integration-test.js';
import { isAlive } from '../support/real-pulsar/processes.js';
import type { PulsarPeer } from '../support/real-pulsar/pulsar-peer.js';
import type { RealPulsar } from '../support/real-pulsar/real-pulsar.js';
import { TestAuthority } from '../support/test-certificates.js';
import { TokenServer } from '../support/token-server.js';

// A broker starts within seconds; on an overloaded machine within minutes.
const PATIENT = { retry: 0, timeout: 300_000 };

const security = await BrokerSecurity.create();
afterAll(() => security.remove());
const test = testWithBroker({ proxies: 0, settings: security.settings });

/** Taken for dead after one and a half seconds of silence. */
const QUICK_TO_NOTICE = { keepAliveMs: 500, connectTimeoutMs: 1_000 };
/** Calls time out in the middle of the outage, and the broker's return is seen at once. */
const QUICK_OPTIONS = {
  wire: { ...QUICK_TO_NOTICE, reconnectMinMs: 10, reconnectMaxMs: 500 },
  callTimeoutMs: 2_000,
};
const OUTAGE_MS = 5_000;

/** A publisher and a consumer that go on through whatever happens to the broker. */
async function flow(serviceUrl: string, topic: string) {
  const consumer = await consume(serviceUrl, topic, { prefetch: 50 }, QUICK_TO_NOTICE);
  const publisher = await CountingPublisher.open(serviceUrl, topic, {}, QUICK_TO_NOTICE);
  let over = false;
  const publish = async (): Promise<readonly string[]> => {
    let sent = 0;
    while (!over) {
      await publisher.publishAll(texts(sent, 20));
      sent += 20;
      await sleep(50);
    }
    return texts(0, sent);
  };
  const publishing = publish();
  publishing.catch(() => undefined); // `end` tells it.
  await consumer.until(100);
  return {
    connections: () => consumer.connections,
    /** What was published and is missing; every message has its receipt. */
    end: async () => {
      over = true;
      const all = await publishing;
      await consumer.until(all.length);
      return consumer.missing(all);
    },
  };
}

/** Half of a hundred messages is acknowledged. Gives what of the others does not come any more. */
async function halfAcknowledged(serviceUrl: string, java: PulsarPeer) {
  const messages = Array.from({ length: 100 }, (_, index) => ({ value: `message ${index}` }));
  await java.produce(serviceUrl, 'kept', messages);
  const before = await java.subscribe(serviceUrl, 'kept', { subscription: 's' });
  await before.acknowledge((await before.receive(100)).slice(0, 50));
  await before.close();
  return async () => {
    const after = await java.subscribe(serviceUrl, 'kept', { subscription: 's' });
    // Of the acknowledged ones some may come again: a receipt says that the broker knows, not that its disk does.
    const received = new Set((await after.receive(100, 5_000)).map(({ value }) => String(value)));
    return messages.slice(50).filter(({ value }) => !received.has(value));
  };
}

// The gate's share of the campaign `outage`: a shorter one, noticed sooner. One outage of each kind serves all: a broker takes
// long to start.
describe('while the broker is gone', PATIENT, () => {
  test('frozen: settlements, publishing and receiving go on afterwards, and nothing is lost', async ({ broker }) => {
    const through = await flow(broker.serviceUrl, 'frozen');
    const connections = through.connections();

    const outage = await runOutage(broker, { how: 'frozen', durationMs: OUTAGE_MS, ...QUICK_OPTIONS });

    expect(outage.violations).toEqual([]);
    expect(outage.before).toBeLessThan(outage.after);
    expect(await through.end()).toEqual([]);
    expect(through.connections()).toBeGreaterThan(connections);
  });

  test('killed: settlements, publishing and receiving go on once it has started again, and nothing is lost', async ({
    broker,
    java,
  }) => {
    const lostOfHalf = await halfAcknowledged(broker.serviceUrl, java);
    const through = await flow(broker.serviceUrl, 'killed');
    const connections = through.connections();

    const outage = await runOutage(broker, { how: 'killed', durationMs: OUTAGE_MS, ...QUICK_OPTIONS });

    expect(outage.violations).toEqual([]);
    expect(outage.before).toBeLessThan(outage.after);
    expect(await through.end()).toEqual([]);
    expect(through.connections()).toBeGreaterThan(connections);
    expect(await lostOfHalf()).toEqual([]);
  });
});

describe('who a client is', PATIENT, () => {
  const { ca } = security.authority;
  const nowSeconds = (): number => Math.floor(Date.now() / 1_000);
  const clients: WireClient[] = [];
  /** What clients wrote and threw: none of it may show a secret. */
  const said: unknown[] = [];
  afterAll(() => {
    const text = inspect(said, { depth: Infinity, maxStringLength: null, maxArrayLength: null });
    for (const secret of [security.password, security.token(ADMIN), security.token('nobody')]) {
      expect(text).not.toContain(secret);
    }
  });

  function connect(_: RealPulsar, authentication?: Authentication, options: Partial<WireOptions> = {}): WireClient {
    const log = (...line: unknown[]): void => void said.push(line);
    const logger = { debug: log, info: log, warn: log, error: log };
    const client = new WireClient({ serviceUrl: security.tlsUrl, tls: { ca }, authentication, logger, ...options });
    clients.push(client);
    said.push(client);
    return client;
  }

  /** One message there and back. */
  async function exchange(client: WireClient, topic: string): Promise<string> {
    const consumer = await client.subscribe({ topics: [topic], subscription: 's' });
    const publisher = await client.publisher(topic);
    await publisher.publish({ payload: Buffer.from(topic), properties: {} }, publisher.nextSequenceId());
    const message = await consumer.receive(AbortSignal.timeout(30_000));
    return Buffer.from(message?.payload ?? []).toString();
  }

  async function failureOf(client: WireClient): Promise<unknown> {
    const error: unknown = await client.publisher('forbidden').catch((thrown: unknown) => thrown);
    said.push(error, (error as Error).message);
    await client.close();
    return error;
  }

  const identity = (): TlsOptions => ({ ca, ...security.authority.issue({ name: ADMIN }) });

  test('it is known by token, password and certificate, each over TLS', async ({ broker }) => {
    const known = [
      connect(
        broker,
        tokenAuthentication(async () => security.token(ADMIN, nowSeconds() + 60)),
      ),
      connect(broker, basicAuthentication({ username: ADMIN, password: () => security.password })),
      connect(broker, tlsAuthentication(), { tls: identity() }),
    ];

    const texts = await Promise.all(known.map((client, index) => exchange(client, `known-${index}`)));
    expect(texts).toEqual(['known-0', 'known-1', 'known-2']);
    for (const client of known) await client.close();
  });

  test('it stays connected over the ends of its OAuth2 tokens', async ({ broker }) => {
    const server = await TokenServer.start(() => {
      // It lives longer than it says, so that none is sent that has run out: claims are in whole seconds.
      const body = { access_token: security.token(ADMIN, nowSeconds() + 2), expires_in: 1 };
      return { body };
    });
    const credentials = { issuerUrl: server.url, clientId: 'shop', clientSecret: 'of the shop' };
    const client = connect(broker, oauth2Authentication(credentials));
    const consumer = await client.subscribe({ topics: ['refreshed'], subscription: 's' });
    const states: string[] = [];
    consumer.onState(({ state }) => states.push(state));
    const sent = server.forms.length;
    await server.until(() => server.forms.length >= sent + 2);

    expect(await exchange(client, 'refreshed-2')).toBe('refreshed-2');
    expect(states).toEqual(['connected']);
    await client.close();
    await server.close();
  });

  test.for([
    ['with a token that has run out', () => tokenAuthentication(security.token(ADMIN, nowSeconds() - 10))],
    ['with a token of somebody else', () => tokenAuthentication(`${security.token(ADMIN).slice(0, -4)}AAAA`)],
    ['with a wrong password', () => basicAuthentication({ username: ADMIN, password: 'a guess' })],
  ] as const)('%s it is refused for good', async ([, authentication], { broker }) => {
    const expected = { code: 'AUTHENTICATION_FAILED', retriable: false };

    await expect(failureOf(connect(broker, authentication()))).resolves.toMatchObject(expected);
  });

  test('it may do only what its role may', async ({ broker }) => {
    const forbidden = { code: 'NOT_ALLOWED', retriable: false };
    const byToken = connect(broker, tokenAuthentication(security.token('nobody')));
    const subscribing = byToken.subscribe({ topics: ['forbidden'], subscription: 's' });
    const nobody = { ca, ...security.authority.issue({ name: 'nobody' }) };

    await expect(subscribing).rejects.toMatchObject(forbidden);
    await expect(failureOf(byToken)).resolves.toMatchObject(forbidden);
    await expect(failureOf(connect(broker, tlsAuthentication(), { tls: nobody }))).resolves.toMatchObject(forbidden);
  });

  test('its certificate must be of an authority that the broker knows, and not have run out', async ({ broker }) => {
    const stranger = new TestAuthority();
    const identities = [stranger.issue({ name: ADMIN }), security.authority.issue({ name: ADMIN, days: -1 })];
    stranger.remove();
    for (const one of identities) {
      const client = connect(broker, tlsAuthentication(), { tls: { ca, ...one } });
      await expect(failureOf(client)).resolves.toMatchObject({ code: 'AUTHENTICATION_FAILED', retriable: false });
    }
  });

  test("the broker's own certificate must be trusted and name the broker", async ({ broker }) => {
    const unknown = connect(broker, undefined, { tls: {} });
    const misnamed = connect(broker, undefined, { serviceUrl: security.tlsUrl.replace('127.0.0.1', 'localhost') });

    await expect(failureOf(unknown)).resolves.toMatchObject({ code: 'CERTIFICATE_UNTRUSTED', retriable: false });
    await expect(failureOf(misnamed)).resolves.toMatchObject({ code: 'CERTIFICATE_NAME_MISMATCH', retriable: false });
  });
});

describe('the harness', PATIENT, () => {
  test('a frozen broker answers once it goes on', async ({ broker, java }) => {
    broker.freeze();
    const sending = java.produce(broker.serviceUrl, 'frozen-briefly', [{ value: 'a' }]);
    const first = await Promise.race([sending.then(() => 'answer'), broker.freezeFor(1_000).then(() => 'going on')]);

    expect(first).toBe('going on');
    await expect(sending).resolves.toHaveLength(1);
  });

  test('a broker that cannot start says why', async ({ startBroker }) => {
    await expect(startBroker({ settings: { brokerServicePort: 'not a number' } })).rejects.toThrow(
      /the broker ended \(exit code \d+\); its log ended with:[\s\S]*not a number/,
    );
  });

  test('a broker that is stopped leaves neither process nor data', async ({ broker }) => {
    const { pid, folder } = broker;

    await broker.stop();

    expect({ alive: isAlive(pid), data: existsSync(folder) }).toEqual({ alive: false, data: false });
  });
});
