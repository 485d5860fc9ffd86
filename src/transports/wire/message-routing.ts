// Which partition of a publisher a message goes to. A key always goes to the same one; messages without a key stay
// together for as long as one batch is open, or batches would be as small as there are partitions.
import { PulseworkError, describeValue } from '../../core/errors.js';
import { javaStringHash, keyText, murmur3 } from '../../core/key-hash.js';
import type { EncodedMessage } from '../../core/message.js';
import type { ResolvedPublisherOptions } from './publisher-options.js';

export interface Partition {
  /** Grows with each batch that was sent. */
  readonly batchesSent: number;
}

export class MessageRouting<P extends Partition> {
  readonly #partitions: readonly P[];
  readonly #options: Pick<ResolvedPublisherOptions, 'routing' | 'keyHash'>;
  readonly #random: () => number;
  /** Where messages without a key go now, -1 before the first; and what it had sent when they began to. */
  #current = -1;
  #sentBefore = -1;

  /** @param partitions may grow. @param random a number in [0, 1): where messages without a key begin. */
  constructor(
    partitions: readonly P[],
    options: Pick<ResolvedPublisherOptions, 'routing' | 'keyHash'>,
    random: () => number,
  ) {
    this.#partitions = partitions;
    this.#options = options;
    this.#random = random;
  }

  /** @throws PulseworkError CONFIGURATION_INVALID when an own rule names no partition. */
  partitionFor(message: EncodedMessage): P {
    const [only] = this.#partitions;
    if (this.#partitions.length === 1 && only !== undefined) return only;
    const index = this.#indexFor(message);
    const partition = this.#partitions[index];
    if (partition !== undefined) return partition;
    const rule = `routing must give a partition from 0 to ${this.#partitions.length - 1}, got ${describeValue(index)}`;
    throw new PulseworkError('CONFIGURATION_INVALID', rule);
  }

  #indexFor(message: EncodedMessage): number {
    const { routing, keyHash } = this.#options;
    if (typeof routing === 'function') return routing(message, this.#partitions.length);
    if (message.key !== undefined) {
      const text = keyText(message.key);
      return (keyHash === 'java' ? javaStringHash(text) : murmur3(text)) % this.#partitions.length;
    }
    if (this.#current < 0) this.#current = Math.floor(this.#random() * this.#partitions.length);
    return routing === 'single' ? this.#current : this.#inTurn();
  }

  #inTurn(): number {
    if (this.#partitions[this.#current]?.batchesSent !== this.#sentBefore) {
      if (this.#sentBefore >= 0) this.#current = (this.#current + 1) % this.#partitions.length;
      this.#sentBefore = this.#partitions[this.#current]?.batchesSent ?? 0;
    }
    return this.#current;
  }
}
