// A TCP proxy in this process that misbehaves on request: delays, cuts at a byte, changes or loses bytes, freezes, refuses.
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
  readonly #corruptions: { readonly direction: Direction; readonly text: string }[] = [];
  #corrupted = 0;
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
   * direction: the receiver gets these and then the end of the stream. Of several cuts the soonest counts.
   */
  cutAfter(direction: Direction, bytes: number): void {
    if (this.#pairs.size === 0) this.cutNext(direction, bytes);
    for (const pair of this.#pairs) pair.streams[direction].cutAfter(bytes);
  }

  /** The same for connections that are not open yet: the first of these takes the cut that was asked for first. */
  cutNext(direction: Direction, bytes: number): void {
    this.#cuts.push({ direction, bytes });
  }

  /** One bit of `text` is changed the next time that it passes in that direction, in one piece and on any connection. */
  corrupt(direction: Direction, text: string): void {
    this.#corruptions.push({ direction, text });
  }

  /** How many texts were changed so far. */
  get corrupted(): number {
    return this.#corrupted;
  }

  /** No fault from now on. Bytes that were lost stay lost; connections that lost some are reset. */
  heal(): void {
    if (this.#losing) this.reset();
    this.#refusing = false;
    this.#losing = false;
    this.#frozen = false;
    this.#cuts.length = 0;
    this.#corruptions.length = 0;
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
      'to-broker': new ProxiedStream(client, broker, (bytes) => this.#alter('to-broker', bytes)),
      'to-client': new ProxiedStream(broker, client, (bytes) => this.#alter('to-client', bytes)),
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

  #alter(direction: Direction, bytes: Buffer): void {
    for (const asked of this.#corruptions.filter((each) => each.direction === direction)) {
      const at = bytes.indexOf(asked.text);
      if (at < 0) continue;
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      this.#corruptions.splice(this.#corruptions.indexOf(asked), 1);
      this.#corrupted += 1;
    }
  }

  #eachStream(change: (stream: ProxiedStream) => void): void {
    for (const { streams } of this.#pairs) Object.values(streams).forEach(change);
  }
}
