// The producer of one topic or partition: its registration at the broker over all reconnects, and the entries without a
// receipt, which are sent again in order, unchanged, on each new connection.
import { TransportError } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { partitionOf } from '../../core/topic-name.js';
import { Attachment } from './attachment.js';
import type { Connection, ProducerSide } from './connection.js';
import { encodeSingle } from './entry-encoder.js';
import { PendingEntries } from './pending-entries.js';
import type { CommandBody } from './protocol/commands.js';
import { SERVER_ERROR, alreadyClosed, connectionLost, serverError } from './server-errors.js';
import type { WireContext } from './wire-context.js';

export class TopicProducer implements ProducerSide {
  /** Full name, with its partition. */
  readonly topic: string;
  readonly #context: WireContext;
  readonly #id: number;
  readonly #partition: number;
  readonly #attachment: Attachment;
  readonly #pending = new PendingEntries();
  #connection: Connection | undefined;
  /** Given by the broker at the first registration and asked for again at the others. */
  #name: string | undefined;
  #epoch = 0;
  #topicEpoch: number | undefined;
  #lastSequenceId = -1;
  /** Why no more can be published, ever. */
  #dead: Error | undefined;

  constructor(context: WireContext, topic: string) {
    this.topic = topic;
    this.#context = context;
    this.#id = context.nextId();
    this.#partition = partitionOf(topic);
    const parts = {
      subject: `producer of ${topic}`,
      attach: () => this.#attach(),
      givesUp: (error: unknown) => error instanceof TransportError && !error.retriable,
      failed: (error: unknown) => this.#die(error as Error),
    };
    this.#attachment = new Attachment(parts, context.options);
  }

  /** @throws TransportError when the broker refuses it for good or stays away too long. */
  async open(): Promise<void> {
    await this.#attachment.open();
  }

  /** The highest sequence id that the broker has of a producer of this name; -1 for a new one. */
  get lastSequenceId(): number {
    return this.#lastSequenceId;
  }

  /** Resolves with the receipt. Sent at once, or once a broker is there. */
  publish(message: EncodedMessage, sequenceId: number): Promise<MessageId> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const producerName = this.#name ?? '';
    const publishTimeMs = this.#context.options.clock.now();
    const frame = encodeSingle(message, sequenceId, { producerId: this.#id, producerName, publishTimeMs });
    return new Promise((resolve, reject) => {
      const stored = (position: { readonly ledgerId: number; readonly entryId: number }): void =>
        resolve({ ...position, partition: this.#partition, batchIndex: -1, batchSize: 0, topic: this.topic });
      this.#pending.push({ sequenceId, frame, stored, failed: reject });
      this.#connection?.sendFrame(frame);
    });
  }

  receipt({ sequenceId, messageId }: CommandBody<'SEND_RECEIPT'>): void {
    const position = { ledgerId: messageId?.ledgerId ?? -1, entryId: messageId?.entryId ?? -1 };
    if (this.#pending.receipt(sequenceId, position) !== 'gap') return;
    this.#connection?.close(connectionLost(`producer of ${this.topic}: a receipt is missing before ${sequenceId}`));
  }

  sendFailed({ sequenceId, error, message }: CommandBody<'SEND_ERROR'>): void {
    const failure = serverError(`SEND to ${this.topic}`, error, message);
    if (error === SERVER_ERROR.topicTerminated) return this.#die(failure);
    if (error === SERVER_ERROR.notAllowed) return this.#failOldest(sequenceId, failure);
    // Sending everything again over a new connection is the way out of all others.
    this.#connection?.close(connectionLost(failure.message, failure));
  }

  detached(): void {
    this.#connection = undefined;
    this.#attachment.lost();
  }

  /** Gives up what has no receipt yet: whether it was stored is unknown. Calling it twice is allowed. */
  async close(): Promise<void> {
    this.#attachment.close();
    const connection = this.#connection;
    this.#connection = undefined;
    this.#dead ??= alreadyClosed(`publisher of ${this.topic}`);
    this.#pending.failAll(this.#dead);
    if (connection === undefined) return;
    connection.producers.delete(this.#id);
    await connection.request('CLOSE_PRODUCER', { producerId: this.#id }, this.topic).catch(() => undefined);
  }

  async #attach(): Promise<void> {
    const connection = await this.#context.lookup.connectionFor(this.topic);
    if (this.#dead !== undefined) throw this.#dead;
    connection.producers.set(this.#id, this);
    try {
      await this.#register(connection);
    } catch (error) {
      connection.producers.delete(this.#id);
      this.#undo(connection, error);
      throw error;
    }
    if (!connection.isOpen || connection.producers.get(this.#id) !== this) {
      throw connectionLost(`producer of ${this.topic}: closed while it was registered`);
    }
    this.#connection = connection;
    for (const frame of this.#pending.frames()) connection.sendFrame(frame);
  }

  async #register(connection: Connection): Promise<void> {
    const body = {
      topic: this.topic,
      producerId: this.#id,
      producerName: this.#name,
      userProvidedProducerName: false,
      epoch: this.#epoch,
      topicEpoch: this.#topicEpoch,
    };
    this.#epoch += 1;
    const answer = await connection.request('PRODUCER', body, this.topic);
    if (answer.name !== 'PRODUCER_SUCCESS') throw connectionLost(`PRODUCER of ${this.topic}: answered ${answer.name}`);
    if (this.#name === undefined) this.#lastSequenceId = answer.body.lastSequenceId ?? -1;
    this.#name = answer.body.producerName;
    this.#topicEpoch = answer.body.topicEpoch;
    if (this.#dead === undefined) return;
    await connection.request('CLOSE_PRODUCER', { producerId: this.#id }, this.topic).catch(() => undefined);
    throw this.#dead;
  }

  /** Without an answer the broker may have it all the same, and would refuse the next attempt. */
  #undo(connection: Connection, error: unknown): void {
    if (!(error instanceof TransportError) || error.code !== 'CALL_TIMED_OUT') return;
    connection.request('CLOSE_PRODUCER', { producerId: this.#id }, this.topic).catch(() => undefined);
  }

  #failOldest(sequenceId: number, failure: Error): void {
    if (this.#pending.oldest()?.sequenceId === sequenceId) this.#pending.removeOldest()?.failed(failure);
  }

  #die(error: Error): void {
    this.#dead ??= error;
    this.#attachment.close();
    this.#pending.failAll(error);
  }
}
