// One consumer as the broker sees it: its permits, what it holds unacknowledged, and the limits that block it.
// Permits count messages, deliveries are entries: a batch may take them below zero (S-11).
import type { AckSet } from './ack-set.js';
import type { Entry } from './entry.js';
import type { KeySharedSettings } from './key-selector.js';
import { RedeliveryRate } from './redelivery-rate.js';

/** An entry on its way to a client. */
export interface DeliveredEntry {
  readonly ledgerId: number;
  readonly entryId: number;
  readonly entry: Entry;
  /** Which messages of a batch are still unacknowledged; undefined for all. Valid during the call only. */
  readonly unacked: AckSet | undefined;
  readonly redeliveryCount: number;
}

/** The client's end. Called by the broker's own turn, never inside a call that the client makes. */
export interface ConsumerSink {
  deliver(delivered: DeliveredEntry): void;
  /** Failover only: whether this is the active consumer now. */
  activeChanged(active: boolean): void;
  /** The broker closed this consumer, without counting anything (seek, unload); the client may subscribe again. */
  disconnected(): void;
  /** The topic was terminated and this subscription has acknowledged all of it (G-13). May be told more than once. */
  endOfTopic?(): void;
}

export interface ConsumerFacts {
  readonly name: string;
  /** Lower is served first. */
  readonly priority: number;
  /** Unacknowledged messages at which the broker sends no more (S-12); Infinity for none. */
  readonly maxUnacked: number;
  /** Of its connecting. */
  readonly nowMs: number;
  /** Undefined on other types than Key_Shared. */
  readonly keyShared?: KeySharedSettings | undefined;
}

export class BrokerConsumer {
  readonly name: string;
  readonly priority: number;
  readonly sink: ConsumerSink;
  readonly keyShared: KeySharedSettings | undefined;
  /** Messages it asked back. */
  readonly redeliveries: RedeliveryRate;
  /** Position of each unacknowledged entry and how many of its messages are unacknowledged. */
  readonly pending = new Map<number, number>();
  /** False once it left its subscription, by itself or because the broker closed it. */
  connected = true;
  readonly #maxUnacked: number;
  #permits = 0;
  /** Permits that came while blocked: handed over when unblocked (S-12). */
  #parkedPermits = 0;
  #unacked = 0;
  #blocked = false;
  #delivered = 0;

  constructor(facts: ConsumerFacts, sink: ConsumerSink) {
    this.name = facts.name;
    this.priority = facts.priority;
    this.#maxUnacked = facts.maxUnacked;
    this.sink = sink;
    this.keyShared = facts.keyShared;
    this.redeliveries = new RedeliveryRate(facts.nowMs);
  }

  get permits(): number {
    return this.#permits;
  }

  get unacked(): number {
    return this.#unacked;
  }

  get blocked(): boolean {
    return this.#blocked;
  }

  /** Messages sent since it connected. */
  get delivered(): number {
    return this.#delivered;
  }

  canTake(): boolean {
    return this.#permits > 0 && !this.#blocked;
  }

  grant(permits: number): void {
    if (this.#blocked) this.#parkedPermits += permits;
    else this.#permits += permits;
  }

  send(position: number, delivered: DeliveredEntry): number {
    const messages = delivered.unacked?.count ?? delivered.entry.messageCount;
    this.#permits -= messages;
    this.#delivered += messages;
    this.pending.set(position, messages);
    this.#changeUnacked(messages);
    this.sink.deliver(delivered);
    return messages;
  }

  /** Takes the whole entry out of what is pending. Returns how many messages that were, 0 when it was not pending. */
  forget(position: number): number {
    const messages = this.pending.get(position);
    if (messages === undefined) return 0;
    this.pending.delete(position);
    this.#changeUnacked(-messages);
    return messages;
  }

  /** One message of a pending batch was acknowledged. */
  forgetOne(position: number): number {
    const messages = this.pending.get(position);
    if (messages === undefined) return 0;
    this.pending.set(position, messages - 1);
    this.#changeUnacked(-1);
    return 1;
  }

  forgetAll(): void {
    this.pending.clear();
    this.#changeUnacked(-this.#unacked);
  }

  #changeUnacked(by: number): void {
    this.#unacked += by;
    if (!this.#blocked) {
      this.#blocked = this.#unacked >= this.#maxUnacked;
    } else if (this.#unacked <= this.#maxUnacked / 2) {
      this.#blocked = false;
      this.#permits += this.#parkedPermits;
      this.#parkedPermits = 0;
    }
  }
}
