// OAuth2 client credentials against a stand-in for the server that gives the tokens.
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../src/testing.js';
import { oauth2Authentication } from '../../../src/wire.js';
import type { OAuth2Options } from '../../../src/wire.js';
import { TOPIC, startClient, startSubscription } from '../../support/scripted-consumer.js';
import { TokenServer } from '../../support/token-server.js';
import type { TokenAnswer } from '../../support/token-server.js';

const SECRET = 's3cret/+value';
const HOUR = 3_600;
const shown: unknown[] = [];
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
  const text = inspect(shown.splice(0), { depth: Infinity, showHidden: true, maxStringLength: null });
  for (const form of [SECRET, encodeURIComponent(SECRET), 'issued-token']) expect(text).not.toContain(form);
});

/** Tokens `issued-token-1`, `issued-token-2`, ... that live for an hour, unless `answer` says otherwise. */
async function start(options: Partial<OAuth2Options> = {}, answer?: (count: number) => TokenAnswer | undefined) {
  const clock = new FakeClock();
  let count = 0;
  const plain = (n: number): TokenAnswer => ({ body: { access_token: `issued-token-${n}`, expires_in: HOUR } });
  const server = await TokenServer.start(() => (answer ?? plain)(++count));
  const credentials = { issuerUrl: server.url, clientId: 'shop', clientSecret: SECRET };
  const authentication = oauth2Authentication({ ...credentials, clock, ...options });
  open.push(server);
  shown.push(authentication);
  const failure = async (): Promise<unknown> => {
    const error: unknown = await Promise.resolve(authentication.data()).catch((thrown: unknown) => thrown);
    shown.push(error, (error as Error).message);
    return error;
  };
  return { server, clock, authentication, failure };
}

describe('a token', () => {
  it('is asked for as RFC 6749 says, at the endpoint that the well-known document names', async () => {
    const { server, authentication } = await start({ audience: 'urn:pulsar', scope: 'read write' });

    await expect(authentication.data()).resolves.toBe('issued-token-1');
    expect(server.forms).toEqual([
      {
        grant_type: 'client_credentials',
        client_id: 'shop',
        client_secret: SECRET,
        audience: 'urn:pulsar',
        scope: 'read write',
      },
    ]);
  });

  it('is asked for with what a key file holds', async () => {
    const file = { type: 'client_credentials', client_id: 'from-file', client_secret: SECRET };
    const { server, authentication } = await start({
      clientId: undefined,
      clientSecret: undefined,
      keyFile: JSON.stringify(file),
    });

    await authentication.data();
    expect(server.forms[0]).toMatchObject({ client_id: 'from-file', client_secret: SECRET });
  });

  it('is kept, and asked for anew before it runs out', async () => {
    const { server, clock, authentication } = await start();
    await authentication.data();
    await clock.advanceBy(0.9 * HOUR * 1_000 - 1);
    await expect(authentication.data()).resolves.toBe('issued-token-1');
    await clock.advanceBy(1);

    await expect(authentication.data()).resolves.toBe('issued-token-2');
    expect([server.discoveries, server.forms.length]).toEqual([1, 2]);
  });

  it('of unknown life is asked for each time', async () => {
    const { server, authentication } = await start({}, (n) => ({ body: { access_token: `issued-token-${n}` } }));
    await authentication.data();
    await authentication.data();

    expect(server.forms).toHaveLength(2);
  });

  it('is asked for once by all who want it at the same time', async () => {
    const { server, authentication } = await start();

    const all = await Promise.all(Array.from({ length: 50 }, async () => authentication.data()));
    expect(new Set(all)).toEqual(new Set(['issued-token-1']));
    expect([server.discoveries, server.forms.length]).toEqual([1, 1]);
  });

  it('that still holds serves while the server is down, and no longer', async () => {
    const { server, clock, authentication, failure } = await start();
    await authentication.data();
    server.answer = () => ({ status: 503, body: 'later' });
    await clock.advanceBy(0.95 * HOUR * 1_000);
    await expect(authentication.data()).resolves.toBe('issued-token-1');
    await clock.advanceBy(0.05 * HOUR * 1_000);

    await expect(failure()).resolves.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE', retriable: true });
  });

  it('that a broker refuses is replaced, unless it is new', async () => {
    const { clock, authentication } = await start();
    await authentication.data();
    expect(authentication.refused?.()).toBe(false);
    await clock.advanceBy(10_000);
    expect(authentication.refused?.()).toBe(true);

    await expect(authentication.data()).resolves.toBe('issued-token-2');
  });
});

