// A connected consumer as its client holds it: what Pulsar's protocol lets a consumer ask of the broker. After the broker
// disconnected it (seek, unload) its calls fail with CONNECTION_LOST, permits are void.
import { PulseworkError, TransportError, describeValue } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { checkMessageId, checkMessageIdList, formatMessageId } from '../core/message-id.js';
import { seeksMessage } from '../core/topic-parts.js';
import type { BrokerConsumer } from './broker-consumer.js';
import type { Stored } from './broker-store.js';
import type { ConsumerConnection } from './consumer-connection.js';
import type { BrokerTopic } from './broker-topic.js';
import { allStored } from './topic-subscription.js';
import type { MessagePlace, TopicSubscription } from './topic-subscription.js';
import { acknowledgedBefore } from './transactions/pending-ack-errors.js';

export class ConsumerHandle {
  /** Full name of the topic, with its partition. */
  readonly topic: string;
  readonly #broker: BrokerTopic;
  readonly #subscription: TopicSubscription;
  readonly #consumer: BrokerConsumer;
  readonly #connection: ConsumerConnection;
  #closed = false;

  constructor(
    topic: BrokerTopic,
    subscription: TopicSubscription,
    consumer: BrokerConsumer,
    connection: ConsumerConnection,
  ) {
    this.topic = topic.name;
    this.#broker = topic;
    this.#subscription = subscription;
    this.#consumer = consumer;
    this.#connection = connection;
  }

