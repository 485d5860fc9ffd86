// One of the processes that relay an outbox, seen from its parent, which has the broker. With the process its producers go, as
// those of a connection do.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import type { EncodedMessage, MessageId, Publisher } from '../../../src/index.js';
import type { EmbeddedTransport } from '../../../src/embedded.js';
import { bundledProgram } from '../bundled-program.js';

export interface Request {
  readonly id: number;
  readonly call: 'started' | 'open' | 'publish' | 'close';
  readonly topic?: string;
  readonly producerName?: string | undefined;
  readonly producer?: number;
  readonly message?: EncodedMessage;
  readonly sequenceId?: number;
}

export interface Answer {
  readonly to: number;
  readonly producer?: number;
  readonly id?: MessageId;
  readonly error?: string;
}

export class RelayProcess {
  readonly #child: ChildProcess;
  readonly #transport: EmbeddedTransport;
  readonly #publishers = new Map<number, Publisher>();
  #last = 0;

  private constructor(child: ChildProcess, transport: EmbeddedTransport) {
    this.#child = child;
    this.#transport = transport;
    child.on('message', (request: Request) => void this.#handle(request));
  }

  static async start(transport: EmbeddedTransport, url: string, schema: string): Promise<RelayProcess> {
    const program = await bundledProgram('test/support/outbox-kills/relay-program.ts');
    const child = spawn(process.execPath, [...program, url, schema], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    const relay = new RelayProcess(child, transport);
    await Promise.race([once(child, 'message'), once(child, 'exit')]);
    return relay;
  }

  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
    await Promise.all([...this.#publishers.values()].map((publisher) => publisher.close()));
  }

  async #handle({ id: to, ...request }: Request): Promise<void> {
    if (request.call === 'started') return;
    try {
      const answer = await this.#do(request);
      if (this.#child.connected) this.#child.send({ to, ...answer });
    } catch (error) {
      if (this.#child.connected) this.#child.send({ to, error: String(error) });
    }
  }

  async #do({ call, topic = '', producerName, producer = 0, message, sequenceId = 0 }: Omit<Request, 'id'>) {
    const known = this.#publishers.get(producer);
    switch (call) {
      case 'open': {
        const opened = await this.#transport.publisher(topic, { producerName });
        this.#last += 1;
        this.#publishers.set(this.#last, opened);
        return { producer: this.#last };
      }
      case 'publish':
        if (known === undefined || message === undefined) throw new Error('no such producer');
        return { id: await known.publish(message, sequenceId) };
      default:
        await known?.close();
        this.#publishers.delete(producer);
        return {};
    }
  }
}
