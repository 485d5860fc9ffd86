// The Publisher port over the official client: one unbatched producer, never more messages in it than its queue takes, and a
// close that waits for receipts. The client itself drops what has none when it closes, and says so of what is stored too.
import { toError } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { partitionName } from '../../core/topic-name.js';
import type { Publisher } from '../../ports/transport.js';
import { hold, release } from './held-objects.js';
import type { OfficialMessageId, OfficialOutgoingMessage, OfficialProducer } from './official-client.js';
import type { Official } from './official-connection.js';
import { alreadyClosed, closeQuietly, publishError, transportError } from './official-errors.js';
import { portIdOf } from './official-ids.js';
import { officialMessageOf } from './outgoing-message.js';
import type { ResolvedPulsarOptions } from './pulsar-options.js';

const HASHES = { java: 'JavaStringHash', murmur3: 'Murmur3_32Hash' } as const;

interface Waiting {
  readonly message: OfficialOutgoingMessage;
  readonly resolve: (id: MessageId) => void;
  readonly reject: (error: Error) => void;
}

export class PulsarPublisher implements Publisher {
  readonly topic: string;
  readonly #producer: OfficialProducer;
  readonly #options: ResolvedPulsarOptions;
  readonly #forget: (closed: PulsarPublisher) => void;
  readonly #sending = new Set<Promise<unknown>>();
  /** In the order of the calls. */
  #waiting: Waiting[] = [];
  #lastSequenceId = -1;
  #closing: Promise<void> | undefined;

  private constructor(
    topic: string,
    producer: OfficialProducer,
    options: ResolvedPulsarOptions,
    forget: (closed: PulsarPublisher) => void,
  ) {
    this.topic = topic;
    this.#producer = producer;
    this.#options = options;
    this.#forget = forget;
  }

  /** @param topic full name. @param own `forget` is called once at close. @throws TransportError */
  static async open(
    { client }: Official,
    topic: string,
    options: ResolvedPulsarOptions,
    own: {
      readonly forget: (closed: PulsarPublisher) => void;
      /** @default the broker makes one */
      readonly producerName: string | undefined;
    },
  ): Promise<PulsarPublisher> {
    const creating = client.createProducer({
      topic,
      ...(own.producerName !== undefined && { producerName: own.producerName }),
      sendTimeoutMs: Math.ceil(options.sendTimeoutMs),
      maxPendingMessages: options.maxPendingMessages,
      // A batch is redelivered, and on Key_Shared delivered, as one: no key has its own fate.
      batchingEnabled: false,
      // It would stop the whole process from running.
      blockIfQueueFull: false,
      messageRoutingMode: 'RoundRobinDistribution',
      hashingScheme: HASHES[options.keyHash],
      compressionType: options.compression,
    });
    const producer = await creating.catch((error: unknown) => {
      throw transportError(`opening a producer on "${topic}"`, error);
    });
    hold(producer);
    return new PulsarPublisher(topic, producer, options, own.forget);
  }

  nextSequenceId(): number {
    this.#lastSequenceId += 1;
    return this.#lastSequenceId;
  }

  async publish(message: EncodedMessage, sequenceId: number): Promise<MessageId> {
    if (this.#closing !== undefined) throw alreadyClosed(`publisher of "${this.topic}"`);
    const official = officialMessageOf(this.topic, message, sequenceId, this.#options.maxMessageBytes);
    if (this.#sending.size < this.#options.maxPendingMessages) return this.#send(official);
    // The client copies bytes when it sends; until then they are the caller's, who may change them.
    official.data = Buffer.from(official.data);
    return new Promise((resolve, reject) => this.#waiting.push({ message: official, resolve, reject }));
  }

  /** What waits for room fails; what was sent is waited for, as long as `sendTimeoutMs`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { reject } of waiting) reject(alreadyClosed(`publisher of "${this.topic}"`));
    await Promise.allSettled(this.#sending);
    const subject = `closing the producer of "${this.topic}"`;
    try {
      await closeQuietly(this.#producer.flush(), subject);
    } finally {
      // Whatever flushing says, it must not stay open.
      const closing = closeQuietly(this.#producer.close(), subject);
      await closing.finally(() => {
        release(this.#producer);
        this.#forget(this);
      });
    }
  }

  async #send(message: OfficialOutgoingMessage): Promise<MessageId> {
    let sending: Promise<OfficialMessageId> | undefined;
    try {
      // Inside: who waits for room goes on, also where the client throws at once.
      sending = this.#producer.send(message);
      this.#sending.add(sending);
      const id = await sending;
      return portIdOf(id, (partition) => (partition < 0 ? this.topic : partitionName(this.topic, partition)));
    } catch (error) {
      throw publishError(this.topic, error);
    } finally {
      if (sending !== undefined) this.#sending.delete(sending);
      this.#sendNext();
    }
  }

  #sendNext(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#send(next.message).then(next.resolve, (error: unknown) => next.reject(toError(error)));
  }
}