  /** Lets the broker send this many more messages. @throws PulseworkError CONFIGURATION_INVALID unless positive (S-13). */
  flow(permits: number): void {
    if (!Number.isSafeInteger(permits) || permits < 1) {
      const rule = `permits must be a positive integer, got ${describeValue(permits)}`;
      throw new PulseworkError('CONFIGURATION_INVALID', rule);
    }
    this.#checkOpen();
    // Permits for a consumer that the broker closed are void, as on a connection that just broke.
    if (!this.#consumer.connected) return;
    this.#consumer.grant(permits);
    this.#subscription.used();
    this.#broker.transactions.used();
    this.#subscription.wake();
  }

  /** Undefined when it is stored already. Ids that are acknowledged or unknown here are ignored. */
  acknowledge(ids: readonly MessageId[]): Stored {
    this.#checkConnected();
    const stored: Stored[] = [];
    for (const place of this.#placesOf(ids)) {
      const one = this.#subscription.acknowledge(this.#consumer, place);
      if (one !== undefined) stored.push(one);
    }
    this.#subscription.wake();
    return this.#connection.receipt(allStored(stored));
  }

  /**
   * In a transaction, which is named by its key: all of them or none. They are not sent again while it is open, count once it
   * commits, and come again after an abort: on Shared and Key_Shared by themselves, else by `redeliver` (T-10 to T-17).
   * @throws TransportError TRANSACTION_CONFLICT; TRANSACTION_ENDED; NOT_ALLOWED where the broker has no transactions;
   *   BROKER_ERROR, retriable. What the store throws may have happened: then abort.
   */
  async acknowledgeIn(transaction: string, ids: readonly MessageId[]): Promise<void> {
    this.#checkConnected();
    checkMessageIdList(ids);
    const places = ids.map((id) => this.#pendingPlaceOf(transaction, id));
    await this.#connection.receipt(this.#subscription.acknowledgeIn(transaction, places));
  }

  /** The same of everything up to and including this message (T-12). @throws TransportError as both. */
  async acknowledgeCumulativeIn(transaction: string, id: MessageId): Promise<void> {
    this.#checkCumulative();
    const place = this.#pendingPlaceOf(transaction, id);
    await this.#connection.receipt(this.#subscription.acknowledgeUpToIn(transaction, place));
  }

  /** @throws TransportError NOT_SUPPORTED on Shared and Key_Shared. */
  acknowledgeCumulative(id: MessageId): Stored {
    this.#checkCumulative();
    const place = this.#placeOf(id);
    if (place === undefined) return undefined;
    return this.#connection.receipt(this.#subscription.acknowledgeUpTo(this.#consumer, place));
  }

  /** Whole entries; ids not pending here are ignored (S-22). On Exclusive and Failover everything is sent again. */
  redeliver(ids: readonly MessageId[]): void {
    this.#checkConnected();
    const positions = new Set(this.#placesOf(ids).map(({ position }) => position));
    this.#subscription.redeliver(this.#consumer, positions);
  }

  /**
   * `nacked` failed: they stay pending here, and an ordered Key_Shared sends nothing later of their keys until they are
   * acknowledged. `returned` come again uncounted (PIP-493, K-26 and K-27). Whole entries; ids not pending here are ignored.
   * @throws PulseworkError MESSAGE_ID_INVALID for an entry in both lists (K-22).
   */
  negativeAcknowledgeOrdered(nacked: readonly MessageId[], returned: readonly MessageId[]): void {
    this.#checkOpen();
    const failed = new Set(this.#placesOf(nacked).map(({ position }) => position));
    const given = new Set(this.#placesOf(returned).map(({ position }) => position));
    const both = returned.find((id) => failed.has(this.#placeOf(id)?.position ?? -1));
    if (both !== undefined) {
      const rule = `entry ${formatMessageId({ ...both, batchIndex: -1 })} is negatively acknowledged and returned at once`;
      throw new PulseworkError('MESSAGE_ID_INVALID', rule);
    }
    // No answer is given: over a connection that the broker closed nothing is asked, and all of it comes again anyway.
    if (!this.#consumer.connected) return;
    this.#connection.gaveBack(returned);
    this.#subscription.negativeAcknowledgeOrdered(this.#consumer, failed, given);
  }

  /** Everything this consumer holds, what its client has not handed on included. */
  redeliverAll(): void {
    this.#checkConnected();
    this.#subscription.redeliver(this.#consumer, [...this.#consumer.pending.keys()]);
  }

  /**
   * Starts the subscription over from there; disconnects consumers, this one included (S-28).
   * @throws PulseworkError MESSAGE_ID_INVALID for what is no target.
   */
  seek(to: MessageId | Date | 'earliest' | 'latest'): void {
    this.#checkConnected();
    seeksMessage(to);
    // There is nothing to go back to.
    if (this.#broker.isVolatile) return;
    this.#subscription.seek(this.#seekPlace(to));
  }

  /**
   * Deletes the subscription, with all that it has not acknowledged, and closes this consumer.
   * @throws TransportError BROKER_ERROR, retriable, unless it is the only one that is connected (S-30).
   */
  unsubscribe(): void {
    this.#checkConnected();
    const { consumers, name } = this.#subscription;
    if (consumers.length !== 1 || consumers[0] !== this.#consumer) {
      const text = 'Unconnected or shared consumer attempting to unsubscribe';
      throw new TransportError('BROKER_ERROR', `${this.#subject()}: ${text}`, { retriable: true });
    }
    this.close();
    this.#broker.deleteSubscription(name);
  }

  /** What it holds goes back to the subscription, uncounted. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#subscription.disconnect(this.#consumer);
    this.#connection.closed();
  }

  #checkCumulative(): void {
    this.#checkConnected();
    const { type, name } = this.#subscription;
    if (type !== 'shared' && type !== 'key-shared') return;
    const rule = `cumulative acknowledgement needs an exclusive or failover subscription; "${name}" is ${type}`;
    throw new TransportError('NOT_SUPPORTED', rule, { retriable: false });
  }

  /** What is not kept any more was acknowledged by everybody (T-10). */
  #pendingPlaceOf(transaction: string, id: MessageId): MessagePlace {
    const place = this.#placeOf(id);
    if (place !== undefined) return place;
    throw acknowledgedBefore({ topic: this.topic, subscription: this.#subscription.name, transaction }, id);
  }

  #seekPlace(to: MessageId | Date | 'earliest' | 'latest'): MessagePlace {
    const { log } = this.#broker;
    if (to === 'earliest') return { position: log.first, batchIndex: -1 };
    if (to === 'latest') return { position: log.end, batchIndex: -1 };
    if (to instanceof Date) return { position: log.positionAt(to.getTime()), batchIndex: -1 };
    return this.#placeOf(to) ?? { position: log.nearestPositionOf(to.ledgerId, to.entryId), batchIndex: -1 };
  }

  /** All of them before anything is done about one: a wrong id fails the call as a whole. */
  #placesOf(ids: readonly MessageId[]): readonly MessagePlace[] {
    checkMessageIdList(ids);
    return ids.map((id) => this.#placeOf(id)).filter((place) => place !== undefined);
  }

  #placeOf(id: MessageId): MessagePlace | undefined {
    checkMessageId(id);
    const position = this.#broker.log.positionOf(id.ledgerId, id.entryId);
    return position === undefined ? undefined : { position, batchIndex: id.batchIndex };
  }

  #checkOpen(): void {
    if (this.#closed) throw new TransportError('ALREADY_CLOSED', `${this.#subject()} is closed`, { retriable: false });
  }

  #checkConnected(): void {
    this.#checkOpen();
    if (this.#consumer.connected) return;
    const text = `${this.#subject()} was disconnected by the broker and must subscribe again`;
    throw new TransportError('CONNECTION_LOST', text, { retriable: true });
  }

  #subject(): string {
    return `consumer "${this.#consumer.name}" of subscription "${this.#subscription.name}"`;
  }
}
