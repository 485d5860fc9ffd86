// Notices when a partitioned topic gets more partitions: asks at an interval, each time a little earlier or later than
// the other clients of the broker.
import { toError } from '../../core/errors.js';
import type { Timer } from '../../ports/clock.js';
import type { WireContext } from './wire-context.js';

export interface PartitionGrowthParts {
  /** Full name without a partition. */
  readonly topic: string;
  /** Partitions that are known. They never become fewer. */
  readonly count: number;
  /** Milliseconds; 0 for never. */
  readonly everyMs: number;
  /** Takes partitions `from` to `to` - 1. When it rejects they are offered again at the next time. */
  readonly grew: (from: number, to: number) => Promise<void>;
}

export class PartitionGrowth {
  readonly #context: Pick<WireContext, 'lookup' | 'options'>;
  readonly #parts: PartitionGrowthParts;
  #count: number;
  #timer: Timer | undefined;
  #closed = false;

  constructor(context: Pick<WireContext, 'lookup' | 'options'>, parts: PartitionGrowthParts) {
    this.#context = context;
    this.#parts = parts;
    this.#count = parts.count;
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #schedule(): void {
    const { clock, random } = this.#context.options;
    const { everyMs } = this.#parts;
    if (everyMs === 0 || this.#closed) return;
    this.#timer = clock.setTimer(withJitter(everyMs, random), () => void this.#look());
  }

  async #look(): Promise<void> {
    const { topic, grew } = this.#parts;
    const { lookup, options } = this.#context;
    try {
      const count = await lookup.partitionsNow(topic);
      if (count > this.#count && !this.#closed) {
        options.logger?.info(`${topic} has ${count} partitions now, ${this.#count} before`);
        await grew(this.#count, count);
        this.#count = count;
      }
    } catch (error) {
      options.logger?.warn(`${topic}: new partitions are looked for again later: ${toError(error).message}`);
    }
    this.#schedule();
  }
}

/** Up to a tenth more or less: thousands of clients that were started together must not ask together. */
export function withJitter(everyMs: number, random: () => number): number {
  return everyMs * (0.9 + 0.2 * random());
}
