// TLS against a scripted server: whose certificates are accepted, on both sides, and what is said of those that are not.
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { socketError } from '../../../src/transports/wire/connect-errors.js';
import type { TlsOptions, WireOptions } from '../../../src/wire.js';
import { WireClient, tlsAuthentication } from '../../../src/wire.js';
import { TestAuthority } from '../../support/test-certificates.js';
import type { IdentityOptions } from '../../support/test-certificates.js';
import { WireServer } from '../../support/wire-server.js';
import type { ServerIdentity } from '../../support/wire-server.js';

const authority = new TestAuthority();
const stranger = new TestAuthority();
const { ca } = authority;
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});
afterAll(() => {
  authority.remove();
  stranger.remove();
});

async function connect(identity: ServerIdentity, tls: TlsOptions, options: Partial<WireOptions> = {}) {
  const server = await WireServer.start({}, identity);
  const client = new WireClient({ serviceUrl: server.url, tls, reconnectMinMs: 1, ...options });
  open.push(server, client);
  return { server, subscribed: client.subscribe({ topics: ['t'], subscription: 's' }) };
}

const refusedServers: readonly {
  readonly what: string;
  readonly identity: () => ServerIdentity;
  readonly tls?: TlsOptions;
  readonly code: string;
  readonly node: string;
}[] = [
  {
    what: 'that has run out',
    identity: () => authority.issue({ days: -1 }),
    code: 'CERTIFICATE_EXPIRED',
    node: 'CERT_HAS_EXPIRED',
  },
  {
    what: 'for another host',
    identity: () => authority.issue({ alternativeName: 'DNS:other.example' }),
    code: 'CERTIFICATE_NAME_MISMATCH',
    node: 'ERR_TLS_CERT_ALTNAME_INVALID',
  },
  {
    what: 'that is self-signed',
    identity: () => stranger.selfSigned(),
    code: 'CERTIFICATE_UNTRUSTED',
    node: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  },
  {
    what: 'of another authority',
    identity: () => stranger.issue(),
    code: 'CERTIFICATE_UNTRUSTED',
    node: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  },
  {
    what: 'of an authority that Node does not know',
    identity: () => authority.issue(),
    tls: {},
    code: 'CERTIFICATE_UNTRUSTED',
    node: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  },
];

describe("the broker's certificate", () => {
  it('of the given authority, for its address, is accepted', async () => {
    const { server, subscribed } = await connect(authority.issue(), { ca });

    await expect(subscribed).resolves.toBeDefined();
    await expect(server.command('FLOW')).resolves.toMatchObject({ messagePermits: 1_000 });
  });

  it.each(refusedServers)('$what is refused for good, as $code', async ({ identity, tls = { ca }, code, node }) => {
    let lines = 0;
    const count = (): void => void (lines += 1);
    const logger = { debug: count, info: count, warn: count, error: count };
    const { subscribed } = await connect(identity(), tls, { logger });

    await expect(subscribed).rejects.toMatchObject({ code, retriable: false, cause: { code: node } });
    // It was tried once: the default would repeat what may pass for half a minute.
    expect(lines).toBe(1);
  });

  it('for another host is accepted where names are not to be verified', async () => {
    const other: IdentityOptions = { alternativeName: 'DNS:other.example' };
    const { subscribed } = await connect(authority.issue(other), { ca, verifyHostName: false });

    await expect(subscribed).resolves.toBeDefined();
  });

  it('names the host where the service URL has a name', async () => {
    const server = await WireServer.start({}, authority.issue({ alternativeName: 'DNS:localhost' }));
    const serviceUrl = server.url.replace('127.0.0.1', 'localhost');
    const client = new WireClient({ serviceUrl, tls: { ca }, operationTimeoutMs: 0 });
    open.push(server, client);

    // The scripted broker advertises its address, which the certificate does not name.
    await expect(client.publisher('t')).rejects.toMatchObject({ code: 'CERTIFICATE_NAME_MISMATCH' });
    await expect(server.command('LOOKUP')).resolves.toBeDefined();
  });
});

