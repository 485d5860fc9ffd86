// The Publisher port over the wire: one producer per partition, the choice of the partition, and the room for messages
// that wait for receipts.
import { toError } from '../../core/errors.js';
import type { EncodedMessage } from '../../core/message.js';
import { publishProblem } from '../../core/message-checks.js';
import type { MessageId } from '../../core/message-id.js';
import { partitionOf } from '../../core/topic-name.js';
import type { Publisher } from '../../ports/transport.js';
import { MAX_CHUNKED_BYTES } from '../../chunks/chunk.js';
import { MessageRouting } from './message-routing.js';
import { PartitionGrowth } from './partition-growth.js';
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
import { partitionNames } from './topic-source.js';
import { transactionOf } from '../../transactions/open-transaction.js';
import type { InTransaction } from '../../ports/transaction.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';
import { TransactionGate } from './transaction-gate.js';
import type { WireContext } from './wire-context.js';

export interface WirePublisherParts {
  readonly options: ResolvedPublisherOptions;
  /** What the broker takes for one entry. */
  readonly maxMessageBytes: () => number;
  readonly forget: (closed: WirePublisher) => void;
}

export class WirePublisher implements Publisher {
  readonly topic: string;
  readonly #parts: WirePublisherParts;
  readonly #context: WireContext;
  readonly #producerParts: TopicProducerParts;
  /** By number of the partition; grows with the topic. */
  readonly #producers: TopicProducer[] = [];
  readonly #routing: MessageRouting<TopicProducer>;
  readonly #room: PendingRoom;
  readonly #gates = new Map<TopicProducer, TransactionGate>();
  #growth: PartitionGrowth | undefined;
  #lastSequenceId = -1;
  #closed = false;

