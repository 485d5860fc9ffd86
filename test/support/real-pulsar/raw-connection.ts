// A connection to a broker that says what a test tells it to, wrong things too: for what brokers do that a client relies on.
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Command, CommandBody, CommandName } from '../../../src/transports/wire/protocol/commands.js';
import { FrameReader } from '../../../src/transports/wire/protocol/frame-reader.js';
import { decodeFrame, encodeCommand } from '../../../src/transports/wire/protocol/frames.js';

const MAX_FRAME_BYTES = 10_000_000;

export class RawConnection {
  /** Whatever came, in order. */
  readonly received: Command[] = [];
  /** Resolves when the broker closes it. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  #waiting: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => socket.on('close', () => resolve()));
    socket.on('error', () => undefined);
    const reader = new FrameReader(MAX_FRAME_BYTES, (frame) => this.#arrived(decodeFrame(frame).command));
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
  }

  /** @param connects whether CONNECT is sent and answered first. */
  static async open(serviceUrl: string, connects = true): Promise<RawConnection> {
    const { hostname, port } = new URL(serviceUrl);
    const socket = connect(Number(port), hostname);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    const connection = new RawConnection(socket);
    if (connects) {
      connection.send('CONNECT', { clientVersion: 'raw', protocolVersion: 20 });
      await connection.next('CONNECTED');
    }
    return connection;
  }

  send<N extends CommandName>(name: N, body: CommandBody<N>): void {
    this.raw(encodeCommand(name, body));
  }

  raw(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  /** Sends a request and gives what answers it. */
  async ask<N extends CommandName>(name: N, body: CommandBody<N> & { readonly requestId: number }): Promise<Command> {
    this.send(name, body);
    return this.#first((command) => (command.body as { requestId?: number }).requestId === body.requestId);
  }

  /** The `count`-th command of that name. */
  async next<N extends CommandName>(name: N, count = 1): Promise<CommandBody<N>> {
    return (await this.#first((command) => command.name === name, count)).body as CommandBody<N>;
  }

  close(): void {
    this.#socket.destroy();
  }

  async #first(matches: (command: Command) => boolean, count = 1): Promise<Command> {
    for (;;) {
      const found = this.received.filter(matches)[count - 1];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #arrived(command: Command | undefined): void {
    if (command === undefined) return;
    this.received.push(command);
    // Who does not answer is shut out when somebody else wants the same place.
    if (command.name === 'PING') this.send('PONG', {});
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