describe("the client's certificate", () => {
  const wanting = (): ServerIdentity => ({ ...authority.issue(), ca, requestCert: true });

  it('is given, with the method and without data', async () => {
    const { server, subscribed } = await connect(
      wanting(),
      { ca, ...authority.issue({ name: 'client' }) },
      { authentication: tlsAuthentication() },
    );

    await subscribed;
    const { authMethodName, authData = [] } = await server.command('CONNECT');
    expect([authMethodName, authData.length]).toEqual(['tls', 0]);
  });

  it('that is missing is told for good', async () => {
    const { subscribed } = await connect(wanting(), { ca });

    await expect(subscribed).rejects.toMatchObject({ code: 'AUTHENTICATION_FAILED', retriable: false });
  });

  // A server in Node closes without a word where brokers send an alert; a real broker does it in the integration tests.
  it.each([
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'AUTHENTICATION_FAILED'],
    ['ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED', 'AUTHENTICATION_FAILED'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'CONNECTION_LOST'],
    ['ECONNRESET', 'CONNECTION_LOST'],
  ])('refused with %s is %s', (node, code) => {
    const error = socketError('connection to b:6651', Object.assign(new Error('alert'), { code: node }));

    expect(error).toMatchObject({
      code,
      retriable: code === 'CONNECTION_LOST',
      message: expect.stringMatching(/^connection to b:6651: /) as unknown,
    });
  });
});

it('a host whose addresses all refuse says so', () => {
  const inner = ['connect ECONNREFUSED ::1:6650', 'connect ECONNREFUSED 127.0.0.1:6650'].map((text) => new Error(text));
  const error = Object.assign(new AggregateError(inner, ''), { code: 'ECONNREFUSED' });

  expect(socketError('cannot connect to localhost:6650', error).message).toBe(
    'cannot connect to localhost:6650: connect ECONNREFUSED ::1:6650; connect ECONNREFUSED 127.0.0.1:6650',
  );
});

describe('options of TLS', () => {
  const problemsOf = (tls: unknown, more: Partial<WireOptions> = {}): unknown => {
    try {
      return new WireClient({ serviceUrl: 'pulsar+ssl://h', tls: tls as TlsOptions, ...more });
    } catch (error) {
      return (error as { problems?: unknown }).problems;
    }
  };

  it('that cannot be used are refused before anything connects', () => {
    const { cert } = authority.issue();
    const { key } = authority.issue();

    expect(problemsOf({ ca, cert, key })).toEqual([expect.stringMatching(/"tls" cannot be used: .*mismatch/)]);
    expect(problemsOf({ cert: 'no certificate', key })).toEqual([expect.stringContaining('"tls" cannot be used')]);
    expect(problemsOf({ cert })).toEqual([expect.stringContaining('belong together')]);
    expect(problemsOf({ cert, key }, { serviceUrl: 'pulsar://h' })).toContainEqual(
      expect.stringContaining('"tls" needs a serviceUrl'),
    );
  });

  it('without a certificate do not go with authentication by it', () => {
    const rule = expect.stringContaining('authentication by "tls" needs');

    expect(problemsOf({ ca }, { authentication: tlsAuthentication() })).toEqual([rule]);
    expect(problemsOf(undefined, { authentication: tlsAuthentication(), serviceUrl: 'pulsar://h' })).toEqual([rule]);
  });

  it('are shown by no inspection and no error', async () => {
    const { inspect } = await import('node:util');
    const { cert, key } = authority.issue();
    const client = new WireClient({
      serviceUrl: 'pulsar+ssl://127.0.0.1:1',
      tls: { cert, key },
      operationTimeoutMs: 0,
    });
    open.push(client);
    const error: unknown = await client.publisher('t').catch((failure: unknown) => failure);

    const shown = inspect([client, error], { depth: Infinity, showHidden: true });
    expect(shown).toContain('CONNECTION_LOST');
    expect(shown).not.toContain(key.split('\n')[1]);
  });
});
