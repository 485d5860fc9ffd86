// A publisher on the embedded broker: a producer for each partition, and the choice of the partition. The receipt comes when
// the broker's store has the message.
import type { AccessMode } from '../../core/access-mode.js';
import { TransportError } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { transactionKey } from '../../core/transaction-id.js';
import type { Timer } from '../../ports/clock.js';
import type { InTransaction } from '../../ports/transaction.js';
import type { Publisher } from '../../ports/transport.js';
import { transactionOf } from '../../transactions/open-transaction.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';
import type { EmbeddedBroker } from '../../broker/embedded-broker.js';
import type { ProducerHandle } from '../../broker/producer-handle.js';
import { partitionFor } from '../../broker/routing.js';
import { publishInChunks } from './chunked-publish.js';
import { NamedTopics } from './topic-source.js';

/** Between two attempts to get a new partition that somebody has for himself. */
const GROW_AGAIN_MS = 1_000;

export interface EmbeddedPublisherParts {
  readonly broker: EmbeddedBroker;
  /** Full name. */
  readonly topic: string;
  readonly producerName: string | undefined;
  readonly accessMode: AccessMode;
  /** `Infinity` for as much as fits; undefined to cut nothing. */
  readonly maxChunkBytes: number | undefined;
  /** Called once at close. */
  readonly forget: () => void;
}

export class EmbeddedPublisher implements Publisher {
  readonly topic: string;
  readonly #parts: EmbeddedPublisherParts;
  readonly #source: NamedTopics;
  /** By number of the partition; grows with the topic. */
  readonly #producers: ProducerHandle[] = [];
  #lastSequenceId = -1;
  /** Counts messages without a key: they go to the partitions in turn. */
  #turn = 0;
  /** Of a new partition, perhaps in line for it. */
  #joining: ProducerHandle | undefined;
  #growAgain: Timer | undefined;
  /** One after the other: what a growth waits for the next one must not ask for again. */
  #growing: Promise<void> = Promise.resolve();
  /** Resolves when what was published before has been sent; undefined while nothing waits. */
  #waiting: Promise<void> | undefined;
  #closed = false;

  constructor(parts: EmbeddedPublisherParts) {
    this.topic = parts.topic;
    this.#parts = parts;
    this.#source = new NamedTopics(parts.broker, [parts.topic]);
  }

