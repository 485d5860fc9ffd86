// Which consumer of a Shared subscription gets the chunks of a message: the one that got the first of them, until the last
// one was sent (G-10). What has to wait for that consumer lies here, so that nobody looks at it in vain.
import type { BrokerConsumer } from './broker-consumer.js';
import type { ChunkOrigin, Entry } from './entry.js';
import { PositionSet } from './position-set.js';

export class ChunkTakers {
  /** By message: of which the first chunk was sent and the last one not. */
  readonly #takers = new Map<string, BrokerConsumer>();
  /** Of consumers that cannot take; none is empty. */
  readonly #waiting = new Map<BrokerConsumer, PositionSet>();
  #size = 0;

  /** How many chunks wait. */
  get size(): number {
    return this.#size;
  }

  /** The consumers for which chunks wait. */
  awaited(): readonly BrokerConsumer[] {
    return [...this.#waiting.keys()];
  }

  /**
   * Who gets this entry. @param consumer whose turn it is. One whose first chunk is acknowledged goes to anyone, as since
   * Pulsar repaired what it did in 4.0: there it blocks its subscription until all consumers have left.
   */
  takerOf(entry: Entry, chunk: ChunkOrigin, consumer: BrokerConsumer): BrokerConsumer {
    const message = messageOf(entry, chunk);
    const known = this.#takers.get(message);
    if (known !== undefined) return known;
    if (chunk.index === 0) this.#takers.set(message, consumer);
    return consumer;
  }

  sent(entry: Entry, chunk: ChunkOrigin): void {
    if (chunk.index === chunk.count - 1) this.#takers.delete(messageOf(entry, chunk));
  }

  wait(consumer: BrokerConsumer, position: number): void {
    const waiting = this.#waiting.get(consumer) ?? new PositionSet();
    this.#waiting.set(consumer, waiting);
    if (waiting.add(position)) this.#size += 1;
  }

  /** The first position that waits for this consumer. */
  first(consumer: BrokerConsumer): number | undefined {
    return this.#waiting.get(consumer)?.first;
  }

  delete(position: number): void {
    for (const [consumer, waiting] of this.#waiting) {
      if (waiting.delete(position)) this.#shrunk(consumer, waiting, waiting.size + 1);
    }
  }

  /** From and to included. */
  deleteRange(from: number, to: number): void {
    for (const [consumer, waiting] of this.#waiting) {
      const before = waiting.size;
      waiting.removeRange(from, to);
      this.#shrunk(consumer, waiting, before);
    }
  }

  /** It left: what waited for it, and all further chunks, go to others. @returns what waited. */
  forget(consumer: BrokerConsumer): readonly number[] {
    for (const [message, taker] of this.#takers) if (taker === consumer) this.#takers.delete(message);
    const waiting = this.#waiting.get(consumer);
    const positions: number[] = [];
    for (let first = waiting?.shift(); first !== undefined; first = waiting?.shift()) positions.push(first);
    this.#waiting.delete(consumer);
    this.#size -= positions.length;
    return positions;
  }

  clear(): void {
    this.#takers.clear();
    this.#waiting.clear();
    this.#size = 0;
  }

  #shrunk(consumer: BrokerConsumer, waiting: PositionSet, before: number): void {
    this.#size -= before - waiting.size;
    if (waiting.size === 0) this.#waiting.delete(consumer);
  }
}

function messageOf({ producerName }: Entry, { uuid }: ChunkOrigin): string {
  return JSON.stringify([producerName, uuid]);
}