describe('a request', () => {
  it('without an answer ends after its time', async () => {
    const { server, clock, failure } = await start({ requestTimeoutMs: 2_000 }, () => undefined);
    const failed = failure();
    await server.until(() => server.forms.length === 1);
    await clock.advanceBy(2_000);

    await expect(failed).resolves.toMatchObject({
      code: 'CREDENTIALS_UNAVAILABLE',
      retriable: true,
      message: `oauth2: no token from ${server.url}: nothing within 2000 ms`,
    });
    await server.until(() => server.abandoned === 1);
  });

  it('goes on while one of those who wait is left, and ends with the last one', async () => {
    const { server, clock, authentication } = await start({}, () => undefined);
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = [first, second].map(({ signal }) => Promise.resolve(authentication.data(signal)));
    const ends = waiting.map((one) => one.catch((error: unknown) => error));
    await server.until(() => server.forms.length === 1);
    first.abort(new Error('first left'));
    await expect(ends[0]).resolves.toMatchObject({ message: 'first left' });
    expect(server.abandoned).toBe(0);
    second.abort(new Error('second left'));

    await server.until(() => server.abandoned === 1);
    await expect(ends[1]).resolves.toMatchObject({ message: 'second left' });
    expect(clock.pendingTimers).toEqual([]);
  });

  it('that the server refuses fails for good, with its words and without the secret', async () => {
    const said = { error: 'invalid_client', error_description: `no ${SECRET} here` };
    const { server, failure } = await start({}, () => ({ status: 401, body: said }));

    await expect(failure()).resolves.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      retriable: false,
      message: `oauth2: ${server.url}/token refused client "shop" with status 401, "invalid_client, no [redacted] here"`,
    });
  });

  it.each([
    ['of an overloaded server may be repeated', { status: 429, body: '' }, true],
    ['of a failing server may be repeated', { status: 500, body: '' }, true],
    ['without a token in the answer may be repeated', { body: { token_type: 'Bearer' } }, true],
    ['whose answer is no JSON may be repeated', { body: '<html>issued-token</html>' }, true],
    ['that is sent elsewhere is not followed', { status: 302, body: '' }, false],
    ['for what is not there is for good', { status: 404, body: '' }, false],
  ])('%s', async (_, answer, retriable) => {
    const { failure } = await start({}, () => answer);

    await expect(failure()).resolves.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE', retriable });
  });

  it('whose answer does not end is cut off', async () => {
    const { failure } = await start({}, () => ({ body: 'x'.repeat(2 * 1024 * 1024) }));

    await expect(failure()).resolves.toMatchObject({
      message: expect.stringMatching(/longer than 1048576 bytes/) as unknown,
    });
  });

  it('to a server that is not there may be repeated, and says where', async () => {
    const { server, failure } = await start();
    const { url } = server;
    await server.close();
    open.pop();

    await expect(failure()).resolves.toMatchObject({
      code: 'CREDENTIALS_UNAVAILABLE',
      retriable: true,
      message: expect.stringContaining(`${url}/.well-known/openid-configuration: fetch failed <- `) as unknown,
    });
  });

  it('is not sent where the document names an endpoint without TLS', async () => {
    const { server, failure } = await start();
    server.discovery = () => ({ body: { token_endpoint: 'http://issuer.example/token' } });

    await expect(failure()).resolves.toMatchObject({
      code: 'CREDENTIALS_UNAVAILABLE',
      retriable: false,
      message: expect.stringMatching(/"token_endpoint" must begin with https/) as unknown,
    });
    expect(server.forms).toEqual([]);
  });

  it('of another way to send them keeps what its errors hold', async () => {
    const http = (): Promise<never> => Promise.reject(new Error('proxy', { cause: new Error(`body ${SECRET}`) }));
    const { failure } = await start({ http });

    await expect(failure()).resolves.toMatchObject({
      message: expect.stringMatching(/: proxy <- Error: body \[redacted\]$/) as unknown,
    });
  });
});

