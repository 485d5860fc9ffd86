// Real sockets on loopback: what a server does with them is what is tested.
import { request as httpRequest } from 'node:http';
import { createServer, connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HealthEndpoint, HealthEndpointOptions } from '../../../src/plugins.js';
import { healthEndpoint } from '../../../src/plugins.js';
import { Control, health, problemsOf } from './plugin-kit.js';

let control: Control;
let endpoint: HealthEndpoint | undefined;
beforeEach(() => void (control = new Control()));
afterEach(() => endpoint?.onClose?.());

async function start(options: Partial<HealthEndpointOptions> = {}): Promise<HealthEndpoint> {
  return (endpoint = await control.start(healthEndpoint({ port: 0, ...options })));
}

const at = (path: string): string => `http://127.0.0.1:${endpoint?.address?.port ?? 0}${path}`;

async function get(path: string, init: RequestInit = {}): Promise<{ status: number; body: unknown; headers: Headers }> {
  const response = await fetch(at(path), init);
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  const body: unknown = isJson && text !== '' ? JSON.parse(text) : text;
  return { status: response.status, body, headers: response.headers };
}

describe('/livez', () => {
  it('says 200 as long as the process answers, whatever the runtime does', async () => {
    control.subscriptions = [health({ state: 'degraded', reason: 'x' })];
    await start();
    await endpoint?.onDrain?.();
    expect(await get('/livez')).toMatchObject({ status: 200, body: { status: 'alive' } });
  });
});

describe('many connections', () => {
  it('beyond what may be open are refused, and a line every 10 s says so', async () => {
    const { address } = await start();
    const held: Socket[] = [];
    const refused = async (): Promise<void> => {
      const socket = connect({ port: address?.port ?? 0, host: '127.0.0.1' });
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.once('close', resolve));
    };
    for (let i = 0; i < 32; i += 1) {
      const socket = connect({ port: address?.port ?? 0, host: '127.0.0.1' });
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.once('connect', resolve));
      held.push(socket);
    }
    const complaint = 'the health endpoint refuses connections: too many are open; probes may fail';
    for (let i = 0; i < 3; i += 1) await refused();
    expect(control.linesAt('warn')).toEqual([
      expect.objectContaining({ message: complaint, fields: { open: 32, refused: 1 } }),
    ]);
    await control.clock.advanceBy(10_000);
    await refused();
    expect(control.linesAt('warn').map(({ fields }) => fields['refused'])).toEqual([1, 3]);
    for (const socket of held) socket.destroy();
  });

  it('that wait for metrics are few: further ones are told to come again, and probes get through', async () => {
    let asked = 0;
    await start({ metrics: () => ((asked += 1), new Promise(() => undefined)) });
    const waiting = Array.from({ length: 4 }, () => get('/metrics').catch(() => undefined));
    await expect.poll(() => asked).toBe(4);
    expect(await get('/metrics')).toMatchObject({ status: 503, body: { status: 'busy' } });
    expect(await get('/livez')).toMatchObject({ status: 200 });
    await endpoint?.onClose?.();
    await Promise.all(waiting);
    expect(asked).toBe(4);
  });
});

it('serves one runtime at a time, and the next one after a close or a start that failed', async () => {
  const first = await start();
  await expect(control.start(first)).rejects.toThrow('used by another runtime');
  const taken = healthEndpoint({ port: first.address?.port ?? 0 });
  for (let i = 0; i < 2; i += 1) await expect(control.start(taken)).rejects.toThrow('the port is taken');
  await first.onClose?.();
  expect((await control.start(first)).address).toBeDefined();
});

describe('/readyz', () => {
  it('says 200 and shows the subscriptions while the runtime takes messages', async () => {
    await start();
    expect(await get('/readyz')).toMatchObject({
      status: 200,
      body: { status: 'ready', reasons: [], subscriptions: [{ handler: 'billing', state: 'running' }] },
    });
  });

  it('says 200 while a subscription is paused: that ends by itself, or was asked for', async () => {
    control.subscriptions = [health({ state: 'paused', pausedBy: ['outage'], dependenciesDown: ['gateway'] })];
    await start();
    expect(await get('/readyz?verbose')).toMatchObject({
      status: 200,
      body: { subscriptions: [{ state: 'paused', pausedBy: ['outage'] }] },
    });
  });

  it('says 503 and why while a subscription is degraded', async () => {
    control.subscriptions = [health(), health({ handler: 'mail', state: 'degraded', reason: 'dead letters refused' })];
    await start();
    expect(await get('/readyz')).toMatchObject({
      status: 503,
      body: { status: 'not-ready', reasons: ['handler "mail" is degraded: dead letters refused'] },
    });
  });

  it('says 503 from the moment the runtime drains', async () => {
    await start();
    await endpoint?.onDrain?.();
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { reasons: ['the runtime drains'] } });
  });

  it('says so once when the subscriptions drain, also before the plugin is told', async () => {
    control.subscriptions = [health({ state: 'draining' }), health({ state: 'draining', handler: 'mail' })];
    await start();
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { reasons: ['the runtime drains'] } });
  });

  it('says 500, and logs it, when the health cannot be told', async () => {
    await start();
    control.health = () => {
      throw new Error('broken');
    };
    expect(await get('/readyz')).toMatchObject({ status: 500, body: { status: 'error' } });
    expect(control.linesAt('error')).toMatchObject([{ fields: { path: '/readyz', error: new Error('broken') } }]);
  });
});

