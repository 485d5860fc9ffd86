// How many messages a broker may still send to one consumer, and when to allow more. What was dropped on arrival was
// never queued, so its permits come back by themselves: nothing has to be given back one by one.

/** The most that one command may grant: brokers read a signed number. */
const MAX_GRANT = 2 ** 31 - 1;

export class Permits {
  /** Granted less charged: below zero after a batch that was larger than what was left. */
  #atBroker = 0;
  /** Messages that arrived and were not handed on yet. */
  #queued = 0;

  /** Whether the broker may send something now. */
  get areLeft(): boolean {
    return this.#atBroker > 0;
  }

  /** A new registration begins without permits, whatever the old one had. */
  reset(): void {
    this.#atBroker = 0;
    this.#queued = 0;
  }

  /** An entry came. @param charged what the broker took for it. @param kept messages of it that wait here now. */
  arrived(charged: number, kept: number): void {
    this.#atBroker -= charged;
    this.#queued += kept;
  }

  /** Messages left the queue, handed on or dropped. */
  left(messages: number): void {
    this.#queued -= messages;
  }

  /**
   * What to grant now so that `target` messages lie here or are on their way; 0 for nothing. In lots of half the target,
   * as Pulsar's clients do (S-10): fewer commands.
   */
  take(target: number): number {
    const missing = Math.min(target - this.#queued - this.#atBroker, MAX_GRANT);
    if (missing < 1 || missing < Math.floor(target / 2)) return 0;
    this.#atBroker += missing;
    return missing;
  }
}
