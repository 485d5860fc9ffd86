// The consumer of the wire client for use without the runtime: a subscription with Pulsar's negative acknowledgements
// (PIP-106) and ack timeout. Who has delays of its own, as the runtime has, takes the subscription alone.
import { PulseworkError, notSent } from '../../core/errors.js';
import type { ReceivedMessage } from '../../core/message.js';
import { checkMessageId } from '../../core/message-id.js';
import type { MessageId } from '../../core/message-id.js';
import { StateListener } from '../../core/state-listener.js';
import type { Subscription, SubscriptionState } from '../../ports/transport.js';
import type { Admission } from '../../redelivery/ordered-admission.js';
import { transactionOf } from '../../transactions/open-transaction.js';
import type { ConsumerOrder } from './wire-consumer-order.js';
import type { ConsumerRedelivery, NackedArrival } from './wire-consumer-redelivery.js';
import type { SeekTarget } from '../../core/topic-parts.js';
import type { InTransaction } from '../../ports/transaction.js';
import type { WireSubscription } from './wire-subscription.js';

export type { Admission, ReturnReason } from '../../redelivery/ordered-admission.js';

export interface WireConsumerParts {
  readonly redelivery: ConsumerRedelivery;
  /** Undefined where the order of keys that failed is not asked for. */
  readonly order: ConsumerOrder | undefined;
  /** Called once at close. */
  readonly forget: (closed: WireConsumer) => void;
}

export class WireConsumer implements Subscription {
  readonly #subscription: WireSubscription;
  readonly #redelivery: ConsumerRedelivery;
  readonly #order: ConsumerOrder | undefined;
  readonly #forget: (closed: WireConsumer) => void;
  readonly #listener = new StateListener<SubscriptionState>();
  #closed = false;

  constructor(subscription: WireSubscription, { redelivery, order, forget }: WireConsumerParts) {
    this.#subscription = subscription;
    this.#redelivery = redelivery;
    this.#order = order;
    this.#forget = forget;
    if (order !== undefined) subscription.watchMessages(order);
    subscription.onState((state) => this.#stateChanged(state));
  }

  /** The next message; undefined once `close()` was called or `signal` aborted. One call at a time. */
  receive(signal: AbortSignal): Promise<ReceivedMessage | undefined> {
    const next = this.#subscription.receive(signal);
    return this.#order === undefined && !this.#redelivery.hasTimeout ? next : this.#handOn(next, signal);
  }

  /**
   * The handler failed: the message comes again after `negativeAckBackoff` for its redelivery count, or after
   * `negativeAckRedeliveryDelayMs` without a backoff. The whole entry comes: messages of one producer batch are asked
   * back together, and those of it that are acknowledged are not handed on again (N-22). An acknowledgement of the
   * message meanwhile cancels it (N-27). On Exclusive and Failover everything unacknowledged comes again (N-31).
   * Nothing is asked for when the connection it came over is gone, or after `close()`: then the broker sends it again at
   * once, whatever the delay (N-16); nor when its topic was deleted. Returns at once.
   * On Key_Shared with `orderedNegativeAck` the broker is told at once, and nothing later of the key of `message` is received
   * before it is acknowledged; messages without a key, and those that came in chunks, take no part (K-41, K-43, K-44).
   * @throws PulseworkError MESSAGE_ID_INVALID for a foreign message.
   */
  negativeAcknowledge(message: NackedArrival): void {
    if (this.#closed) return;
    const { id } = (message as NackedArrival | null | undefined) ?? {};
    if (!this.#subscription.readsTopicOf(id as MessageId)) return;
    const dueMs = this.#redelivery.negativeAcknowledge(message);
    if (dueMs !== undefined) this.#order?.failed(message, dueMs);
  }

  /**
   * The same by id alone. Its count is not known: it waits `negativeAckRedeliveryDelayMs` (N-13). Nor is its key: later
   * messages of it are handed on meanwhile, whatever `orderedNegativeAck` says (K-48). @throws as above.
   */
  negativeAcknowledgeId(id: MessageId): void {
    this.negativeAcknowledge({ id });
  }

  /**
   * Whether `message` may be handled now, for who receives messages before he handles them and keeps the order of each key.
   * Ask once, just before it is handled; settle it before the next message of its key is asked about, in the order in which
   * they were received (one that is acknowledged in a transaction is settled when that is committed). Admitted is the
   * earliest message of its key that is not acknowledged. One that is returned is with the broker again, uncounted: discard
   * it (K-51). What came over a connection that was replaced is always returned, and for what came from a broker that does
   * not keep the order nothing is promised (K-52).
   * @throws PulseworkError ILLEGAL_STATE without the option `orderedProcessingAdmission`; MESSAGE_ID_INVALID for a message of
   *   another topic.
   */
  acquireForOrderedProcessing(message: ReceivedMessage): Admission {
    const { id } = (message as ReceivedMessage | null | undefined) ?? {};
    checkMessageId(id as MessageId);
    if (!this.#closed) this.#subscription.readsTopicOf(id as MessageId);
    const admission = this.#order?.acquire(message);
    if (admission !== undefined) return admission;
    const text = 'acquireForOrderedProcessing() needs the option "orderedProcessingAdmission" of its consumer';
    throw new PulseworkError('ILLEGAL_STATE', text);
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
    const isIdle = this.#redelivery.isIdle && (this.#order?.isIdle ?? true);
    return isIdle ? this.#subscription.acknowledge(ids, options) : this.#acknowledge(ids, options);
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
    if (ids.length === 0) return;
    this.#redelivery.askedBack(ids);
    this.#order?.askedBack(ids.map((id) => ({ ...id, batchIndex: -1 })));
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
    this.#order?.close();
    this.#forget(this);
    await this.#subscription.close();
  }

  async #handOn(
    first: Promise<ReceivedMessage | undefined>,
    signal: AbortSignal,
  ): Promise<ReceivedMessage | undefined> {
    let message = await first;
    while (message !== undefined && this.#order?.sendsBack(message) === true) {
      message = await this.#subscription.receive(signal);
    }
    if (message !== undefined) this.#redelivery.handedOn(message);
    return message;
  }

  async #acknowledge(ids: readonly MessageId[], options?: InTransaction): Promise<void> {
    // First: a foreign id fails the call before anything is cancelled (G-04).
    try {
      this.#subscription.checkIds(ids);
    } catch (error) {
      throw notSent(error);
    }
    this.#redelivery.acknowledged(ids);
    const answer = this.#subscription.acknowledge(ids, options);
    this.#resolved(ids, options);
    await answer;
  }

  /** In the turn of the acknowledgement: after its receipt, messages that the broker sends behind it would go back. */
  #resolved(ids: readonly MessageId[], options: InTransaction | undefined): void {
    if (this.#order === undefined) return;
    const transaction = transactionOf(options);
    if (transaction === undefined) return this.#order.acknowledged(ids);
    // Before it is committed the broker waits for these messages still, and after an abort they come again.
    transaction.join({ committed: () => this.#order?.acknowledged(ids), aborted: () => undefined });
  }

  #stateChanged(state: SubscriptionState): void {
    this.#redelivery.stateChanged(state);
    this.#order?.stateChanged(state);
    this.#listener.tell(state);
  }
}
