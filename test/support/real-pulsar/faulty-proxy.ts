// A TCP proxy in this process that misbehaves on request: delays, cuts at a byte, loses bytes, freezes, refuses.
// It stands in front of a broker whose lookups answer with the proxy's address, so clients need no option for it.
import { createServer, connect } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { once } from 'node:events';
import { ProxiedStream } from './proxied-stream.js';

export type Direction = 'to-broker' | 'to-client';

export interface FaultyProxyOptions {
  /** Where the broker listens. */
  readonly targetPort: number;
  /** @default one that the system chooses */
  readonly port?: number | undefined;
}

interface Pair {
  readonly client: Socket;
  readonly broker: Socket;
  readonly streams: Readonly<Record<Direction, ProxiedStream>>;
}

const HOST = '127.0.0.1';

export class FaultyProxy {
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #pairs = new Set<Pair>();
  readonly #cuts: { readonly direction: Direction; readonly bytes: number }[] = [];
  #accepted = 0;
  #refusing = false;
  #losing = false;
  #frozen = false;
  #delayMs = 0;

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    server.on('connection', (client) => this.#accept(client));
  }

  static async start(options: FaultyProxyOptions): Promise<FaultyProxy> {
    const server = createServer({ noDelay: true });
    server.listen({ host: HOST, port: options.port ?? 0, exclusive: true });
    await once(server, 'listening'); // Rejects on 'error', EADDRINUSE for one.
    return new FaultyProxy(server, options.targetPort);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get serviceUrl(): string {
    return `pulsar://${HOST}:${this.port}`;
  }

  get openConnections(): number {
    return this.#pairs.size;
  }

  /** Since the proxy began, refused ones included. */
  get acceptedConnections(): number {
    return this.#accepted;
  }

  /** Each way, from now on; what is on its way keeps its order. */
  delay(delayMs: number): void {
    this.#delayMs = delayMs;
    this.#eachStream((stream) => stream.delay(delayMs));
  }

  /** New connections are reset; open ones go on. */
  refuse(): void {
    this.#refusing = true;
  }

  /** Bytes vanish both ways and connections stay open. Reset afterwards: what is left of a stream makes no sense. */
  lose(): void {
    this.#losing = true;
    this.#eachStream((stream) => stream.lose());
  }

  /** Nothing moves and nothing is lost, as with a peer that stopped: `heal` lets it go on. */
  freeze(): void {
    this.#frozen = true;
    this.#eachStream((stream) => stream.freeze());
  }

  /** Resets every open connection now. */
  reset(): void {
    for (const { client, broker } of this.#pairs) {
      client.resetAndDestroy();
      broker.resetAndDestroy();
    }
  }

  /**
   * Each open connection, or the next one where none is open, ends after exactly so many further bytes in that
   * direction: the receiver gets these and then the end of the stream.
   */
  cutAfter(direction: Direction, bytes: number): void {
    if (this.#pairs.size === 0) this.#cuts.push({ direction, bytes });
    for (const pair of this.#pairs) pair.streams[direction].cutAfter(bytes);
  }

  /** No fault from now on. Bytes that were lost stay lost; connections that lost some are reset. */
  heal(): void {
    if (this.#losing) this.reset();
    this.#refusing = false;
    this.#losing = false;
    this.#frozen = false;
    this.#cuts.length = 0;
    this.delay(0);
    this.#eachStream((stream) => stream.thaw());
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.reset();
    await closed;
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    client.on('error', () => undefined);
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    const broker = connect({ host: HOST, port: this.#targetPort, noDelay: true });
    broker.on('error', () => undefined);
    const streams = {
      'to-broker': new ProxiedStream(client, broker),
      'to-client': new ProxiedStream(broker, client),
    };
    const pair: Pair = { client, broker, streams };
    this.#pairs.add(pair);
    client.once('close', () => this.#pairs.delete(pair));
    const cut = this.#cuts.shift();
    if (cut !== undefined) streams[cut.direction].cutAfter(cut.bytes);
    for (const stream of Object.values(streams)) {
      stream.delay(this.#delayMs);
      if (this.#losing) stream.lose();
      if (this.#frozen) stream.freeze();
    }
  }

  #eachStream(change: (stream: ProxiedStream) => void): void {
    for (const { streams } of this.#pairs) Object.values(streams).forEach(change);
  }
}
