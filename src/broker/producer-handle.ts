// A connected producer as its client holds it: what Pulsar's protocol lets a producer ask of the broker.
import { TransportError } from '../core/errors.js';
import type { EncodedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { checkSequenceId } from '../core/sequence-id.js';
import { notSupported, producerBusy, producerFenced } from './broker-errors.js';
import type { BrokerFaults } from './broker-faults.js';
import { lostOnPurpose } from './broker-faults.js';
import type { BrokerProducer } from './broker-producer.js';
import { checkChunk } from './broker-requests.js';
import type { BrokerTopic } from './broker-topic.js';
import type { ChunkOrigin } from './entry.js';
import type { EntryMaker } from './entry-maker.js';
import type { StoredMessage } from './stored-message.js';

export interface ProducerHandleParts {
  readonly topic: BrokerTopic;
  readonly producer: BrokerProducer;
  readonly lastSequenceId: number;
  readonly entries: EntryMaker;
  readonly faults: BrokerFaults;
}

export class ProducerHandle {
  /** Full name of the topic, with its partition. */
  readonly topic: string;
  readonly producerName: string;
  /** The highest sequence id that a deduplicating broker has of a producer of this name; -1 for none (S-44). */
  readonly lastSequenceId: number;
  readonly #parts: ProducerHandleParts;
  readonly #producer: BrokerProducer;

  constructor(parts: ProducerHandleParts) {
    const { topic, producer, lastSequenceId } = parts;
    this.topic = topic.name;
    this.producerName = producer.name;
    this.lastSequenceId = lastSequenceId;
    this.#parts = parts;
    this.#producer = producer;
  }

  /** Whether it may publish now. */
  get isAttached(): boolean {
    return this.#producer.state === 'attached';
  }

  /** Whether the broker closed it and it may come again, as another one. */
  get isDisconnected(): boolean {
    return this.#producer.state === 'disconnected';
  }

  /**
   * With `wait-for-exclusive` resolves once the producer has the topic for itself.
   * @throws TransportError PRODUCER_FENCED, ALREADY_CLOSED; CONNECTION_LOST, after which it may get in line again.
   */
  async admitted(): Promise<void> {
    if (this.#producer.waited !== undefined) await this.#producer.waited;
    if (!this.isAttached) throw this.#refusal();
  }

  /**
   * Resolves with the receipt, which for a repetition names no message but -1:-1 (S-44).
   * @param sequenceId a whole number of 0 or more.
   * @param transaction the key of the one that it is a part of: readers see it once that is committed (T-07). The first one of a
   *   transaction on the topic waits, see `join`.
   * @param chunk the message is this part of a larger one. All parts have the sequence id of the whole, and a broker that
   *   deduplicates looks at the last one only (S-44). Consumers of `embedded()` join them.
   * @throws ConfigurationError for what is no message, or no part of one; TransportError MESSAGE_TOO_LARGE, TOPIC_TERMINATED, NOT_ALLOWED,
   *   ALREADY_CLOSED, CONNECTION_LOST once the broker closed it, PRODUCER_FENCED, PRODUCER_BUSY while it waits; TRANSACTION_ENDED.
   */
  async publish(
    message: EncodedMessage,
    sequenceId: number,
    chunk?: ChunkOrigin,
    transaction?: string,
  ): Promise<MessageId> {
    this.#checkAttached();
    const copy = this.copyOf(message, sequenceId);
    if (chunk !== undefined) this.#checkChunk(chunk, copy);
    if (transaction !== undefined && !this.hasJoined(transaction)) await this.#joined(transaction);
    const fails = this.#faults();
    const { topic, entries } = this.#parts;
    const { producerName } = this;
    const entry = entries.single(copy, this.topic, { producerName, sequenceId, transaction }, chunk);
    const { id, stored } = topic.append(entry);
    if (stored !== undefined) await stored;
    if (fails === 'after') throw lostOnPurpose('publishing');
    return id;
  }

  /**
   * The message as it is now, checked, for a `publish` that comes later, by whichever producer of this broker.
   * @throws ConfigurationError
   */
  copyOf(message: EncodedMessage, sequenceId: number): StoredMessage {
    return this.#parts.entries.numberedMessage(message, sequenceId);
  }

  /**
   * The same for a producer batch, whose messages have consecutive sequence ids from this one on.
   * @throws also TransportError PUBLISH_REFUSED for no batch.
   */
  async publishBatch(
    messages: readonly EncodedMessage[],
    sequenceId: number,
    transaction?: string,
  ): Promise<readonly MessageId[]> {
    this.#checkAttached();
    checkSequenceId(sequenceId);
    const copies = this.#parts.entries.batch(messages);
    if (transaction !== undefined && !this.hasJoined(transaction)) await this.#joined(transaction);
    const fails = this.#faults();
    const { topic, entries } = this.#parts;
    const { producerName } = this;
    const entry = entries.batched(copies, this.topic, { producerName, sequenceId, transaction });
    const { id, stored } = topic.append(entry);
    if (stored !== undefined) await stored;
    if (fails === 'after') throw lostOnPurpose('publishing');
    return messages.map((_, batchIndex) => ({ ...id, batchIndex }));
  }

  /** Whether what is published in the transaction goes straight to the topic. */
  hasJoined(transaction: string): boolean {
    return this.#parts.topic.transactions.hasJoined(transaction);
  }

  /**
   * Makes the topic a part of the transaction: what is published in it afterwards keeps its place among all that is published.
   * @throws TransportError TRANSACTION_ENDED; NOT_SUPPORTED on a topic that is not persistent; NOT_ALLOWED where the broker has
   *   no transactions; BROKER_ERROR, retriable.
   */
  join(transaction: string): Promise<void> {
    return this.#parts.topic.transactions.join(transaction);
  }

  /** Its name is free again. Calling it twice is allowed. */
  close(): void {
    const { state } = this.#producer;
    if (state === 'attached' || state === 'waiting') this.#parts.topic.detach(this.#producer);
    else this.#producer.become('closed');
  }

  /** @throws ConfigurationError; TransportError NOT_SUPPORTED where entries have no place of their own. */
  #checkChunk(chunk: ChunkOrigin, { payload }: StoredMessage): void {
    checkChunk(chunk, payload?.length ?? 0);
    const { name, isVolatile } = this.#parts.topic;
    if (isVolatile) throw notSupported(`"${name}" is not persistent: chunks get lost one by one`);
  }

  async #joined(transaction: string): Promise<void> {
    await this.join(transaction);
    this.#checkAttached();
  }

  #checkAttached(): void {
    if (!this.isAttached) throw this.#refusal();
  }

  /** @returns whether it is to fail on purpose once the message is stored. */
  #faults(): 'after' | undefined {
    const { faults } = this.#parts;
    const fails = faults.none ? undefined : faults.ofPublish(this.topic);
    if (fails === 'before') throw lostOnPurpose('publishing');
    return fails;
  }

  #refusal(): TransportError {
    const subject = `producer "${this.producerName}" of topic "${this.topic}"`;
    switch (this.#producer.state) {
      case 'fenced':
        return producerFenced(`${subject} was shut out by a newer one`);
      case 'closed':
        return new TransportError('ALREADY_CLOSED', `${subject} is closed`, { retriable: false });
      case 'waiting':
        return producerBusy(`${subject} waits for exclusive access`);
      case 'attached':
      case 'disconnected': {
        const text = `${subject} was disconnected by the broker and must connect again`;
        return new TransportError('CONNECTION_LOST', text, { retriable: true });
      }
    }
  }
}
