// The Publisher port over the wire: one producer per partition, and the choice of the partition.
import { PulseworkError, TransportError, describeValue } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { partitionName, partitionOf } from '../../core/topic-name.js';
import type { Publisher } from '../../ports/transport.js';
import { javaStringHash, keyText } from './key-hash.js';
import { alreadyClosed } from './server-errors.js';
import { TopicProducer } from './topic-producer.js';
import type { WireContext } from './wire-context.js';

/** The topics to attach to: the topic itself, or each of its partitions. */
export async function partitionsOf(context: WireContext, topic: string): Promise<string[]> {
  if (partitionOf(topic) >= 0) return [topic];
  const count = await context.lookup.partitions(topic);
  return count === 0 ? [topic] : Array.from({ length: count }, (_, index) => partitionName(topic, index));
}

export class WirePublisher implements Publisher {
  readonly topic: string;
  readonly #producers: readonly TopicProducer[];
  readonly #maxMessageBytes: () => number;
  readonly #forget: (closed: WirePublisher) => void;
  #lastSequenceId: number;
  #turn = 0;
  #closed = false;

  private constructor(
    topic: string,
    producers: readonly TopicProducer[],
    parts: { readonly maxMessageBytes: () => number; readonly forget: (closed: WirePublisher) => void },
  ) {
    this.topic = topic;
    this.#producers = producers;
    this.#maxMessageBytes = parts.maxMessageBytes;
    this.#forget = parts.forget;
    this.#lastSequenceId = Math.max(-1, ...producers.map((producer) => producer.lastSequenceId));
  }

  /** @param topic full name. @throws TransportError */
  static async open(
    context: WireContext,
    topic: string,
    parts: { readonly maxMessageBytes: () => number; readonly forget: (closed: WirePublisher) => void },
  ): Promise<WirePublisher> {
    const producers = (await partitionsOf(context, topic)).map((name) => new TopicProducer(context, name));
    const opened = await Promise.allSettled(producers.map((producer) => producer.open()));
    const failed = opened.find((result) => result.status === 'rejected');
    if (failed === undefined) return new WirePublisher(topic, producers, parts);
    await Promise.all(producers.map((producer) => producer.close()));
    throw failed.reason as Error;
  }

  nextSequenceId(): number {
    this.#lastSequenceId += 1;
    return this.#lastSequenceId;
  }

  async publish(message: EncodedMessage, sequenceId: number): Promise<MessageId> {
    if (this.#closed) throw alreadyClosed(`publisher of "${this.topic}"`);
    if (!Number.isSafeInteger(sequenceId) || sequenceId < 0) {
      const rule = `sequence id must be a whole number of 0 or more, got ${describeValue(sequenceId)}`;
      throw new PulseworkError('CONFIGURATION_INVALID', rule);
    }
    this.#checkSize(message);
    return this.#producerFor(message).publish(message, sequenceId);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#forget(this);
    await Promise.all(this.#producers.map((producer) => producer.close()));
  }

  #producerFor(message: EncodedMessage): TopicProducer {
    const turn = message.key === undefined ? this.#turn++ : javaStringHash(keyText(message.key));
    const producer = this.#producers[turn % this.#producers.length];
    if (producer === undefined) throw new Error(`publisher of ${this.topic} has no partition`);
    return producer;
  }

  /** Beyond the limit the broker closes the connection without a word, for everybody on it. */
  #checkSize({ payload, properties }: EncodedMessage): void {
    const limit = this.#maxMessageBytes();
    let bytes = payload?.length ?? 0;
    for (const key of Object.keys(properties))
      bytes += Buffer.byteLength(key) + Buffer.byteLength(properties[key] ?? '');
    if (bytes <= limit) return;
    const text = `message for "${this.topic}" has ${bytes} bytes, the broker takes ${limit}`;
    throw new TransportError('MESSAGE_TOO_LARGE', text, { retriable: false });
  }
}
