// Shared: entries go round the consumers in chunks; what waits to be delivered again goes first, to anyone (S-04, S-20).
import type { BrokerConsumer } from './broker-consumer.js';
import { MultiDispatcher } from './multi-dispatcher.js';
import { PositionSet } from './position-set.js';

export class SharedDispatcher extends MultiDispatcher {
  readonly type = 'shared';
  readonly #replay = new PositionSet();
  /** Where the next search for a consumer begins. */
  #turn = 0;

  dispatch(): void {
    for (let index = this.#nextAvailable(); index >= 0; index = this.#nextAvailable()) {
      const consumer = this.consumers[index];
      if (consumer === undefined || !this.#sendChunk(consumer)) return;
      this.#turn = index + 1;
    }
  }

  protected get replaySize(): number {
    return this.#replay.size;
  }

  protected get drainingHashes(): number {
    return 0;
  }

  protected consumerAdded(): void {
    // Nothing is bound to a consumer here.
  }

  protected consumerRemoved(): void {
    // The same.
  }

  protected released(): void {
    // The same.
  }

  protected replay(position: number): void {
    this.#replay.add(position);
  }

  protected forgetReplay(position: number): void {
    this.#replay.delete(position);
  }

  protected forgetReplayRange(from: number, to: number): void {
    this.#replay.removeRange(from, to);
  }

  protected clearReplay(): void {
    this.#replay.clear();
  }

  /** False when there was nothing to send. */
  #sendChunk(consumer: BrokerConsumer): boolean {
    const sentBefore = consumer.delivered;
    const limit = sentBefore + this.context.options.roundRobinChunk;
    while (consumer.canTake() && consumer.delivered < limit) {
      const position = this.#replay.shift() ?? this.nextNew();
      if (position === undefined) break;
      this.send(consumer, position);
    }
    return consumer.delivered > sentBefore;
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
