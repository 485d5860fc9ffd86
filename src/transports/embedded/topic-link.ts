// One topic, or partition, of an embedded subscription over one connection: its consumer at the broker, how many
// permits it may have, the messages that come in, and what settles them.
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import type { ConsumerSink, DeliveredEntry } from '../../broker/broker-consumer.js';
import { BytePool } from '../../broker/byte-pool.js';
import type { Stored } from '../../broker/broker-store.js';
import type { ConsumerHandle } from '../../broker/consumer-handle.js';
import type { ChunkOrigin } from '../../broker/entry.js';
import { partitionOf } from '../../core/topic-name.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import { transactionKey } from '../../core/transaction-id.js';
import type { OpenTransaction } from '../../transactions/open-transaction.js';
import type { ChunkedMessages } from './chunked-messages.js';

/** What a link tells its subscription. */
export interface LinkOwner {
  /** Of the topic, over all its connections. */
  readonly chunks: ChunkedMessages;
  /** None where a chunk came that is not the last one of its message: permits are to be granted anew all the same. */
  arrived(link: TopicLink, messages: readonly ReceivedMessage[]): void;
  activeChanged(link: TopicLink): void;
  disconnected(link: TopicLink): void;
}

export class TopicLink implements ConsumerSink {
  /** Full name, with its partition. */
  readonly topic: string;
  /** Undefined until the broker told (Failover only). */
  active: boolean | undefined;
  /** Whether the topic was terminated and the subscription has acknowledged all of it. */
  hasReachedEnd = false;
  readonly #owner: LinkOwner;
  readonly #connection: number;
  readonly #partition: number;
  readonly #pool = new BytePool();
  #handle: ConsumerHandle | undefined;
  /** Messages that arrived and were not handed on yet. */
  #queued = 0;
  /** Permits granted less messages arrived: below zero after a batch (S-11). */
  #permits = 0;

  constructor(topic: string, connection: number, owner: LinkOwner) {
    this.topic = topic;
    this.#connection = connection;
    this.#owner = owner;
    this.#partition = partitionOf(topic);
  }

  get handle(): ConsumerHandle {
    if (this.#handle === undefined) throw new Error(`the consumer of ${this.topic} is not connected yet`);
    return this.#handle;
  }

  connected(handle: ConsumerHandle): void {
    this.#handle = handle;
  }

  /** Whether the broker may send more now. */
  get hasPermits(): boolean {
    return this.#permits > 0;
  }

  /** Undefined when it is stored already. Of a message in chunks all entries, as in all that follows. */
  acknowledge(ids: readonly MessageId[]): Stored {
    const { chunks } = this.#owner;
    const messages = chunks.among(ids);
    if (messages.length === 0) return this.handle.acknowledge(ids);
    const stored = this.handle.acknowledge(chunks.entriesOf(ids));
    if (stored !== undefined) return stored.then(() => chunks.confirmed(messages));
    chunks.confirmed(messages);
    return undefined;
  }

  /**
   * As parts of `transaction`, all or none: those of chunks with all of their entries.
   * @param sending called just before the broker is asked. @throws TransportError TRANSACTION_CONFLICT, TRANSACTION_ENDED, BROKER_ERROR.
   */
  async acknowledgeIn(transaction: OpenTransaction, ids: readonly MessageId[], sending: () => void): Promise<void> {
    transaction.checkMayChange();
    const { chunks } = this.#owner;
    const messages = chunks.among(ids);
    const entries = messages.flatMap((message) => message.entries);
    const single = ids.filter((id) => chunks.among([id]).length === 0);
    sending();
    await this.handle.acknowledgeIn(transactionKey(transaction.id), [...single, ...chunks.idsOf(entries)]);
    transaction.join({ committed: () => chunks.confirmed(messages), aborted: () => undefined });
  }

  /** @throws TransportError NOT_SUPPORTED on Shared and Key_Shared. */
  acknowledgeCumulative(id: MessageId): Stored {
    const stored = this.handle.acknowledgeCumulative(id);
    this.#owner.chunks.acknowledgedThrough(id);
    return stored;
  }

  redeliver(ids: readonly MessageId[]): void {
    this.handle.redeliver(this.#owner.chunks.gaveBack(ids));
  }

  redeliverAll(): void {
    this.#owner.chunks.forgetIncomplete();
    this.handle.redeliverAll();
  }

  /** Messages in chunks have no part in the order of their key (K-43): those that failed are asked for when they are due. */
  negativeAcknowledgeOrdered(nacked: readonly MessageId[], returned: readonly MessageId[]): void {
    const { chunks } = this.#owner;
    const whole = nacked.filter((id) => chunks.among([id]).length === 0);
    this.handle.negativeAcknowledgeOrdered(whole, chunks.gaveBack(returned));
  }

  seek(to: SeekTarget): void {
    this.handle.seek(this.#owner.chunks.seekTarget(to));
  }

  /** `messages` of this link left the queue. */
  handedOn(messages: number): void {
    this.#queued -= messages;
  }

  /**
   * Grants what is missing for `target` messages to lie here or be on their way, in lots of half of it, as Pulsar's
   * clients do (S-10): fewer calls, and never more than `target` unless a batch is larger.
   */
  grantUpTo(target: number): void {
    const missing = target - this.#queued - this.#permits;
    if (missing < 1 || missing < Math.floor(target / 2)) return;
    this.#permits += missing;
    this.handle.flow(missing);
  }

  deliver(delivered: DeliveredEntry): void {
    const { entry, unacked } = delivered;
    if (entry.chunk !== undefined) return this.#deliverChunk(delivered, entry.chunk);
    const messages: ReceivedMessage[] = [];
    for (let index = 0; index < entry.messageCount; index++) {
      if (unacked === undefined || unacked.has(index)) messages.push(this.#received(delivered, index));
    }
    this.#permits -= messages.length;
    this.#queued += messages.length;
    this.#owner.arrived(this, messages);
  }

  activeChanged(active: boolean): void {
    this.active = active;
    this.#owner.activeChanged(this);
  }

  disconnected(): void {
    this.#owner.disconnected(this);
  }

  endOfTopic(): void {
    this.hasReachedEnd = true;
  }

  /** Only the last one takes a place here. */
  #deliverChunk(delivered: DeliveredEntry, chunk: ChunkOrigin): void {
    const whole = this.#owner.chunks.arrived(this.#received(delivered, 0), chunk);
    this.#permits -= 1;
    if (whole !== undefined) this.#queued += 1;
    this.#owner.arrived(this, whole === undefined ? [] : [whole]);
  }

  #received(delivered: DeliveredEntry, index: number): ReceivedMessage {
    const { entry, ledgerId, entryId, redeliveryCount } = delivered;
    const { batchSize } = entry;
    const message = entry.messageAt(index);
    const payload = message.payload;
    return {
      id: {
        ledgerId,
        entryId,
        partition: this.#partition,
        batchIndex: batchSize === 0 ? -1 : index,
        batchSize,
        topic: this.topic,
      },
      // A copy: a handler that changes its bytes must not change what is delivered again.
      payload: payload === null ? null : this.#pool.copy(payload),
      key: message.key instanceof Uint8Array ? this.#pool.copy(message.key) : message.key,
      orderingKey: message.orderingKey && this.#pool.copy(message.orderingKey),
      properties: message.properties,
      eventTimeMs: message.eventTimeMs,
      deliverAtMs: message.deliverAtMs,
      publishTimeMs: entry.publishTimeMs,
      redeliveryCount,
      producerName: entry.producerName,
      connection: this.#connection,
    };
  }
}
