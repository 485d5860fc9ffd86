// The consumer of the wire client for use without the runtime: a subscription with Pulsar's negative acknowledgements
// (PIP-106) and ack timeout. Who has delays of its own, as the runtime has, takes the subscription alone.
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { StateListener } from '../../core/state-listener.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import type { ConsumerRedelivery, NackedArrival } from './wire-consumer-redelivery.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import type { InTransaction } from './transaction.js';
import type { WireSubscription } from './wire-subscription.js';

export class WireConsumer implements Subscription {
  readonly #subscription: WireSubscription;
  readonly #redelivery: ConsumerRedelivery;
  readonly #forget: (closed: WireConsumer) => void;
  readonly #listener = new StateListener<SubscriptionState>();
  #closed = false;

  /** @param forget is called once at close. */
  constructor(subscription: WireSubscription, redelivery: ConsumerRedelivery, forget: (closed: WireConsumer) => void) {
    this.#subscription = subscription;
    this.#redelivery = redelivery;
    this.#forget = forget;
    subscription.onState((state) => this.#stateChanged(state));
  }

  /** The next message; undefined once `close()` was called or `signal` aborted. One call at a time. */
  receive(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    const next = this.#subscription.receive(signal);
    return this.#redelivery.hasTimeout ? this.#handOn(next) : next;
  }

  /**
   * The handler failed: the message comes again after `negativeAckBackoff` for its redelivery count, or after
   * `negativeAckRedeliveryDelayMs` without a backoff. The whole entry comes: messages of one producer batch are asked
   * back together, and those of it that are acknowledged are not handed on again (N-22). An acknowledgement of the
   * message meanwhile cancels it (N-27). On Exclusive and Failover everything unacknowledged comes again (N-31).
   * Nothing is asked for when the connection it came over is gone, or after `close()`: then the broker sends it again at
   * once, whatever the delay (N-16); nor when its topic was deleted. Returns at once.
   * @throws PulseworkError MESSAGE_ID_INVALID for a foreign message.
   */
  negativeAcknowledge(message: NackedArrival): void {
    if (this.#closed) return;
    const { id } = (message as NackedArrival | null | undefined) ?? {};
    if (this.#subscription.readsTopicOf(id as MessageId)) this.#redelivery.negativeAcknowledge(message);
  }

  /** The same by id alone. Its count is not known: it waits `negativeAckRedeliveryDelayMs` (N-13). @throws as above. */
  negativeAcknowledgeId(id: MessageId): void {
    this.negativeAcknowledge({ id });
  }

  /**
   * Resolves with the broker's receipt. Redelivery of these messages is cancelled at the call; batch siblings keep
   * theirs. When the call fails, the message is unacknowledged: acknowledge it again, or negatively.
   * @param options `{ transaction }`: resolves when they are in it. They come no more while it is open, are acknowledged once
   *   it is committed, and come again when it is aborted. The same message in two transactions is a conflict, and one that
   *   is acknowledged without a transaction meanwhile stays acknowledged whatever becomes of it (T-10, T-14).
   * @throws TransportError CONNECTION_LOST (retriable), ALREADY_CLOSED; in a transaction TRANSACTION_CONFLICT,
   *   TRANSACTION_ENDED; PulseworkError MESSAGE_ID_INVALID.
   */
  acknowledge(ids: readonly MessageId[], options?: InTransaction): Promise<void> {
    return this.#redelivery.isIdle ? this.#subscription.acknowledge(ids, options) : this.#acknowledge(ids, options);
  }

  /** Exclusive and Failover only: everything up to and including `id`. @throws TransportError NOT_SUPPORTED elsewhere. */
  async acknowledgeCumulative(id: MessageId): Promise<void> {
    this.#subscription.checkCumulative(id);
    this.#redelivery.acknowledgedThrough(id);
    await this.#subscription.acknowledgeCumulative(id);
  }

  /** Asks for redelivery at once, instead of any delay that these entries wait for. See the port. */
  async redeliver(ids: readonly MessageId[]): Promise<void> {
    await this.#subscription.redeliver(ids);
    if (ids.length > 0) this.#redelivery.askedBack(ids);
  }

  pause(): void {
    this.#subscription.pause();
  }

  resume(): void {
    this.#subscription.resume();
  }

  seek(to: SeekTarget): Promise<void> {
    return this.#subscription.seek(to);
  }

  /**
   * The last message of each topic, by full name with its partition; undefined for a topic that has none.
   * @throws TransportError CONNECTION_LOST (retriable), ALREADY_CLOSED.
   */
  lastMessageIds(): Promise<ReadonlyMap<string, MessageId | undefined>> {
    return this.#subscription.lastMessageIds();
  }

  /** Full names of the topics that are read now, partitions one by one. */
  topics(): readonly string[] {
    return this.#subscription.topics();
  }

  /** Whether all topics were terminated and everything on them is acknowledged: no message will come any more. */
  hasReachedEnd(): boolean {
    return this.#subscription.hasReachedEnd();
  }

  onState(report: (state: SubscriptionState) => void): void {
    this.#listener.listen(report, this.#subscription.states());
  }

  /** Gives unsettled messages back, what waits for redelivery too: at once and uncounted (N-16, N-29). */
  async close(): Promise<void> {
    this.#closed = true;
    this.#redelivery.close();
    this.#forget(this);
    await this.#subscription.close();
  }

  async #handOn(next: Promise<ReceivedMessage | undefined>): Promise<ReceivedMessage | undefined> {
    const message = await next;
    if (message !== undefined) this.#redelivery.handedOn(message);
    return message;
  }

  async #acknowledge(ids: readonly MessageId[], options?: InTransaction): Promise<void> {
    // First: a foreign id fails the call before anything is cancelled (G-04).
    this.#subscription.checkIds(ids);
    this.#redelivery.acknowledged(ids);
    await this.#subscription.acknowledge(ids, options);
  }

  #stateChanged(state: SubscriptionState): void {
    this.#redelivery.stateChanged(state);
    this.#listener.tell(state);
  }
}