describe('/metrics', () => {
  it('is not found unless metrics are given', async () => {
    await start();
    expect(await get('/metrics')).toMatchObject({ status: 404, body: { paths: ['/livez', '/readyz'] } });
  });

  it.each([
    ['a text', () => 'up 1\n'],
    ['a promise of one', () => Promise.resolve('up 1\n')],
  ])('gives %s as Prometheus reads it', async (_, metrics) => {
    await start({ metrics });
    const answer = await get('/metrics');
    expect(answer).toMatchObject({ status: 200, body: 'up 1\n' });
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  it.each([
    [
      'throws',
      (): string => {
        throw new Error('broken');
      },
    ],
    ['rejects', () => Promise.reject<string>(new Error('broken'))],
    ['gives no text', () => 5 as never],
  ])('says 500, and logs it, when the function %s', async (_, metrics) => {
    await start({ metrics });
    expect(await get('/metrics')).toMatchObject({ status: 500 });
    expect(control.linesAt('error')).toHaveLength(1);
  });

  it('says 500 when nothing comes in ten seconds', async () => {
    let asked: () => void = () => undefined;
    const wasAsked = new Promise<void>((resolve) => (asked = resolve));
    await start({ metrics: () => (asked(), new Promise(() => undefined)) });
    const answer = get('/metrics');
    await wasAsked;
    await control.clock.advanceBy(10_000);
    expect(await answer).toMatchObject({ status: 500 });
    expect(control.clock.pendingTimers).toEqual([]);
  });
});

describe('a request', () => {
  it.each(['/', '/livez/', '/../etc/passwd', '/LIVEZ', '//livez'])('for %s is not found', async (path) => {
    await start();
    expect(await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 404 /);
  });

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('by %s is not allowed', async (method) => {
    await start();
    const answer = await get('/livez', { method });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('by HEAD gets the status without a body', async () => {
    await start();
    expect(await get('/readyz', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
  });

  it('with a body is answered before the body has come, and ends the connection', async () => {
    await start();
    expect(await raw('POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nfirst')).toMatch(
      /^HTTP\/1.1 405 [^]*connection: close/i,
    );
  });

  it('with headers of more than 8 KiB is refused', async () => {
    await start();
    expect(await raw(`GET /livez HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(9_000)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431 /);
  });

  it('that is never completed is ended', { timeout: 15_000 }, async () => {
    await start();
    expect(await raw('GET /livez HTTP/1.1\r\nHost: x\r\n')).toMatch(/^HTTP\/1.1 408 /);
  });

  it('on the 33rd connection at a time finds no server', async () => {
    await start();
    const sockets = await Promise.all(Array.from({ length: 32 }, () => open()));
    const one = await open();
    await new Promise((resolve) => one.once('close', resolve));
    expect(sockets.every(({ destroyed }) => !destroyed)).toBe(true);
    for (const socket of sockets) socket.destroy();
  });
});

describe('the server', () => {
  it('listens on loopback only, unless told otherwise, and says where', async () => {
    await start();
    expect(endpoint?.address).toEqual({ host: '127.0.0.1', port: expect.any(Number) as number });
    expect(control.linesAt('info')).toMatchObject([{ fields: endpoint?.address }]);
  });

  it('listens where it is told to', async () => {
    await start({ host: '0.0.0.0' });
    expect(endpoint?.address?.host).toBe('0.0.0.0');
  });

  it('fails the start when the port is taken, by name', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    await expect(control.start(healthEndpoint({ port }))).rejects.toMatchObject({
      code: 'START_FAILED',
      message: `the health endpoint cannot listen on 127.0.0.1, port ${port}: the port is taken`,
      cause: { code: 'EADDRINUSE' },
    });
    await new Promise((resolve) => other.close(resolve));
  });

  it('fails the start when there is no such address', async () => {
    await expect(control.start(healthEndpoint({ port: 0, host: '203.0.113.1' }))).rejects.toMatchObject({
      code: 'START_FAILED',
    });
  });

  it('closes at once, with connections kept alive and with an answer under way', async () => {
    await start({ metrics: () => new Promise(() => undefined) });
    const idle = await open();
    const asked = new Promise<void>((resolve) => {
      const request = httpRequest(at('/metrics'));
      request.on('error', () => resolve());
      request.end();
    });
    const closed = new Promise((resolve) => idle.once('close', resolve));
    await get('/livez');
    await endpoint?.onClose?.();
    await Promise.all([closed, asked]);
    expect(endpoint?.address).toBeUndefined();
    await control.clock.advanceBy(0);
    expect(control.clock.pendingTimers).toEqual([]);
  });

  it('frees its port for the next start', async () => {
    await start();
    const port = endpoint?.address?.port ?? 0;
    await endpoint?.onClose?.();
    await start({ port });
    expect(endpoint?.address?.port).toBe(port);
  });
});

describe('options', () => {
  it('are checked all at once', () => {
    expect(problemsOf(() => healthEndpoint({ port: 70_000, host: '', metrics: 'x', hots: 1 } as never))).toEqual([
      'healthEndpoint: unknown option "hots", did you mean "host"?',
      'healthEndpoint: "port" must be a whole number from 0 to 65535, got 70000',
      'healthEndpoint: "host" must be a text that is not empty, got ""',
      'healthEndpoint: "metrics" must be a function, got "x"',
    ]);
  });

  it('that are missing are named', () => {
    expect(problemsOf(() => healthEndpoint({} as never))).toEqual([
      'healthEndpoint: "port" is missing; it must be a port number, 0 for any free one',
    ]);
  });
});

function open(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(endpoint?.address?.port ?? 0, '127.0.0.1', () => resolve(socket));
    socket.once('error', reject);
  });
}

/** What comes back for these bytes until the server ends the connection. */
async function raw(bytes: string): Promise<string> {
  const socket = await open();
  socket.write(bytes);
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}
