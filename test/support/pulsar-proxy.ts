// A stand-in for Pulsar's proxy before a real broker: a connection whose CONNECT names no broker is for lookups and goes
// to the one it was started for, any other one to the broker that it names.
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { once } from 'node:events';
import { FrameReader } from '../../src/transports/wire/protocol/frame-reader.js';
import { decodeFrame, encodeCommand } from '../../src/transports/wire/protocol/frames.js';

const MAX_FRAME_BYTES = 6 * 1024 * 1024;

export class PulsarProxy {
  /** The brokers that clients named, one for each connection in the order of coming; undefined for lookups. */
  readonly targets: (string | undefined)[] = [];
  /** Commands that came over a connection for lookups and do not belong there. */
  readonly misplaced: string[] = [];
  readonly #server: Server;
  readonly #lookupBroker: string;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, lookupBroker: string) {
    this.#server = server;
    this.#lookupBroker = lookupBroker;
    server.on('connection', (client) => this.#accept(client));
  }

  /** @param broker `host:port` of the broker that answers lookups. */
  static async start(broker: string): Promise<PulsarProxy> {
    const server = createServer({ noDelay: true });
    server.listen({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return new PulsarProxy(server, broker);
  }

  get serviceUrl(): string {
    return `pulsar://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends every connection now. */
  reset(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.reset();
    await closed;
  }

  #accept(client: Socket): void {
    this.#own(client);
    let broker: Socket | undefined;
    let forLookups = false;
    const reader = new FrameReader(MAX_FRAME_BYTES, (frame) => {
      const { command } = decodeFrame(frame);
      if (command?.name === 'CONNECT') {
        const { proxyToBrokerUrl, ...rest } = command.body;
        forLookups = proxyToBrokerUrl === undefined;
        this.targets.push(proxyToBrokerUrl);
        broker = this.#connect(proxyToBrokerUrl ?? this.#lookupBroker, client);
        broker.write(encodeCommand('CONNECT', rest));
        return;
      }
      if (forLookups && (command?.name === 'PRODUCER' || command?.name === 'SUBSCRIBE')) {
        this.misplaced.push(command.name);
      }
      const size = Buffer.alloc(4);
      size.writeUInt32BE(frame.length);
      broker?.write(Buffer.concat([size, frame]));
    });
    client.on('data', (chunk: Buffer) => reader.push(chunk));
    client.on('close', () => broker?.destroy());
  }

  #connect(address: string, client: Socket): Socket {
    const [host = '', port] = address.split(':');
    const broker = connect({ host, port: Number(port), noDelay: true });
    this.#own(broker);
    broker.pipe(client);
    return broker;
  }

  #own(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
