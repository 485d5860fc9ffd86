// Shared: entries go round the consumers in lots; what waits to be delivered again goes first, to anyone (S-04, S-20). Only
// the chunks of one message all go to one consumer (G-10).
import type { BrokerConsumer } from './broker-consumer.js';
import { ChunkTakers } from './chunk-takers.js';
import { MultiDispatcher } from './multi-dispatcher.js';
import { PositionSet } from './position-set.js';

export class SharedDispatcher extends MultiDispatcher {
  readonly type = 'shared';
  readonly #replay = new PositionSet();
  readonly #chunks = new ChunkTakers();
  /** Where the next search for a consumer begins. */
  #turn = 0;

  dispatch(): void {
    for (const consumer of this.#chunks.awaited()) this.#sendWaiting(consumer);
    for (let index = this.#nextAvailable(); index >= 0; index = this.#nextAvailable()) {
      const consumer = this.consumers[index];
      if (consumer === undefined || !this.#sendLot(consumer)) return;
      this.#turn = index + 1;
    }
  }

  protected get replaySize(): number {
    return this.#replay.size + this.#chunks.size;
  }

  protected get drainingHashes(): number {
    return 0;
  }

  protected consumerAdded(): void {
    // Nothing is bound to one that comes.
  }

  protected consumerRemoved(consumer: BrokerConsumer): void {
    for (const position of this.#chunks.forget(consumer)) this.#replay.add(position);
  }

  protected released(): void {
    // The same.
  }

  protected replay(position: number): void {
    this.#replay.add(position);
  }

  protected forgetReplay(position: number): void {
    if (!this.#replay.delete(position)) this.#chunks.delete(position);
  }

  protected forgetReplayRange(from: number, to: number): void {
    this.#replay.removeRange(from, to);
    this.#chunks.deleteRange(from, to);
  }

  protected clearReplay(): void {
    this.#replay.clear();
    this.#chunks.clear();
  }

  /** False when there was nothing to send. */
  #sendLot(consumer: BrokerConsumer): boolean {
    const limit = consumer.delivered + this.context.options.roundRobinChunk;
    let sent = false;
    while (consumer.canTake() && consumer.delivered < limit) {
      const position = this.#replay.shift() ?? this.#nextNew();
      if (position === undefined) break;
      if (this.#sendOrWait(consumer, position)) sent = true;
    }
    return sent;
  }

  /** Nothing while a chunk waits for its consumer: what was read before goes first (S-20), as on Pulsar 4.0.7. */
  #nextNew(): number | undefined {
    return this.#chunks.size > 0 ? undefined : this.nextNew();
  }

  /** Smallest position first, also of what anyone may get. */
  #sendWaiting(consumer: BrokerConsumer): void {
    for (let own = this.#chunks.first(consumer); own !== undefined; own = this.#chunks.first(consumer)) {
      if (!consumer.canTake()) return;
      const first = this.#replay.first ?? Infinity;
      const position = Math.min(first, own);
      this.forgetReplay(position);
      this.#sendOrWait(consumer, position);
    }
  }

  /** To `consumer`, unless it is a chunk that another one is to get. False when it waits, is acknowledged or gone. */
  #sendOrWait(consumer: BrokerConsumer, position: number): boolean {
    const entry = this.context.log.entryAt(position);
    const chunk = entry?.chunk;
    if (entry === undefined || chunk === undefined) return this.send(consumer, position);
    const taker = this.#chunks.takerOf(entry, chunk, consumer);
    if (!taker.canTake()) {
      this.#chunks.wait(taker, position);
      return false;
    }
    const isSent = this.send(taker, position);
    if (isSent) this.#chunks.sent(entry, chunk);
    return isSent;
  }

  /** Of the most preferred priority that has an available consumer, the one whose turn it is; -1 when none can take. */
  #nextAvailable(): number {
    const { consumers } = this;
    const first = consumers.findIndex((consumer) => consumer.canTake());
    if (first < 0) return -1;
    const priority = consumers[first]?.priority;
    for (let index = Math.max(first, this.#turn); index < consumers.length; index++) {
      const consumer = consumers[index];
      if (consumer?.priority !== priority) break;
      if (consumer?.canTake() === true) return index;
    }
    return first;
  }
}
