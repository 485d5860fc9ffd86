// One topic, or partition, of an embedded subscription over one connection: its consumer at the broker, how many
// permits it may have, and the messages that come in.
import type { ReceivedMessage } from '../../core/message.js';
import type { ConsumerSink, DeliveredEntry } from '../../broker/broker-consumer.js';
import { BytePool } from '../../broker/byte-pool.js';
import type { ConsumerHandle } from '../../broker/consumer-handle.js';
import { partitionOf } from '../../core/topic-name.js';

/** What a link tells its subscription. */
export interface LinkOwner {
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
