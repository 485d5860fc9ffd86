// What Shared and Key_Shared have in common: many consumers, redelivery of single entries, the broker's redelivery
// counts, the limits on what is unacknowledged, and delayed delivery. The order among consumers is the subclasses'.
import type { BrokerConsumer } from './broker-consumer.js';
import { DelayedPositions } from './delayed-positions.js';
import type { DispatchContext, Dispatcher, DispatcherStats } from './dispatcher.js';
import { passedPositions } from './passed-positions.js';
import type { EntryPart } from './transactions/pending-positions.js';

export abstract class MultiDispatcher implements Dispatcher {
  abstract readonly type: 'shared' | 'key-shared';
  protected readonly context: DispatchContext;
  /** Sorted by priority, within one priority as they came. */
  readonly #consumers: BrokerConsumer[] = [];
  /** Redelivery requests per unacknowledged entry, in memory only. */
  readonly #counts = new Map<number, number>();
  /** The sum of them. */
  #redeliveries = 0;
  readonly #delayed: DelayedPositions;
  #readPosition = 0;
  #unacked = 0;
  #blocked = false;

  constructor(context: DispatchContext) {
    this.context = context;
    this.#delayed = new DelayedPositions(context.clock, (positions) => this.#release(positions));
  }

  abstract dispatch(): void;
  /** How many entries wait to be delivered again. */
  protected abstract get replaySize(): number;
  protected abstract consumerAdded(consumer: BrokerConsumer): void;
  protected abstract consumerRemoved(consumer: BrokerConsumer): void;
  protected abstract replay(position: number): void;
  protected abstract forgetReplay(position: number): void;
  /** From and to included. */
  protected abstract forgetReplayRange(from: number, to: number): void;
  protected abstract clearReplay(): void;
  /** A whole entry left what `consumer` holds: acknowledged or asked back. */
  protected abstract released(consumer: BrokerConsumer, position: number): void;
  protected abstract get drainingHashes(): number;

  get consumers(): readonly BrokerConsumer[] {
    return this.#consumers;
  }

  isActive(): boolean {
    return true;
  }

  add(consumer: BrokerConsumer): void {
    this.consumerAdded(consumer);
    const later = this.#consumers.findIndex((other) => other.priority > consumer.priority);
    this.#consumers.splice(later < 0 ? this.#consumers.length : later, 0, consumer);
    this.context.schedule();
  }