  /**
   * With `wait-for-exclusive` it resolves once it has all partitions for itself; they are taken one after the other, so that
   * of two that wait none keeps what the other waits for.
   * @throws TransportError PRODUCER_BUSY, PRODUCER_FENCED, TOPIC_TERMINATED; ALREADY_CLOSED when it is closed meanwhile.
   */
  async open(): Promise<void> {
    try {
      for (const topic of this.#source.topics()) await this.#take(topic);
      if (this.#closed) throw this.#alreadyClosed();
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#source.follow(() => this.#growNext());
  }

  /** What the broker knows it by; of a partitioned topic, on its first partition. */
  get producerName(): string {
    return this.#producers[0]?.producerName ?? '';
  }

  /** Full names of the topics it publishes to: the topic itself, or its partitions. */
  topics(): readonly string[] {
    return this.#producers.map(({ topic }) => topic);
  }

  nextSequenceId(): number {
    this.#lastSequenceId += 1;
    return this.#lastSequenceId;
  }

  /** Not an async function: a promise around the producer's would cost as much as publishing. */
  publish(message: EncodedMessage, sequenceId: number, options?: InTransaction): Promise<MessageId> {
    if (this.#closed) return Promise.reject(this.#alreadyClosed());
    if (options !== undefined) return this.#publishIn(options, message, sequenceId);
    const [only] = this.#producers;
    if (only !== undefined && this.#producers.length === 1 && only.isAttached && this.#waiting === undefined)
      return this.#send(only, message, sequenceId);
    return this.#publishRouted(message, sequenceId);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#source.close();
    this.#growAgain?.cancel();
    this.#joining?.close();
    for (const producer of this.#producers) producer.close();
    this.#parts.forget();
  }

  async #publishIn(options: InTransaction, message: EncodedMessage, sequenceId: number): Promise<MessageId> {
    const transaction = transactionOf(options, this.#parts.broker.transactions?.place);
    if (transaction === undefined) return this.publish(message, sequenceId);
    return transaction.run(async () => {
      transaction.checkMayChange();
      return this.#publishRouted(message, sequenceId, transaction);
    });
  }

  async #publishRouted(message: EncodedMessage, sequenceId: number, transaction?: OpenTransaction): Promise<MessageId> {
    // Before anything is waited for: it is stored as it was at the call.
    const copy = (this.#producers[0] as ProducerHandle).copyOf(message, sequenceId);
    const index = this.#producers.length > 1 ? partitionFor(copy, this.#producers.length, this.#turn) : 0;
    if (copy.key === undefined) this.#turn += 1;
    const producer = this.#producers[index] as ProducerHandle;
    const send = async (): Promise<MessageId> => {
      const attached = producer.isDisconnected ? await this.#admitted(index) : producer;
      return this.#send(attached, copy, sequenceId, transaction && transactionKey(transaction.id));
    };
    return this.#inOrder(producer, transaction, send);
  }

  /**
   * The first message of a transaction waits until its topic is a part of that, and what is published after it waits behind it:
   * order counts.
   */
  #inOrder(
    producer: ProducerHandle,
    transaction: OpenTransaction | undefined,
    send: () => Promise<MessageId>,
  ): Promise<MessageId> {
    const key = transaction && transactionKey(transaction.id);
    const mayPass = key === undefined || producer.hasJoined(key);
    if (mayPass && this.#waiting === undefined) return send();
    const join = (): Promise<void> | undefined => {
      transaction?.checkMayChange();
      return key === undefined ? undefined : producer.join(key);
    };
    const ready = (this.#waiting ?? Promise.resolve()).then(join);
    const passed = ready.catch(() => undefined);
    this.#waiting = passed;
    void passed.then(() => {
      if (this.#waiting === passed) this.#waiting = undefined;
    });
    return ready.then(send);
  }

  #send(
    producer: ProducerHandle,
    message: EncodedMessage,
    sequenceId: number,
    transaction?: string,
  ): Promise<MessageId> {
    const { maxChunkBytes, broker } = this.#parts;
    if (maxChunkBytes === undefined) return producer.publish(message, sequenceId, undefined, transaction);
    const sizes = { maxChunkBytes, maxEntryBytes: broker.options.maxMessageBytes };
    return publishInChunks(producer, message, sequenceId, sizes, transaction);
  }

  /** @throws TransportError, also ALREADY_CLOSED: what connects after the close would never leave. */
  #connect(topic: string, producerName: string | undefined): ProducerHandle {
    if (this.#closed) throw this.#alreadyClosed();
    const { broker, accessMode } = this.#parts;
    return broker.producer({ topic, producerName, accessMode }, () => this.#comeAgain(topic));
  }

  /** At once, as Pulsar's clients do: the topic, and the place on it, are not left to others. */
  #comeAgain(topic: string): void {
    const index = this.#producers.findIndex((producer) => producer.topic === topic);
    if (this.#closed || this.#producers[index]?.isDisconnected !== true) return;
    this.#admitted(index).catch(() => {
      // Its next publish tries again, and tells.
    });
  }

  /** The producer once it may publish: one that the broker closed comes again, unless it was shut out. @throws TransportError */
  async #admitted(index: number): Promise<ProducerHandle> {
    for (;;) {
      const producer = this.#producers[index] as ProducerHandle;
      try {
        await producer.admitted();
        return producer;
      } catch (error) {
        if (!producer.isDisconnected) throw error;
      }
      const { topic, producerName } = producer;
      if (this.#producers[index] === producer) this.#producers[index] = this.#connect(topic, producerName);
    }
  }

  async #take(topic: string): Promise<void> {
    const index = this.#producers.push(this.#connect(topic, this.#parts.producerName)) - 1;
    const { lastSequenceId } = await this.#admitted(index);
    this.#lastSequenceId = Math.max(this.#lastSequenceId, lastSequenceId);
  }

  #growNext(): void {
    this.#growing = this.#growing.then(() => this.#grow());
  }

  /** Until new partitions can be had, keys go by those that there are. */
  async #grow(): Promise<void> {
    try {
      for (const topic of this.#source.topics().slice(this.#producers.length)) {
        const producer = this.#connect(topic, this.#parts.producerName);
        this.#joining = producer;
        await producer.admitted();
        this.#producers.push(producer);
      }
    } catch {
      if (this.#closed) return;
      const { clock } = this.#parts.broker;
      this.#growAgain?.cancel();
      this.#growAgain = clock.setTimer(GROW_AGAIN_MS, () => this.#growNext());
    }
  }

  #alreadyClosed(): TransportError {
    return new TransportError('ALREADY_CLOSED', `publisher of "${this.topic}" is closed`, { retriable: false });
  }
}
