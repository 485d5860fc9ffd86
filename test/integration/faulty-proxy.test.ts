// The proxy's faults, before a server that answers with what it gets: campaigns rely on a cut being at the byte it says.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FaultyProxy } from '../support/real-pulsar/faulty-proxy.js';

const echo = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.pipe(socket);
});

let proxy: FaultyProxy;

beforeEach(async () => {
  echo.listen(0, '127.0.0.1');
  await once(echo, 'listening');
  proxy = await FaultyProxy.start({ targetPort: (echo.address() as AddressInfo).port });
});

afterEach(async () => {
  await proxy.close();
  echo.close();
});

/** A connection through the proxy that keeps what it receives. */
class Line {
  readonly socket: Socket = connect({ host: '127.0.0.1', port: proxy.port });
  text = '';
  readonly closed: Promise<unknown>;

  constructor() {
    this.socket.on('error', () => undefined);
    this.socket.setEncoding('latin1').on('data', (text: string) => (this.text += text));
    this.closed = new Promise((resolve) => this.socket.once('close', resolve));
  }

  async say(text: string): Promise<void> {
    this.socket.write(text);
    const length = this.text.length + text.length;
    while (this.text.length < length) await once(this.socket, 'data');
  }
}

it('hands everything on in order', async () => {
  const line = new Line();
  const text = Array.from({ length: 50_000 }, (_, index) => `${index},`).join('');

  await line.say(text);

  expect(line.text === text).toBe(true);
});

it.for([0, 1, 7, 65_536, 100_000])('ends a connection after exactly %i bytes to the client', async (bytes) => {
  const line = new Line();
  await line.say('x');

  proxy.cutAfter('to-client', bytes);
  line.socket.write('y'.repeat(200_000));
  await line.closed;

  expect(line.text).toHaveLength(1 + bytes);
});

it('cuts the next connection when none is open', async () => {
  proxy.cutAfter('to-client', 3);
  const line = new Line();
  line.socket.write('abcdef');
  await line.closed;

  expect(line.text).toBe('abc');
});

it('cuts connections to come in turn, and spares those that are open', async () => {
  const open = new Line();
  await open.say('before');
  proxy.cutNext('to-client', 1);
  proxy.cutNext('to-client', 2);
  const texts: string[] = [];
  for (let next = 0; next < 2; next++) {
    const line = new Line();
    line.socket.write('abcdef');
    await line.closed;
    texts.push(line.text);
  }

  await open.say(' after');

  expect([...texts, open.text]).toEqual(['a', 'ab', 'before after']);
});

it('changes one bit of a text, once and in one direction', async () => {
  proxy.corrupt('to-client', 'middle');
  const line = new Line();

  await line.say('front middle middle');
  await line.say(' middle');

  expect([line.text, proxy.corrupted]).toEqual(['front liddle middle middle', 1]);
});

it('delays each way', async () => {
  proxy.delay(50);
  const line = new Line();
  const startedMs = performance.now();

  await line.say('x');

  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(95);
});

it('keeps what comes while it is frozen', async () => {
  const line = new Line();
  await line.say('a');
  proxy.freeze();
  const said = line.say('b');
  const other = new Line();
  await once(other.socket, 'connect');
  const whileFrozen = line.text;

  proxy.heal();
  await said;

  expect([whileFrozen, line.text]).toEqual(['a', 'ab']);
});

it('resets a connection that lost bytes once it heals', async () => {
  const line = new Line();
  await line.say('a');
  proxy.lose();
  line.socket.write('lost');

  proxy.heal();
  await line.closed;

  expect(line.text).toBe('a');
});

it('resets new connections while it refuses, and serves them afterwards', async () => {
  proxy.refuse();
  const refused = new Line();
  await refused.closed;
  proxy.heal();
  const served = new Line();

  await served.say('a');

  expect([refused.text, served.text]).toEqual(['', 'a']);
});