  remove(consumer: BrokerConsumer): void {
    const index = this.#consumers.indexOf(consumer);
    if (index < 0) return;
    this.#consumers.splice(index, 1);
    this.#changeUnacked(-consumer.unacked);
    const held = [...consumer.pending.keys()];
    consumer.forgetAll();
    this.consumerRemoved(consumer);
    // The last one leaves nothing behind: whoever comes next reads from the first unacknowledged entry (S-06, S-24).
    if (this.#consumers.length === 0) this.reset();
    else for (const position of held) this.replay(position);
    this.context.schedule();
  }

  removeAll(): readonly BrokerConsumer[] {
    const all = this.#consumers.splice(0);
    // First of all, so that nothing is handed from one that leaves to the next.
    this.reset();
    for (const consumer of all) {
      this.#changeUnacked(-consumer.unacked);
      consumer.forgetAll();
      this.consumerRemoved(consumer);
    }
    return all;
  }

  removeForSeek(): readonly BrokerConsumer[] {
    return this.removeAll();
  }

  redeliver(consumer: BrokerConsumer, positions: Iterable<number>): void {
    for (const position of positions) {
      if (!this.#askedBack(consumer, position)) continue;
      this.#raiseCount(position);
    }
    this.context.schedule();
  }

  /** What failed keeps no order here. */
  negativeAcknowledgeOrdered(consumer: BrokerConsumer, _nacked: Iterable<number>, returned: Iterable<number>): void {
    // Nobody tried to process them: no count, which leads to backoff and dead letters, but the rate (K-27).
    for (const position of returned) this.#askedBack(consumer, position);
    this.context.schedule();
  }

  acknowledged(consumer: BrokerConsumer | undefined, position: number): void {
    this.#forgetCount(position);
    const owner = this.#ownerOf(consumer, position);
    if (owner === undefined) {
      if (this.replaySize > 0) this.forgetReplay(position);
      return;
    }
    this.#changeUnacked(-owner.forget(position));
    this.released(owner, position);
  }

  acknowledgedOne(consumer: BrokerConsumer | undefined, position: number): void {
    // A partial acknowledgement resets the count too.
    this.#forgetCount(position);
    // What a commit acknowledges has left its consumer before (T-19), and was sent to no other since.
    if (consumer === undefined) return;
    const owner = this.#ownerOf(consumer, position);
    if (owner !== undefined) this.#changeUnacked(-owner.forgetOne(position));
  }

  left({ position, indexes }: EntryPart): void {
    const owner = this.#ownerOf(undefined, position);
    if (owner === undefined) return;
    indexes?.forEach(() => this.#changeUnacked(-owner.forgetOne(position)));
    // Nothing of it is left to be acknowledged there.
    if (indexes === undefined || owner.pending.get(position) === 0) this.#letGo(owner, position);
    this.context.schedule();
  }

  freed(positions: readonly number[]): void {
    for (const position of positions) this.#freed(position);
    this.context.schedule();
  }

  /** Messages expired (S-29); clients cannot acknowledge cumulatively here. What was passed is gone everywhere (S-26). */
  acknowledgedUpTo(from: number, to: number): void {
    for (const consumer of this.#consumers) {
      for (const position of passedPositions(consumer.pending, from, to)) {
        this.#changeUnacked(-consumer.forget(position));
        this.released(consumer, position);
      }
    }
    for (const position of passedPositions(this.#counts, from, to)) this.#forgetCount(position);
    this.forgetReplayRange(from, to);
    this.context.schedule();
  }

  /** Everything in flight and waiting is forgotten, parked entries too (G-07); reading starts at the first unacknowledged entry. */
  reset(): void {
    this.#counts.clear();
    this.#redeliveries = 0;
    this.#delayed.clear();
    this.clearReplay();
    this.#readPosition = this.context.cursor.markDelete + 1;
  }

  stats(): DispatcherStats {
    return {
      replay: this.replaySize,
      delayed: this.#delayed.size,
      redeliveries: this.#redeliveries,
      blocked: this.#blocked,
      drainingHashes: this.drainingHashes,
      retryingHashes: 0,
      retryingPositions: 0,
    };
  }

  /** The next entry that was not read yet; undefined when there is none, or none may be read now (S-12). */
  protected nextNew(): number | undefined {
    const { cursor, log, clock, honoursDelays } = this.context;
    while (!this.#blocked) {
      const position = cursor.nextUnacked(this.#readPosition);
      if (position >= log.readEnd) return undefined;
      this.#readPosition = position + 1;
      const entry = log.entryAt(position);
      if (entry === undefined) this.context.skip(position);
      else if (honoursDelays && entry.deliverAtMs > 0 && entry.deliverAtMs > clock.now())
        this.#delayed.add(position, entry.deliverAtMs);
      else return position;
    }
    return undefined;
  }

  /** False when the entry is acknowledged or gone by now (S-21), or acknowledged in a transaction (T-15). */
  protected send(consumer: BrokerConsumer, position: number): boolean {
    const { cursor, log } = this.context;
    const ledger = log.ledgerOf(position);
    const entry = ledger?.entries[position - ledger.first];
    if (ledger === undefined || entry === undefined || cursor.isAcked(position)) return false;
    if (this.context.withholds(position)) return false;
    const messages = consumer.send(position, {
      ledgerId: ledger.id,
      entryId: position - ledger.first,
      entry,
      unacked: this.context.unackedOf(position),
      redeliveryCount: this.#counts.size === 0 ? 0 : (this.#counts.get(position) ?? 0),
    });
    this.#changeUnacked(messages);
    return true;
  }

  /** False when `consumer` does not hold it. */
  #askedBack(consumer: BrokerConsumer, position: number): boolean {
    const messages = this.#letGo(consumer, position);
    if (messages === 0) return false;
    consumer.redeliveries.count(messages, this.context.clock.now());
    this.replay(position);
    return true;
  }

  /** @returns how many messages of it the consumer held. */
  #letGo(consumer: BrokerConsumer, position: number): number {
    if (!consumer.pending.has(position)) return 0;
    const messages = consumer.forget(position);
    this.#changeUnacked(-messages);
    this.released(consumer, position);
    return messages;
  }

  #freed(position: number): void {
    // What was not read since everything was forgotten is read anyway.
    if (this.#consumers.length === 0 || position >= this.#readPosition || this.context.cursor.isAcked(position)) return;
    const owner = this.#ownerOf(undefined, position);
    if (owner !== undefined) this.#letGo(owner, position);
    this.#raiseCount(position);
    this.replay(position);
  }

  #raiseCount(position: number): void {
    this.#counts.set(position, (this.#counts.get(position) ?? 0) + 1);
    this.#redeliveries += 1;
  }

  #forgetCount(position: number): void {
    if (this.#counts.size === 0) return;
    this.#redeliveries -= this.#counts.get(position) ?? 0;
    this.#counts.delete(position);
  }

  /** Any consumer may acknowledge what another one holds. */
  #ownerOf(consumer: BrokerConsumer | undefined, position: number): BrokerConsumer | undefined {
    if (consumer?.pending.has(position) === true) return consumer;
    return this.#consumers.find((other) => other.pending.has(position));
  }

  #release(positions: readonly number[]): void {
    for (const position of positions) if (!this.context.cursor.isAcked(position)) this.replay(position);
    this.context.schedule();
  }

  #changeUnacked(by: number): void {
    const limit = this.context.options.maxUnackedPerSubscription;
    this.#unacked += by;
    if (!this.#blocked) {
      this.#blocked = this.#unacked >= limit;
    } else if (this.#unacked < limit / 2) {
      this.#blocked = false;
      this.context.schedule();
    }
  }
}
