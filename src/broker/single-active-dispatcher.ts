// Exclusive and Failover: one consumer gets everything in order; a redelivery request sends all that is unacknowledged
// again (S-23), and nothing is counted. On Failover others stand by.
import type { Timer } from '../ports/clock.js';
import type { AckSet } from './ack-set.js';
import { chooseActive } from './active-choice.js';
import type { BrokerConsumer } from './broker-consumer.js';
import type { DispatchContext, Dispatcher, DispatcherStats } from './dispatcher.js';
import { NOTHING_WAITS } from './dispatcher.js';
import { passedPositions } from './passed-positions.js';
import type { EntryPart } from './transactions/pending-positions.js';

export class SingleActiveDispatcher implements Dispatcher {
  readonly type: 'exclusive' | 'failover';
  readonly #context: DispatchContext;
  #consumers: BrokerConsumer[] = [];
  #active: BrokerConsumer | undefined;
  /** Runs while a new active Failover consumer waits for its first message (S-03). */
  #takeover: Timer | undefined;
  #readPosition = 0;
  /**
   * Passed over while reading, all of them or some messages of a batch, since they are acknowledged in a transaction: the active
   * consumer was never sent these. With what was sent; undefined: nothing.
   */
  readonly #withheld = new Map<number, AckSet | undefined>();

  constructor(type: 'exclusive' | 'failover', context: DispatchContext) {
    this.type = type;
    this.#context = context;
  }

  get consumers(): readonly BrokerConsumer[] {
    return this.#consumers;
  }

  isActive(consumer: BrokerConsumer): boolean {
    return consumer === this.#active && this.#takeover === undefined;
  }

  add(consumer: BrokerConsumer): void {
    this.#consumers = [...this.#consumers, consumer];
    if (!this.#chooseAgain() && this.type === 'failover') this.#report(consumer);
  }

  remove(consumer: BrokerConsumer): void {
    this.#consumers = this.#consumers.filter((other) => other !== consumer);
    consumer.forgetAll();
    this.#chooseAgain();
  }

  removeAll(): readonly BrokerConsumer[] {
    const all = this.#consumers;
    for (const consumer of all) consumer.forgetAll();
    this.#consumers = [];
    this.#chooseAgain();
    return all;
  }

  /** The active one only; those that stand by keep their connection (S-28). */
  removeForSeek(): readonly BrokerConsumer[] {
    const active = this.#active;
    if (active === undefined) return [];
    this.remove(active);
    return [active];
  }

  redeliver(consumer: BrokerConsumer): void {
    if (consumer !== this.#active) return;
    consumer.redeliveries.count(consumer.unacked, this.#context.clock.now());
    this.reset();
  }

  negativeAcknowledgeOrdered(): void {
    // No single entry can be sent again here, and a nack has no effect on the order (K-20, K-27).
  }

  acknowledged(_consumer: BrokerConsumer | undefined, position: number): void {
    this.#active?.forget(position);
  }

  acknowledgedOne(consumer: BrokerConsumer | undefined, position: number): void {
    // What a commit acknowledges has left its consumer before (T-19), and was not sent since.
    if (consumer !== undefined) this.#active?.forgetOne(position);
  }

  left({ position, indexes }: EntryPart): void {
    const consumer = this.#active;
    indexes?.forEach(() => consumer?.forgetOne(position));
    // Nothing of it is left to be acknowledged there.
    if (indexes === undefined || consumer?.pending.get(position) === 0) consumer?.forget(position);
  }

  freed(): void {
    const { cursor } = this.#context;
    for (const [position, sent] of this.#withheld) {
      if (this.#context.withholds(position)) continue;
      if (cursor.isAcked(position)) this.#withheld.delete(position);
      // In order, which means all of it again.
      else if (this.#hasMore(position, sent)) return this.reset();
    }
  }

  acknowledgedUpTo(from: number, to: number): void {
    const consumer = this.#active;
    if (consumer !== undefined)
      for (const position of passedPositions(consumer.pending, from, to)) consumer.forget(position);
  }

  /** Reads again from the first unacknowledged entry. */
  reset(): void {
    for (const consumer of this.#consumers) consumer.forgetAll();
    this.#readPosition = this.#context.cursor.markDelete + 1;
    this.#withheld.clear();
    this.#context.schedule();
  }

  dispatch(): void {
    if (this.#takeover !== undefined) return;
    while (this.#active?.canTake() === true) {
      const position = this.#next();
      if (position === undefined) return;
      this.#send(this.#active, position);
    }
  }

  stats(): DispatcherStats {
    return NOTHING_WAITS;
  }

  #next(): number | undefined {
    const { cursor, log } = this.#context;
    for (;;) {
      const position = cursor.nextUnacked(this.#readPosition);
      if (position >= log.readEnd) return undefined;
      this.#readPosition = position + 1;
      const entry = log.entryAt(position);
      if (entry === undefined) this.#context.skip(position);
      else if (this.#context.withholds(position)) this.#withheld.set(position, undefined);
      else {
        const sent = entry.batchSize > 0 ? this.#context.unackedOf(position) : undefined;
        if (sent !== undefined && sent !== cursor.unackedOf(position)) this.#withheld.set(position, sent);
        return position;
      }
    }
  }

  /** Whether more of a batch may be sent than was. */
  #hasMore(position: number, sent: AckSet | undefined): boolean {
    if (sent === undefined) return true;
    const now = this.#context.unackedOf(position);
    const batchSize = this.#context.log.entryAt(position)?.batchSize ?? 0;
    for (let index = 0; index < batchSize; index++) if (now?.has(index) !== false && !sent.has(index)) return true;
    return false;
  }

  #send(consumer: BrokerConsumer, position: number): void {
    const ledger = this.#context.log.ledgerOf(position);
    const entry = ledger?.entries[position - ledger.first];
    if (ledger === undefined || entry === undefined) return;
    const unacked = this.#context.unackedOf(position);
    const entryId = position - ledger.first;
    consumer.send(position, { ledgerId: ledger.id, entryId, entry, unacked, redeliveryCount: 0 });
  }

  /** True when the active consumer changed. */
  #chooseAgain(): boolean {
    const chosen = chooseActive(this.#context.topic, this.#consumers);
    if (chosen === this.#active) return false;
    this.#active = chosen;
    if (chosen === undefined) this.#cancelTakeover();
    else this.#startTakeover();
    return true;
  }

  /** Exclusive begins at once. Failover waits, so that acknowledgements of the one before can still arrive. */
  #startTakeover(): void {
    const delayMs = this.type === 'failover' ? this.#context.options.activeConsumerFailoverDelayMs : 0;
    if (delayMs === 0) this.#finishTakeover();
    else this.#takeover ??= this.#context.clock.setTimer(delayMs, () => this.#finishTakeover());
  }

  #finishTakeover(): void {
    this.#takeover = undefined;
    this.reset();
    if (this.type === 'failover') for (const consumer of this.#consumers) this.#report(consumer);
  }

  #cancelTakeover(): void {
    this.#takeover?.cancel();
    this.#takeover = undefined;
  }

  #report(consumer: BrokerConsumer): void {
    this.#context.later(() => {
      if (this.#consumers.includes(consumer)) consumer.sink.activeChanged(this.isActive(consumer));
    });
  }
}
