// The runtime's half of PIP-493, on `ordering: 'key'` with a broker that keeps the order of a key that failed: it is told
// which message failed, what waits behind that goes back, and so does what still arrives of the key. So the message need
// not wait here. On every other broker it does, and its key waits behind it.
import { isClosed } from '../core/errors.js';
import type { ReceivedMessage } from '../core/message.js';
import type { MessageId } from '../core/message-id.js';
import { sameEntry } from '../core/message-id.js';
import type { Clock } from '../ports/clock.js';
import type { Subscription } from '../ports/transport.js';
import { KeyGuards, guardKeyOf } from '../redelivery/key-guards.js';
import type { DeliveryRecord } from './delivery-record.js';

export interface OrderedNegativeAcksOptions {
  readonly subscription: Subscription;
  readonly clock: Clock;
  /** Whether the connection that it came over is still there, to a broker that keeps the order. */
  readonly brokerKeepsOrder: (message: ReceivedMessage) => boolean;
  /** Takes out what waits behind `record` on its key and topic: nothing more is done for it here. */
  readonly takeBehind: (record: DeliveryRecord) => readonly DeliveryRecord[];
}

export class OrderedNegativeAcks {
  readonly #options: OrderedNegativeAcksOptions;
  readonly #guards: KeyGuards;

  constructor(options: OrderedNegativeAcksOptions) {
    this.#options = options;
    this.#guards = new KeyGuards(options.clock);
  }

  /**
   * Whether the broker keeps the order of this message's key when it fails. Not of one that shares its entry with others,
   * which is sent again with all of them, nor of one that was cut into chunks (K-43).
   */
  covers(message: ReceivedMessage): boolean {
    if (message.id.batchSize > 1 || guardKeyOf(message) === undefined) return false;
    const { subscription, brokerKeepsOrder } = this.#options;
    return subscription.negativeAcknowledgeOrdered !== undefined && brokerKeepsOrder(message);
  }

  /** It failed and is to be asked back: before that is asked, the broker must know (K-41). */
  failed(record: DeliveryRecord): void {
    const { message } = record;
    if (!this.covers(message)) return;
    this.#tell(
      message,
      this.#options.takeBehind(record).map((behind) => behind.message),
    );
  }

  /**
   * What failed over an earlier connection, and still waits, has come again: the new connection's broker is told
   * before anything later of its key runs. @returns false where that broker cannot keep the order
   */
  failedBefore(message: ReceivedMessage): boolean {
    if (!this.covers(message)) return false;
    this.#tell(message, []);
    return true;
  }

  /** Sends `message` back where an earlier one of its key failed and is not acknowledged (K-44). @returns whether it did */
  sendsBack(message: ReceivedMessage): boolean {
    if (!this.#guards.turnsBack(message)) return false;
    this.#send([], [message.id]);
    return true;
  }

  /**
   * The broker is about to be told: what it sends of the key from then on is in its place, so nothing more goes back. Should
   * the call fail, the message still stands before the others of its key here.
   */
  acknowledging(id: MessageId): void {
    if (this.#guards.size > 0) this.#guards.acknowledged(id);
  }

  connectionLost(topic: string): void {
    this.#guards.connectionLost(topic);
  }

  close(): void {
    this.#guards.clear();
  }

  #tell(message: ReceivedMessage, behind: readonly ReceivedMessage[]): void {
    // Without the expiry of K-46: what came before the failure may lie in the client for longer, as in a pause or behind runs that
    // take minutes, and would pass. What goes back needlessly comes again at once, and that ends the guard.
    this.#guards.add(message, Infinity);
    for (const waiting of behind) this.#guards.wentBack(waiting);
    this.#send([message.id], onePerEntry(behind.map(({ id }) => id)));
  }

  /** A subscription that is closed has given everything back: there is nobody to tell. */
  #send(nacked: readonly MessageId[], returned: readonly MessageId[]): void {
    try {
      this.#options.subscription.negativeAcknowledgeOrdered?.(nacked, returned);
    } catch (error) {
      if (!isClosed(error)) throw error;
    }
  }
}

/** Entries go back whole, however many of their messages waited here. */
function onePerEntry(ids: readonly MessageId[]): readonly MessageId[] {
  return ids.filter((id, at) => at === 0 || !sameEntry(id, ids[at - 1] as MessageId));
}