describe('a connection', () => {
  it('gives the token as method "token", and another one when the broker asks', async () => {
    const { authentication, clock } = await start();
    const { server, say } = await startSubscription({}, {}, { authentication });
    const { authMethodName, authData } = await server.command('CONNECT');
    expect([authMethodName, Buffer.from(authData ?? []).toString()]).toEqual(['token', 'issued-token-1']);
    // Far from its end by this clock; the broker's may be another.
    await clock.advanceBy(60_000);
    say('AUTH_CHALLENGE', { challenge: { authMethodName: 'token', authData: Buffer.from('PulsarAuthRefresh') } });

    const { response } = await server.command('AUTH_RESPONSE');
    expect(Buffer.from(response?.authData ?? []).toString()).toBe('issued-token-2');
  });

  it('that is given up does not leave its request behind', async () => {
    const { server, authentication } = await start({}, () => undefined);
    const { client } = await startClient({}, { authentication });
    const failed = client.publisher(TOPIC).catch((error: unknown) => error);
    await server.until(() => server.forms.length === 1);
    await client.close();

    await expect(failed).resolves.toMatchObject({ code: 'ALREADY_CLOSED' });
    await server.until(() => server.abandoned === 1);
  });
});

describe('options', () => {
  const problemsOf = (options: OAuth2Options): unknown => {
    try {
      return oauth2Authentication(options);
    } catch (error) {
      shown.push(error);
      return (error as { problems?: unknown }).problems;
    }
  };
  const issuer = (text: string) => `oauth2Authentication: "issuerUrl" ${text}`;

  it('that are wrong are all told, without their values', () => {
    const wrong = { clientId: '', clientSecret: { secret: SECRET }, audience: 5, keyfile: SECRET, requestTimeoutMs: 0 };
    expect(problemsOf(wrong as unknown as OAuth2Options)).toEqual([
      'oauth2Authentication: unknown option "keyfile", did you mean "keyFile"?',
      'oauth2Authentication: "clientId" must be a text that is not empty, given or in "keyFile", got an empty text',
      'oauth2Authentication: "clientSecret" must be a text that is not empty, given or in "keyFile", got an object',
      issuer('must be like "https://issuer.example.com", got undefined'),
      expect.stringContaining('"audience" must be a text'),
      expect.stringContaining('"requestTimeoutMs" must be a duration of at least 1 ms'),
    ]);
    expect(problemsOf({ keyFile: `{"client_secret": "${SECRET}` })).toContainEqual(
      expect.stringContaining('"keyFile" must be the contents of a key file'),
    );
  });

  it.each([
    ['https://issuer.example', undefined],
    ['http://localhost:8080/realm', undefined],
    ['http://[::1]:80', undefined],
    ['http://issuer.example', 'must begin with https:// (http:// only on this machine): secrets travel over it'],
    ['http://127.evil.example', 'must begin with https:// (http:// only on this machine): secrets travel over it'],
    [`https://a:${encodeURIComponent(SECRET)}@issuer.example`, 'must not hold a user name or a password'],
    ['file:///etc/passwd', 'must begin with https:// (http:// only on this machine): secrets travel over it'],
  ])('an issuer may be on this machine or behind TLS: %#', (issuerUrl, problem) => {
    const problems = problemsOf({ issuerUrl, clientId: 'a', clientSecret: SECRET });

    if (problem === undefined) expect(problems).toMatchObject({ method: 'token' });
    else expect(problems).toEqual([issuer(problem)]);
  });
});
