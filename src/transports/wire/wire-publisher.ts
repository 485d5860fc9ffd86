// The Publisher port over the wire: one producer per partition, the choice of the partition, and the room for messages
// that wait for receipts.
import { PulseworkError, describeValue } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { partitionName, partitionOf } from '../../core/topic-name.js';
import type { Publisher } from '../../ports/transport.js';
import { MessageRouting } from './message-routing.js';
import { PendingRoom, sizeOf } from './pending-message.js';
import type { PendingMessage } from './pending-message.js';
import { loadCodec } from './protocol/compression.js';
import { COMPRESSION_NUMBERS } from './protocol/message-metadata.js';
import type { Compression } from './protocol/message-metadata.js';
import { messageTooLarge } from './publish-errors.js';
import type { ResolvedPublisherOptions } from './publisher-options.js';
import { alreadyClosed } from './server-errors.js';
import { TopicProducer } from './topic-producer.js';
import type { TopicProducerParts } from './topic-producer.js';
import type { WireContext } from './wire-context.js';

/** The topics to attach to: the topic itself, or each of its partitions. */
export async function partitionsOf(context: WireContext, topic: string): Promise<string[]> {
  if (partitionOf(topic) >= 0) return [topic];
  const count = await context.lookup.partitions(topic);
  return count === 0 ? [topic] : Array.from({ length: count }, (_, index) => partitionName(topic, index));
}

export interface WirePublisherParts {
  readonly options: ResolvedPublisherOptions;
  /** What the broker takes for one entry. */
  readonly maxMessageBytes: () => number;
  readonly forget: (closed: WirePublisher) => void;
}

export class WirePublisher implements Publisher {
  readonly topic: string;
  readonly #parts: WirePublisherParts;
  readonly #producers: readonly TopicProducer[];
  readonly #routing: MessageRouting<TopicProducer>;
  readonly #room: PendingRoom;
  #lastSequenceId: number;
  #closed = false;

  private constructor(
    context: WireContext,
    topic: string,
    names: readonly string[],
    codec: Codec,
    parts: WirePublisherParts,
  ) {
    this.topic = topic;
    this.#parts = parts;
    const { clock, random } = context.options;
    const { options, maxMessageBytes } = parts;
    this.#room = new PendingRoom(options.maxPendingMessages, context.pendingBytes, clock, (message) =>
      this.#admitted(message),
    );
    const done: TopicProducerParts['done'] = (receipts) => this.#room.leave(receipts);
    const producerParts = { options, compression: codec, maxEntryBytes: maxMessageBytes, done };
    this.#producers = names.map((name) => new TopicProducer(context, name, producerParts));
    this.#routing = new MessageRouting(this.#producers, options, random);
    this.#lastSequenceId = -1;
  }

  /** @param topic full name. @throws TransportError */
  static async open(context: WireContext, topic: string, parts: WirePublisherParts): Promise<WirePublisher> {
    const names = await partitionsOf(context, topic);
    const codec = await codecOf(parts.options.compression);
    const publisher = new WirePublisher(context, topic, names, codec, parts);
    await publisher.#open();
    return publisher;
  }

  async #open(): Promise<void> {
    const opened = await Promise.allSettled(this.#producers.map((producer) => producer.open()));
    const failed = opened.find((result) => result.status === 'rejected');
    if (failed !== undefined) {
      await Promise.all(this.#producers.map((producer) => producer.close()));
      throw failed.reason as Error;
    }
    this.#lastSequenceId = Math.max(-1, ...this.#producers.map((producer) => producer.lastSequenceId));
  }

  nextSequenceId(): number {
    this.#lastSequenceId += 1;
    return this.#lastSequenceId;
  }

  /**
   * See the port.
   * Waits for room when too much is without a receipt. @throws TransportError also CALL_TIMED_OUT, see `sendTimeoutMs`.
   */
  publish(message: EncodedMessage, sequenceId: number): Promise<MessageId> {
    const wrong = this.#whatIsWrong(message, sequenceId);
    if (wrong !== undefined) return Promise.reject(wrong);
    // Not an async function: the promise of one around this promise would cost as much as all the rest.
    return this.#room.enter({ message, sequenceId, bytes: sizeOf(message), sinceMs: undefined });
  }

  #whatIsWrong({ payload }: EncodedMessage, sequenceId: number): Error | undefined {
    if (this.#closed) return alreadyClosed(`publisher of "${this.topic}"`);
    if (!Number.isSafeInteger(sequenceId) || sequenceId < 0) {
      const rule = `sequence id must be a whole number of 0 or more, got ${describeValue(sequenceId)}`;
      return new PulseworkError('CONFIGURATION_INVALID', rule);
    }
    const limit = this.#parts.maxMessageBytes();
    // Not even when compression would make it small enough: those who read it refuse it.
    if (payload === null || payload.length <= limit) return undefined;
    return messageTooLarge(this.topic, payload.length, limit);
  }

  /** Sends at once what waits for its batch to fill. */
  flush(): void {
    for (const producer of this.#producers) producer.flush();
  }

  /** Waits for the receipts of what was sent while there is a broker to give them; what waits for room fails. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#room.close(alreadyClosed(`publisher of "${this.topic}"`));
    await Promise.all(this.#producers.map((producer) => producer.close()));
    this.#parts.forget(this);
  }

  #admitted(message: PendingMessage): Promise<MessageId> {
    let producer: TopicProducer;
    try {
      producer = this.#routing.partitionFor(message.message);
    } catch (error) {
      const failure = error as Error;
      this.#room.leave({ count: 1, bytes: message.bytes });
      return Promise.reject(failure);
    }
    return producer.publish(message);
  }
}

type Codec = TopicProducerParts['compression'];

async function codecOf(compression: Compression): Promise<Codec> {
  if (compression === 'none') return undefined;
  const number = COMPRESSION_NUMBERS[compression];
  return { number, codec: await loadCodec(number) };
}
