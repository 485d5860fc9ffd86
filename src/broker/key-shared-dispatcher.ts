// Key_Shared: each key hash belongs to one consumer at a time. A hash that moves to another consumer is drained first:
// its new messages wait until the old owner holds none of it (PIP-379: K-08 to K-14).
import type { BrokerConsumer } from './broker-consumer.js';
import { HashRing, slotOf } from './hash-ring.js';
import { KeyReplay } from './key-replay.js';
import { MultiDispatcher } from './multi-dispatcher.js';

/** A hash whose entries `owner` still holds although the ring gives it to someone else. */
interface Draining {
  readonly owner: BrokerConsumer;
  entries: number;
}

export class KeySharedDispatcher extends MultiDispatcher {
  readonly type = 'key-shared';
  readonly #ring = new HashRing<BrokerConsumer>();
  readonly #draining = new Map<number, Draining>();
  readonly #replay = new KeyReplay<BrokerConsumer>();

  dispatch(): void {
    for (const consumer of this.consumers) this.#sendReplay(consumer);
    this.#sendNew();
  }

  protected get replaySize(): number {
    return this.#replay.size;
  }

  protected get drainingHashes(): number {
    return this.#draining.size;
  }

  protected consumerAdded(consumer: BrokerConsumer): void {
    this.#ring.add(consumer);
    this.#ringChanged();
  }

  protected consumerRemoved(consumer: BrokerConsumer): void {
    this.#ring.remove(consumer);
    this.#ringChanged();
  }

  protected replay(position: number): void {
    const slot = this.#slotAt(position);
    this.#replay.add(position, slot, this.#takerOf(slot));
  }

  protected forgetReplay(position: number): void {
    this.#replay.delete(position, this.#takerOf(this.#slotAt(position)));
  }

  protected clearReplay(): void {
    this.#replay.clear();
    this.#draining.clear();
  }

  protected released(consumer: BrokerConsumer, position: number): void {
    if (this.#draining.size === 0) return;
    const slot = this.#slotAt(position);
    const draining = this.#draining.get(slot);
    if (draining?.owner !== consumer) return;
    draining.entries -= 1;
    if (draining.entries > 0) return;
    this.#draining.delete(slot);
    this.#replay.freed(slot, this.#takerOf(slot));
    this.context.schedule();
  }

  #sendReplay(consumer: BrokerConsumer): void {
    while (consumer.canTake()) {
      const position = this.#replay.next(consumer);
      if (position === undefined) return;
      this.send(consumer, position);
    }
  }

  #sendNew(): void {
    const { keySharedLookAheadPerConsumer: each, keySharedLookAheadPerSubscription: all } = this.context.options;
    const lookAhead = Math.min(each * this.consumers.length, all);
    let someCanTake = this.consumers.some((consumer) => consumer.canTake());
    while (someCanTake && this.#replay.size < lookAhead) {
      const position = this.nextNew();
      if (position === undefined) return;
      const slot = this.#slotAt(position);
      const taker = this.#takerOf(slot);
      if (taker?.canTake() !== true) {
        this.#replay.add(position, slot, taker);
      } else {
        this.send(taker, position);
        if (!taker.canTake()) someCanTake = this.consumers.some((consumer) => consumer.canTake());
      }
    }
  }

  /** The consumer that may get entries of this hash now; undefined while another one's are drained. */
  #takerOf(slot: number): BrokerConsumer | undefined {
    const owner = this.#ring.select(slot);
    const draining = this.#draining.size === 0 ? undefined : this.#draining.get(slot);
    return draining === undefined || draining.owner === owner ? owner : undefined;
  }

  /** Whoever holds entries of a hash that is no longer its own drains it; a hash that came back is free (K-09, K-10). */
  #ringChanged(): void {
    this.#draining.clear();
    for (const consumer of this.consumers) {
      for (const position of consumer.pending.keys()) {
        const slot = this.#slotAt(position);
        if (this.#ring.select(slot) === consumer) continue;
        const draining = this.#draining.get(slot);
        if (draining === undefined) this.#draining.set(slot, { owner: consumer, entries: 1 });
        else draining.entries += 1;
      }
    }
    this.#replay.reassign((slot) => this.#takerOf(slot));
  }

  #slotAt(position: number): number {
    return slotOf(this.context.log.entryAt(position)?.keyHash ?? 0);
  }
}
