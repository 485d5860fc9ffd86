// A scripted server for cases that a real broker does not produce on demand: it listens on a free port of this machine,
// keeps every command it gets, and answers as the test says. What is not scripted is answered as a plain broker would.
import { createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { TlsOptions as TlsServerOptions } from 'node:tls';
import type { AddressInfo, Socket } from 'node:net';
import { FakeClock } from '../../src/testing/fake-clock.js';
import type { Command, CommandBody, CommandName } from '../../src/transports/wire/protocol/commands.js';
import { FrameReader } from '../../src/transports/wire/protocol/frame-reader.js';
import { decodeFrame, encodeCommand } from '../../src/transports/wire/protocol/frames.js';

/** Time stands still, turns of the event loop do not: sockets are real, and what is written to them leaves with the turn. */
export class SocketClock extends FakeClock {
  override nextTurn(run: () => void): void {
    setImmediate(run);
  }
}

/** Answers by name of the command; one that says nothing leaves the client waiting. */
export type Script = { [N in CommandName]?: (body: CommandBody<N>, peer: Peer) => void };

export class Peer {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  send<N extends CommandName>(name: N, body: CommandBody<N>): void {
    this.raw(encodeCommand(name, body));
  }

  raw(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  cut(): void {
    this.#socket.destroy();
  }
}

/** What a TLS server has; with `requestCert` it wants a certificate of its clients as well. */
export type ServerIdentity = Pick<TlsServerOptions, 'cert' | 'key' | 'ca' | 'requestCert'>;

export class WireServer {
  readonly received: Command[] = [];
  /** What stood behind each SEND, in the order of coming: see `decodeEntry`. */
  readonly sections: Buffer[] = [];
  /** Connections that are open now, the newest last. */
  readonly peers: Peer[] = [];
  readonly url: string;
  readonly #close: () => Promise<void>;
  #waiting: (() => void)[] = [];

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.#close = close;
  }

  /**
   * @param script answers instead of the plain ones; it may be changed while the server runs. @param identity makes it
   * a TLS server: certificate and key in PEM.
   */
  static async start(script: Script = {}, identity?: ServerIdentity): Promise<WireServer> {
    const sockets = new Set<Socket>();
    const accept = (socket: Socket): void => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => undefined);
      server.#accept(socket, script);
    };
    const listener = identity === undefined ? createServer(accept) : createTlsServer(identity, accept);
    listener.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const scheme = identity === undefined ? 'pulsar' : 'pulsar+ssl';
    const url = `${scheme}://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    const server = new WireServer(url, async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    });
    return server;
  }

  /** The `count`-th command of that name, once it has come. */
  async command<N extends CommandName>(name: N, count = 1): Promise<CommandBody<N>> {
    for (;;) {
      const found = this.received.filter((command) => command.name === name)[count - 1];
      if (found !== undefined) return found.body as CommandBody<N>;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  close(): Promise<void> {
    return this.#close();
  }

  #accept(socket: Socket, script: Script): void {
    const peer = new Peer(socket);
    this.peers.push(peer);
    socket.on('close', () => this.peers.splice(this.peers.indexOf(peer), 1));
    const reader = new FrameReader(10_000_000, (frame) => {
      const { command, payload } = decodeFrame(frame);
      if (command?.name === 'SEND') this.sections.push(Buffer.from(payload));
      if (command !== undefined) this.#answer(command, peer, script);
    });
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
  }

  #answer(command: Command, peer: Peer, script: Script): void {
    this.received.push(command);
    const answer = script[command.name] ?? plainScript(this.url)[command.name];
    (answer as ((body: unknown, peer: Peer) => void) | undefined)?.(command.body, peer);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** The answer to CONNECT of a broker with these features. */
export function connectedWith(featureFlags: CommandBody<'CONNECTED'>['featureFlags']): NonNullable<Script['CONNECT']> {
  const answer = { serverVersion: 'scripted', protocolVersion: 19, maxMessageSize: 100_000, featureFlags };
  return (_, peer) => peer.send('CONNECTED', answer);
}

/** What a broker that serves every topic itself would say. */
function plainScript(url: string): Script {
  const success = ({ requestId }: { readonly requestId: number }, peer: Peer): void =>
    peer.send('SUCCESS', { requestId });
  return {
    CONNECT: connectedWith(undefined),
    PING: (_, peer) => peer.send('PONG', {}),
    PARTITIONED_METADATA: ({ requestId }, peer) =>
      peer.send('PARTITIONED_METADATA_RESPONSE', { requestId, partitions: 0, response: 0 }),
    LOOKUP: ({ requestId }, peer) =>
      peer.send('LOOKUP_RESPONSE', { requestId, response: 1, brokerServiceUrl: url, brokerServiceUrlTls: url }),
    PRODUCER: ({ requestId }, peer) => peer.send('PRODUCER_SUCCESS', { requestId, producerName: 'scripted-1' }),
    SEND: ({ producerId, sequenceId }, peer) =>
      peer.send('SEND_RECEIPT', { producerId, sequenceId, messageId: { ledgerId: 1, entryId: sequenceId } }),
    ACK: ({ consumerId, requestId }, peer) =>
      requestId === undefined ? undefined : peer.send('ACK_RESPONSE', { consumerId, requestId }),
    SUBSCRIBE: success,
    SEEK: success,
    CLOSE_PRODUCER: success,
    CLOSE_CONSUMER: success,
  };
}

/** A MESSAGE frame. `section` is what stands behind the command; see `sectionOf`. */
export function messageFrame(message: CommandBody<'MESSAGE'>, section: Buffer): Buffer {
  const command = encodeCommand('MESSAGE', message);
  const frame = Buffer.concat([command, section]);
  frame.writeUInt32BE(frame.length - 4, 0);
  return frame;
}

/** Checksum, metadata and payload of a SEND frame: what a broker stores and sends on. */
export function sectionOf(sendFrame: Buffer): Buffer {
  return decodeFrame(sendFrame.subarray(4)).payload;
}
