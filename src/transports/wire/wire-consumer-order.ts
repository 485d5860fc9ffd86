// The order of keys on a consumer of the wire client (PIP-493): its broker is told at once which message failed, what comes
// later on that key goes back instead of being handed on, and who queues messages by himself asks before he handles one.
import type { ReceivedMessage } from '../../core/message.js';
import type { MessageId } from '../../core/message-id.js';
import { sameEntry } from '../../core/message-id.js';
import type { Clock } from '../../ports/clock.js';
import type { SubscriptionState } from '../../ports/transport.js';
import { KeyGuards } from '../../redelivery/key-guards.js';
import type { KeyedMessage } from '../../redelivery/key-guards.js';
import { OrderedAdmission } from '../../redelivery/ordered-admission.js';
import type { Admission } from '../../redelivery/ordered-admission.js';
import type { ConsumerRedelivery } from './wire-consumer-redelivery.js';
import type { MessageWatch, WireSubscription } from './wire-subscription.js';

export interface ConsumerOrderParts {
  readonly subscription: Pick<WireSubscription, 'negativeAcknowledgeOrdered' | 'queued'>;
  /** Told what is here no more. */
  readonly redelivery: Pick<ConsumerRedelivery, 'askedBack' | 'discarded'>;
  readonly clock: Clock;
  /** Whether all messages are tracked, so that `acquire` can be asked (K-51). */
  readonly hasAdmission: boolean;
}

export class ConsumerOrder implements MessageWatch {
  readonly #parts: ConsumerOrderParts;
  readonly #guards: KeyGuards;
  readonly #admission: OrderedAdmission | undefined;
  /** Topics whose broker keeps the order of a key that failed. */
  readonly #ordered = new Set<string>();

  constructor(parts: ConsumerOrderParts) {
    this.#parts = parts;
    this.#guards = new KeyGuards(parts.clock);
    if (parts.hasAdmission) this.#admission = new OrderedAdmission({ giveBack: ({ id }) => this.#giveBack([id]) });
  }

  /** Whether acknowledgements change nothing here. */
  get isIdle(): boolean {
    return this.#guards.size === 0 && (this.#admission?.isEmpty ?? true);
  }

  /**
   * The application says that `message` failed; it will be asked back at `dueMs`. The broker hears of it now, with what goes
   * back behind it (K-41). Without a key, as by id alone, it takes no part (K-43, K-48).
   */
  failed(message: KeyedMessage, dueMs: number): void {
    const { id } = message;
    const delayMs = Math.max(0, dueMs - this.#parts.clock.now());
    if (!this.#ordered.has(id.topic) || !this.#guards.add(message, delayMs)) {
      this.#admission?.failed(id, false);
      return;
    }
    this.#admission?.failed(id, true);
    // Its own entry waits for the retry: in both lists it would come again at once.
    const isBehind = (one: ReceivedMessage): boolean => !sameEntry(one.id, id) && this.#guards.turnsBack(one);
    const behind = this.#parts.subscription.queued(isBehind).map((one) => one.id);
    this.#parts.subscription.negativeAcknowledgeOrdered([id], behind);
    this.#parts.redelivery.askedBack(behind);
  }

  /** Asked just before `message` is handed on. @returns whether it goes back instead (K-44) */
  sendsBack(message: ReceivedMessage): boolean {
    if (!this.#guards.turnsBack(message)) return false;
    this.#admission?.wentBack(message.id);
    this.#giveBack([message.id]);
    return true;
  }

  /** The acknowledgement is on its way: what the broker sends from then on is in its place, so nothing more goes back. */
  acknowledged(ids: readonly MessageId[]): void {
    for (const id of ids) {
      this.#guards.acknowledged(id);
      this.#admission?.acknowledged(id);
    }
  }

  /** The broker was asked to send these again. An id without a batch index means all that its entry has here. */
  askedBack(ids: readonly MessageId[]): void {
    for (const id of ids) this.#admission?.askedBack(id);
  }

  /** Undefined without `hasAdmission`: nothing is known that could answer it. */
  acquire(message: ReceivedMessage): Admission | undefined {
    const admission = this.#admission?.acquire(message);
    if (admission?.outcome === 'returned' && this.#admission?.isHere(message.id) === false) {
      this.#parts.redelivery.discarded(message.id);
    }
    return admission;
  }

  arrived(messages: readonly ReceivedMessage[]): void {
    this.#admission?.arrived(messages);
    const id = messages[0]?.id;
    if (id === undefined || id.batchIndex < 0 || this.#guards.size === 0) return;
    const unacknowledged = messages.map((one) => one.id.batchIndex);
    this.#guards.cameAgain(id, unacknowledged);
  }

  dropped(messages: readonly ReceivedMessage[]): void {
    if (this.#admission === undefined) return;
    for (const [at, { id }] of messages.entries()) {
      const before = messages[at - 1]?.id;
      if (before === undefined || !sameEntry(before, id)) this.#admission.wentBack(id);
    }
  }

  stateChanged({ topic, connection, state, orderedNegativeAck = false }: SubscriptionState): void {
    if (state === 'lost') {
      this.#ordered.delete(topic);
      this.#guards.connectionLost(topic);
      this.#admission?.connectionLost(topic);
      return;
    }
    if (orderedNegativeAck) this.#ordered.add(topic);
    this.#admission?.connected(topic, connection, orderedNegativeAck);
  }

  close(): void {
    this.#ordered.clear();
    this.#guards.clear();
    this.#admission?.clear();
  }

  #giveBack(ids: readonly MessageId[]): void {
    this.#parts.subscription.negativeAcknowledgeOrdered([], ids);
    this.#parts.redelivery.askedBack(ids);
  }
}