  private constructor(context: WireContext, topic: string, codec: Codec, parts: WirePublisherParts) {
    this.#context = context;
    this.topic = topic;
    this.#parts = parts;
    const { clock, random } = context.options;
    const { options, maxMessageBytes } = parts;
    this.#room = new PendingRoom(options.maxPendingMessages, context.pendingBytes, clock, (message) =>
      this.#admitted(message),
    );
    const done: TopicProducerParts['done'] = (receipts) => this.#room.leave(receipts);
    this.#producerParts = { options, compression: codec, maxEntryBytes: maxMessageBytes, done };
    this.#routing = new MessageRouting(this.#producers, options, random);
  }

  /** @param topic full name. @throws TransportError */
  static async open(context: WireContext, topic: string, parts: WirePublisherParts): Promise<WirePublisher> {
    const count = partitionOf(topic) >= 0 ? 0 : await context.lookup.partitions(topic);
    const publisher = new WirePublisher(context, topic, await codecOf(parts.options.compression), parts);
    await publisher.#take(partitionNames(topic, count));
    publisher.#follow(count);
    return publisher;
  }

  /** Opens producers of further partitions: all or none. */
  async #take(names: readonly string[]): Promise<void> {
    const fresh = names.map((name) => new TopicProducer(this.#context, name, this.#producerParts));
    try {
      if (this.#parts.options.accessMode === 'shared') await allOf(fresh.map((producer) => producer.open()));
      // One after the other: of two that both want all of them, each would keep what the other waits for.
      else for (const producer of fresh) await producer.open();
    } catch (error) {
      await Promise.all(fresh.map((producer) => producer.close()));
      throw error;
    }
    if (this.#closed) await Promise.all(fresh.map((producer) => producer.close()));
    this.#producers.push(...fresh);
    this.#lastSequenceId = Math.max(this.#lastSequenceId, ...fresh.map((producer) => producer.lastSequenceId));
  }

  #follow(count: number): void {
    if (count === 0) return;
    const { topic } = this;
    const grew = (from: number, to: number): Promise<void> => this.#take(partitionNames(topic, to).slice(from));
    const everyMs = this.#parts.options.partitionsUpdateMs;
    this.#growth = new PartitionGrowth(this.#context, { topic, count, everyMs, grew });
  }

  nextSequenceId(): number {
    this.#lastSequenceId += 1;
    return this.#lastSequenceId;
  }

  /**
   * See the port. @param sequenceId undefined for `nextSequenceId()`. @param options `{ transaction }`: the message is shown
   * once that is committed. Then sequence ids are not for repeating: a broker that deduplicates does not look whether what
   * it had before was aborted.
   * Waits for room when too much is without a receipt. @throws ConfigurationError for what is no message; TransportError
   * also CALL_TIMED_OUT, see `sendTimeoutMs`.
   */
  publish(message: EncodedMessage, sequenceId = this.nextSequenceId(), options?: InTransaction): Promise<MessageId> {
    if (options !== undefined) return this.#publishIn(options, message, sequenceId);
    const wrong = this.#whatIsWrong(message, sequenceId);
    if (wrong !== undefined) return Promise.reject(wrong);
    // Not an async function: the promise of one around this promise would cost as much as all the rest.
    return this.#room.enter({
      message,
      sequenceId,
      bytes: sizeOf(message),
      sinceMs: undefined,
      transaction: undefined,
    });
  }

  #publishIn(options: InTransaction, message: EncodedMessage, sequenceId: number): Promise<MessageId> {
    let transaction: OpenTransaction | undefined;
    try {
      transaction = transactionOf(options, this.#context);
    } catch (error) {
      return Promise.reject(toError(error));
    }
    if (transaction === undefined) return this.publish(message, sequenceId);
    transaction.publishesBy(this);
    return transaction.run(() => {
      const wrong = this.#whatIsWrong(message, sequenceId);
      if (wrong !== undefined) return Promise.reject(wrong);
      return this.#room.enter({ message, sequenceId, bytes: sizeOf(message), sinceMs: undefined, transaction });
    });
  }

  #whatIsWrong(message: EncodedMessage, sequenceId: number): Error | undefined {
    if (this.#closed) return alreadyClosed(`publisher of "${this.topic}"`);
    const problem = publishProblem(message, sequenceId);
    if (problem !== undefined) return problem;
    const { payload } = message;
    const isCut = this.#parts.options.maxChunkBytes !== undefined;
    const limit = isCut ? MAX_CHUNKED_BYTES : this.#parts.maxMessageBytes();
    // Not even when compression would make it small enough: those who read it refuse it.
    if (payload === null || payload.length <= limit) return undefined;
    return messageTooLarge(this.topic, payload.length, limit);
  }

  /** Full names of the topics it publishes to: the topic itself, or its partitions. */
  topics(): readonly string[] {
    return this.#producers.map(({ topic }) => topic);
  }

  /**
   * The name that the broker knows it by: `producerName`, or the one that the broker made. Of a partitioned topic that of
   * the first partition: a broker makes one for each.
   */
  get producerName(): string {
    return this.#producers[0]?.name ?? '';
  }

  /** Sends at once what waits for its batch to fill. */
  flush(): void {
    for (const producer of this.#producers) producer.flush();
  }

  /**
   * Waits for the receipts of what was sent, or waits for a coordinator, while there is a broker to give them; what waits
   * for room fails.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#growth?.close();
    this.#room.close(alreadyClosed(`publisher of "${this.topic}"`));
    await Promise.all([...this.#gates.values()].map((gate) => gate.empty()));
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
    if (message.transaction === undefined && this.#gates.size === 0) return producer.publish(message);
    return this.#gateTo(producer).enter(message);
  }

  /** From the first transaction on: what is published afterwards may have to wait for what was before. */
  #gateTo(producer: TopicProducer): TransactionGate {
    const known = this.#gates.get(producer);
    if (known !== undefined) return known;
    const gate = new TransactionGate({
      topic: producer.topic,
      publish: (message) => producer.publish(message),
      refused: ({ bytes }) => this.#room.leave({ count: 1, bytes }),
    });
    this.#gates.set(producer, gate);
    return gate;
  }
}

/** Waits for all of them, then fails as the first that failed. */
async function allOf(opening: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(opening)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason as Error;
}

type Codec = TopicProducerParts['compression'];

async function codecOf(compression: Compression): Promise<Codec> {
  if (compression === 'none') return undefined;
  const number = COMPRESSION_NUMBERS[compression];
  return { number, codec: await loadCodec(number) };
}
