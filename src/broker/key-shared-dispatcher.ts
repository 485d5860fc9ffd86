// Key_Shared: each key hash belongs to one consumer at a time. A hash that moves to another consumer is drained first:
// its new messages wait until the old owner holds none of it (PIP-379: K-08 to K-14). A hash of which an entry failed sends
// nothing later than that until it is acknowledged (PIP-493: K-20 to K-32). An entry has to pass both.
import type { BrokerConsumer } from './broker-consumer.js';
import type { DispatchContext, DispatcherStats } from './dispatcher.js';
import { KeyReplay } from './key-replay.js';
import type { KeySelector } from './key-selector.js';
import { MultiDispatcher } from './multi-dispatcher.js';
import { RetryingHashes } from './retrying-hashes.js';

/** Who holds unacknowledged entries of a hash, and how many. */
interface Held {
  readonly holder: BrokerConsumer;
  entries: number;
}

export class KeySharedDispatcher extends MultiDispatcher {
  readonly type = 'key-shared';
  readonly #selector: KeySelector<BrokerConsumer>;
  readonly #ordered: boolean;
  /**
   * By slot, one holder at a time (K-08). A slot drains while its holder is not the one that the selector names (K-09), so
   * consumers that come and go change nothing here. Stays empty where order is not asked for.
   */
  readonly #held = new Map<number, Held>();
  /** How many slots drain. */
  #draining = 0;
  /** Stays empty where order is not asked for, and where the broker's switch is off. */
  readonly #retrying = new RetryingHashes();
  readonly #replay = new KeyReplay<BrokerConsumer>((slot) => this.#retrying.earliest(slot));

  /** @param ordered false: a key that moves is not drained first (K-15). */
  constructor(context: DispatchContext, selector: KeySelector<BrokerConsumer>, ordered: boolean) {
    super(context);
    this.#selector = selector;
    this.#ordered = ordered;
  }

  dispatch(): void {
    for (const consumer of this.consumers) this.#sendReplay(consumer);
    this.#sendNew();
  }

  override stats(): DispatcherStats {
    const { hashes, positions } = this.#retrying;
    return { ...super.stats(), retryingHashes: hashes, retryingPositions: positions };
  }

  override negativeAcknowledgeOrdered(
    consumer: BrokerConsumer,
    nacked: Iterable<number>,
    returned: Iterable<number>,
  ): void {
    if (this.#ordered && this.context.options.keySharedNegativeAckOrdering)
      for (const position of nacked) if (consumer.pending.has(position)) this.#failed(position);
    super.negativeAcknowledgeOrdered(consumer, nacked, returned);
  }

  override acknowledged(consumer: BrokerConsumer | undefined, position: number): void {
    super.acknowledged(consumer, position);
    const slot = this.#retrying.release(position);
    if (slot !== undefined) this.#heldBackChanged(slot);
  }

  override acknowledgedUpTo(from: number, to: number): void {
    super.acknowledgedUpTo(from, to);
    for (const slot of this.#retrying.releaseRange(from, to)) this.#heldBackChanged(slot);
  }

  protected get replaySize(): number {
    return this.#replay.size;
  }

  protected get drainingHashes(): number {
    return this.#draining;
  }

  /** @throws TransportError NOT_ALLOWED when the selector refuses it; then nothing has changed. */
  protected consumerAdded(consumer: BrokerConsumer): void {
    this.#selector.add(consumer);
    this.#ownersChanged();
  }

  protected consumerRemoved(consumer: BrokerConsumer): void {
    this.#selector.remove(consumer);
    for (const [slot, { holder }] of this.#held) if (holder === consumer) this.#held.delete(slot);
    this.#replay.forgetTaker(consumer);
    this.#ownersChanged();
  }

  protected replay(position: number): void {
    const slot = this.#slotAt(position);
    this.#replay.add(position, slot, this.#takerOf(slot));
  }

  protected forgetReplay(position: number): void {
    this.#replay.delete(position);
  }

  protected forgetReplayRange(from: number, to: number): void {
    this.#replay.deleteRange(from, to);
  }

  protected clearReplay(): void {
    this.#replay.clear();
    this.#held.clear();
    this.#draining = 0;
    this.#retrying.clear();
  }

  protected released(consumer: BrokerConsumer, position: number): void {
    const slot = this.#slotAt(position);
    const held = this.#held.get(slot);
    if (held?.holder !== consumer) return;
    held.entries -= 1;
    if (held.entries > 0) return;
    this.#held.delete(slot);
    const owner = this.#selector.select(slot);
    if (owner === consumer) return;
    this.#draining -= 1;
    this.#replay.assign(slot, owner);
    this.context.schedule();
  }

  #failed(position: number): void {
    const slot = this.#slotAt(position);
    this.#retrying.add(position, slot);
    this.#replay.allowedChanged(slot);
  }

  /** Where a transaction is committed its acknowledgements come this way too, and not before (K-28). */
  #heldBackChanged(slot: number): void {
    this.#replay.allowedChanged(slot);
    this.context.schedule();
  }

  /**
   * So much failed that nothing goes out that could fail in addition: only what retrying hashes let pass (K-31). What is
   * before their earliest passes as well, so that it never comes behind it.
   */
  get #isFull(): boolean {
    return this.#retrying.positions >= this.context.options.keySharedMaxRetryingPositions;
  }

  /** Costs a step per hash slot that is held or waits, however many entries that are. */
  #ownersChanged(): void {
    this.#draining = 0;
    for (const [slot, { holder }] of this.#held) if (this.#selector.select(slot) !== holder) this.#draining += 1;
    this.#replay.reassign((slot) => this.#takerOf(slot));
  }

  #sendReplay(consumer: BrokerConsumer): void {
    while (consumer.canTake()) {
      const position = this.#replay.next(consumer, this.#isFull);
      if (position === undefined) return;
      this.#sendOf(this.#slotAt(position), consumer, position);
    }
  }

  #sendNew(): void {
    if (this.#isFull) return;
    const { keySharedLookAheadPerConsumer: each, keySharedLookAheadPerSubscription: all } = this.context.options;
    const lookAhead = Math.min(each * this.consumers.length, all);
    let someCanTake = this.consumers.some((consumer) => consumer.canTake());
    while (someCanTake && this.#replay.size < lookAhead) {
      const position = this.nextNew();
      if (position === undefined) return;
      const slot = this.#slotAt(position);
      const taker = this.#takerOf(slot);
      if (taker?.canTake() !== true || this.#retrying.withholds(slot, position)) {
        this.#replay.add(position, slot, taker);
      } else {
        this.#sendOf(slot, taker, position);
        if (!taker.canTake()) someCanTake = this.consumers.some((consumer) => consumer.canTake());
      }
    }
  }

  #sendOf(slot: number, consumer: BrokerConsumer, position: number): void {
    if (!this.send(consumer, position) || !this.#ordered) return;
    const held = this.#held.get(slot);
    if (held === undefined) this.#held.set(slot, { holder: consumer, entries: 1 });
    else held.entries += 1;
  }

  /** The consumer that may get entries of this hash now; undefined while another one's are drained (K-10), or for no owner. */
  #takerOf(slot: number): BrokerConsumer | undefined {
    const owner = this.#selector.select(slot);
    const holder = this.#held.get(slot)?.holder;
    return holder === undefined || holder === owner ? owner : undefined;
  }

  #slotAt(position: number): number {
    return this.#selector.slotOf(this.context.log.entryAt(position)?.keyHash ?? 0);
  }
}
