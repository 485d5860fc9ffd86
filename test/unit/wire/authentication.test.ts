// The kinds of credentials by themselves and in a connection: what the broker is given, when it is asked for again, and
// that nothing shows a secret.
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { TransportError } from '../../../src/index.js';
import { basicAuthentication, tlsAuthentication, tokenAuthentication } from '../../../src/wire.js';
import type { Authentication, BasicAuthenticationOptions } from '../../../src/wire.js';
import { TOPIC, startClient } from '../../support/scripted-consumer.js';
import type { Script } from '../../support/wire-server.js';
import { SocketClock } from '../../support/wire-server.js';

const SECRET = 'hunter2-secret';
/** What any of the tests below must never have written or thrown. */
const shown: unknown[] = [];
afterEach(() => {
  expect(inspect(shown.splice(0), { depth: Infinity, showHidden: true, maxStringLength: null })).not.toContain(SECRET);
});

function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    shown.push(error, (error as Error).message);
    return error;
  }
}

async function connectWith(authentication: Authentication, script: Script = {}, options: object = {}) {
  const logged: unknown[] = [];
  const log = (...line: unknown[]): void => void logged.push(line);
  const logger = { debug: log, info: log, warn: log, error: log };
  const started = await startClient(script, { authentication, logger, operationTimeoutMs: 0, ...options });
  const outcome: unknown = await started.client.publisher(TOPIC).catch((error: unknown) => error);
  shown.push(logged, started.client, authentication, outcome);
  return { ...started, outcome };
}

async function given(authentication: Authentication) {
  const { server } = await connectWith(authentication);
  const { authMethodName, authData } = await server.command('CONNECT');
  return [authMethodName, Buffer.from(authData ?? []).toString()];
}

describe('what the broker is given', () => {
  it('is a token without the white space of the file it came from', async () => {
    expect(await given(tokenAuthentication(` ${SECRET}\n`))).toEqual(['token', SECRET]);
    expect(await given(tokenAuthentication(async () => SECRET))).toEqual(['token', SECRET]);
  });

  it('is name and password, each from a text or a function', async () => {
    expect(await given(basicAuthentication({ username: 'ann', password: SECRET }))).toEqual(['basic', `ann:${SECRET}`]);
    const supplied = { username: () => 'ben', password: async () => SECRET };
    expect(await given(basicAuthentication(supplied))).toEqual(['basic', `ben:${SECRET}`]);
  });

  it('is the bytes of an authentication of the user', async () => {
    expect(await given({ method: 'own', data: () => Buffer.from(SECRET) })).toEqual(['own', SECRET]);
  });
});

describe('a supplier', () => {
  it('that throws is asked again later, and the error is its own', async () => {
    const { outcome } = await connectWith(tokenAuthentication(() => Promise.reject(new Error('vault is sealed'))));

    expect(outcome).toMatchObject({
      code: 'CREDENTIALS_UNAVAILABLE',
      retriable: true,
      message: 'authentication "token": its data could not be had: vault is sealed',
    });
  });

  it.each([
    ['nothing', tokenAuthentication(() => undefined as unknown as string)],
    ['an empty text', tokenAuthentication(() => '')],
    ['a name with a colon', basicAuthentication({ username: () => 'a:b', password: SECRET })],
    ['no text and no bytes', { method: 'own', data: () => 5 as unknown as string }],
  ])('that gives %s is a mistake for good', async (_, authentication) => {
    const { outcome } = await connectWith(authentication);

    expect(outcome).toMatchObject({ code: 'AUTHENTICATION_FAILED', retriable: false });
  });

  it('that never answers costs the connect timeout, and is told that nobody waits', async () => {
    const clock = new SocketClock();
    let aborted = false;
    const authentication = {
      method: 'own',
      data: (signal?: AbortSignal) => {
        signal?.addEventListener('abort', () => (aborted = true));
        return new Promise<string>(() => undefined);
      },
    };
    const { client } = await startClient({}, { authentication, operationTimeoutMs: 0, clock });
    const failure = client.publisher(TOPIC).catch((error: unknown) => error);

    await clock.advanceUntil(() => aborted);
    await expect(failure).resolves.toMatchObject({
      code: 'CONNECTION_LOST',
      message: expect.stringMatching(/no CONNECTED within 10000 ms/) as unknown,
    });
  });
});

describe('a refusal', () => {
  const refuse = (message: string): Script => ({
    CONNECT: (_, peer) => peer.send('ERROR', { requestId: -1, error: 3, message }),
  });

  it('that repeats the secret does not bring it into errors and log', async () => {
    const { outcome } = await connectWith(tokenAuthentication(SECRET), refuse(`bad token ${SECRET}!`));

    expect(outcome).toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      message: expect.stringMatching(/"bad token \[redacted\]!"/) as unknown,
    });
  });

  it('that repeats a password without its name does not either', async () => {
    const basic = basicAuthentication({ username: 'ann', password: SECRET });
    const { outcome } = await connectWith(basic, refuse(`not ${SECRET}`));

    expect(outcome).toMatchObject({ message: expect.stringMatching(/"not \[redacted\]"/) as unknown });
  });

  it('of credentials that are kept is answered once with others', async () => {
    const refused: number[] = [];
    let version = 1;
    const authentication = {
      method: 'own',
      data: () => `version ${version}`,
      refused: () => {
        refused.push(version);
        version += 1;
        return version <= 2;
      },
    };
    const { server, outcome } = await connectWith(authentication, refuse('no'));

    expect(outcome).toBeInstanceOf(TransportError);
    expect(
      server.received.map(({ body }) => Buffer.from((body as { authData: Uint8Array }).authData).toString()),
    ).toEqual(['version 1', 'version 2']);
    expect(refused).toEqual([1]);
  });
});

describe('options', () => {
  it('that are wrong are all told, without their values', () => {
    const wrong = { username: 'a:b', password: 5, passwort: SECRET } as unknown as BasicAuthenticationOptions;
    expect(thrownBy(() => basicAuthentication(wrong))).toMatchObject({
      problems: [
        'basicAuthentication: unknown option "passwort", did you mean "password"?',
        'basicAuthentication: "password" must be a text that is not empty, or a function that gives one, got a number',
        'basicAuthentication: "username" must not have a ":"',
      ],
    });
    const text = `ann:${SECRET}` as unknown as BasicAuthenticationOptions;
    expect(thrownBy(() => basicAuthentication(text))).toMatchObject({ problems: [expect.stringContaining('a text')] });
    const buffer = Buffer.from(SECRET) as unknown as string;
    expect(thrownBy(() => tokenAuthentication(buffer))).toMatchObject({ code: 'CONFIGURATION_INVALID' });
    expect(thrownBy(() => tokenAuthentication(' '))).toMatchObject({ code: 'CONFIGURATION_INVALID' });
  });

  it('a password in the service URL is refused and not repeated', async () => {
    const { WireClient } = await import('../../../src/wire.js');
    const serviceUrl = `pulsar://ann:${SECRET}@broker:6650`;

    expect(thrownBy(() => new WireClient({ serviceUrl }))).toMatchObject({
      message: expect.stringContaining('pulsar://[redacted]@broker:6650') as unknown,
    });
  });

  it('mutual TLS has no data', () => {
    expect([tlsAuthentication().method, tlsAuthentication().data()]).toEqual(['tls', '']);
  });
});
