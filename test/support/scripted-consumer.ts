// A subscription on a scripted server: what consumer tests open, send and look at.
import type { ReceivedMessage } from '../../src/core/message.js';
import { BatchWriter } from '../../src/transports/wire/protocol/batch.js';
import type { CommandBody, CommandName } from '../../src/transports/wire/protocol/commands.js';
import { encodeSend } from '../../src/transports/wire/protocol/frames.js';
import type { MessageMetadata } from '../../src/transports/wire/protocol/message-metadata.js';
import type { Subscription } from '../../src/ports/transport.js';
import type { WireConsumerOptions } from '../../src/wire.js';
import { WireClient } from '../../src/wire.js';
import type { WireOptions } from '../../src/wire.js';
import { closedAfterTest } from './closed-after-test.js';
import { WireServer, messageFrame, sectionOf } from './wire-server.js';
import type { Script } from './wire-server.js';

export const TOPIC = 'persistent://public/default/t';
export const never = new AbortController().signal;

const METADATA = { producerName: 'p', sequenceId: 0, publishTime: 1 };

export interface LogLine {
  readonly level: string;
  readonly text: string;
}

export async function startClient(script: Script = {}, options: Partial<WireOptions> = {}) {
  const server = closedAfterTest(await WireServer.start(script));
  const lines: LogLine[] = [];
  const log = (level: string) => (text: string) => void lines.push({ level, text });
  const logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') };
  const quick = { random: () => 0.5, reconnectMinMs: 1 };
  const client = closedAfterTest(new WireClient({ serviceUrl: server.url, ...quick, logger, ...options }));
  return { server, client, lines };
}

/** The same with one subscription that is open and has its permits. */
export async function startSubscription(
  options: Partial<WireConsumerOptions> = {},
  script: Script = {},
  client: Partial<WireOptions> = {},
) {
  const started = await startClient(script, client);
  const subscription = await started.client.subscribe({
    topics: [TOPIC],
    subscription: 's',
    prefetch: 10,
    ...options,
  });
  const { consumerId } = await started.server.command('SUBSCRIBE');
  return { ...started, subscription, ...new ScriptedTopic(started.server, consumerId).face() };
}

/** What the server does to one consumer. */
export class ScriptedTopic {
  readonly #server: WireServer;
  readonly #consumerId: number;

  constructor(server: WireServer, consumerId: number) {
    this.#server = server;
    this.#consumerId = consumerId;
  }

  face() {
    const consumerId = this.#consumerId;
    return {
      consumerId,
      /** Sends an entry over the newest connection. */
      deliver: (entryId: number, section: Buffer, more: Partial<CommandBody<'MESSAGE'>> = {}): void => {
        const messageId = { ledgerId: 1, entryId };
        this.#server.peers.at(-1)?.raw(messageFrame({ consumerId, messageId, ...more }, section));
      },
      /** Says something to the client over the newest connection. */
      say: <N extends CommandName>(name: N, body: CommandBody<N>): void => this.#server.peers.at(-1)?.send(name, body),
      all: <N extends CommandName>(name: N): readonly CommandBody<N>[] =>
        this.#server.received.filter((command) => command.name === name).map(({ body }) => body as CommandBody<N>),
      /** What the client granted in all. */
      granted: (): number =>
        this.#server.received.reduce(
          (sum, command) => sum + (command.name === 'FLOW' ? command.body.messagePermits : 0),
          0,
        ),
      /** Resolves once everything that was said before has been read and answered. */
      settled: async (): Promise<void> => {
        const pongs = this.#server.received.filter(({ name }) => name === 'PONG').length;
        this.#server.peers.at(-1)?.send('PING', {});
        await this.#server.command('PONG', pongs + 1);
      },
    };
  }
}

/** The section of an entry with `text` as its payload. */
export function section(text: string, metadata: Partial<MessageMetadata> = {}): Buffer {
  return sectionOf(encodeSend({ producerId: 1, sequenceId: 0 }, { ...METADATA, ...metadata }, Buffer.from(text)));
}

export function batchSection(texts: readonly string[], metadata: Partial<MessageMetadata> = {}): Buffer {
  const batch = new BatchWriter();
  for (const text of texts) batch.add({ payloadSize: text.length }, Buffer.from(text));
  const all = { ...METADATA, numMessagesInBatch: texts.length, ...metadata };
  return sectionOf(encodeSend({ producerId: 1, sequenceId: 0 }, all, Buffer.from(batch.view())));
}

export const textOf = (message: ReceivedMessage | undefined) => Buffer.from(message?.payload ?? '').toString();

export async function receiveTexts(subscription: Subscription, count: number): Promise<readonly string[]> {
  return (await receiveMany(subscription, count)).map(textOf);
}

export async function receiveMany(subscription: Subscription, count: number): Promise<readonly ReceivedMessage[]> {
  const received: ReceivedMessage[] = [];
  while (received.length < count) {
    const message = await subscription.receive(never);
    if (message === undefined) break;
    received.push(message);
  }
  return received;
}
