// A consumer of the model: keeps what it holds, and tells the observer of what it gets.
import type { ConsumerSink, DeliveredEntry } from '../../../src/broker/broker-consumer.js';
import type { ConsumerHandle } from '../../../src/broker/consumer-handle.js';
import type { EmbeddedBroker } from '../../../src/embedded.js';
import type { MessageId } from '../../../src/core/message-id.js';
import type { SubscriptionType } from '../../../src/core/subscription-spec.js';
import type { ProcessLife } from './process-life.js';
import type { MessagePlace, Observer, Seen } from './observer.js';
import { isBehind, numberIn } from './observer.js';

export interface SubscriptionPlace {
  /** With the topic: unique. */
  readonly key: string;
  readonly topic: string;
  readonly name: string;
  readonly type: SubscriptionType;
}

export class Reader implements ConsumerSink {
  readonly name: string;
  readonly place: SubscriptionPlace;
  /** Delivered, and not acknowledged by it. */
  readonly holds = new Map<Seen, MessageId>();
  /** Ever, over this connection. */
  readonly got = new Map<Seen, MessageId>();
  isConnected = true;
  readonly #observer: Observer;
  readonly #life: ProcessLife;
  readonly #handle: ConsumerHandle;
  /** The furthest one that was delivered in order; undefined: any may come next. */
  #last: MessagePlace | undefined;

  constructor(
    name: string,
    place: SubscriptionPlace,
    broker: EmbeddedBroker,
    facts: { observer: Observer; life: ProcessLife },
  ) {
    this.name = name;
    this.place = place;
    this.#observer = facts.observer;
    this.#life = facts.life;
    const { topic, name: subscription, type } = place;
    this.#handle = broker.subscribe(
      { topic, subscription, type, initialPosition: 'earliest', consumerName: name },
      this,
    );
  }

  get handle(): ConsumerHandle {
    return this.#handle;
  }

  get isSingle(): boolean {
    return this.place.type === 'exclusive' || this.place.type === 'failover';
  }

  /** @param held by which it was acknowledged: it may have come again since */
  acknowledged(message: Seen, held: MessageId): void {
    if (this.holds.get(message) === held) this.holds.delete(message);
  }

  /** On Exclusive and Failover that means everything, from the first one on. */
  givesBack(message: Seen): void {
    if (!this.isSingle) return void this.holds.delete(message);
    this.holds.clear();
    this.beganAgain();
  }

  /** All may be sent again, from the first one on. */
  beganAgain(): void {
    this.#last = undefined;
  }

  deliver({ entry, ledgerId, entryId, unacked }: DeliveredEntry): void {
    if (this.#life.isOver || !this.isConnected) return;
    for (const [index, { payload }] of entry.messages.entries()) {
      if (entry.batchSize > 0 && unacked?.has(index) === false) continue;
      const message = this.#observer.messages[numberIn(payload)];
      if (message === undefined) throw new Error('nobody published such a message');
      const { batchSize } = entry;
      const batchIndex = batchSize === 0 ? -1 : index;
      const id = { ledgerId, entryId, partition: -1, batchIndex, batchSize, topic: this.place.topic };
      this.holds.set(message, id);
      this.got.set(message, id);
      this.#observer.delivered(message, this.place.key, this.name);
      this.#checkOrder(message);
    }
  }

  activeChanged(): void {
    this.beganAgain();
  }

  disconnected(): void {
    this.isConnected = false;
  }

  /** In the order of the topic. But when a transaction is aborted that acknowledged something here, all comes again. */
  #checkOrder(message: Seen): void {
    const { place } = message;
    if (!this.isSingle || place === undefined) return;
    const mayComeLate = this.#observer.hadTransactions(this.place.key);
    if (!mayComeLate && this.#last !== undefined && !isBehind(place, this.#last))
      this.#observer.violated('order', `${this.name} got m${message.number} behind later ones`);
    this.#last = place;
  }
}
