// The consumers of one subscription, one per topic or partition, while topics come and go: those that are new join, those
// that are gone leave, and what fails for a passing reason is tried again.
import { TransportError, toError } from '../../core/errors.js';
import { partitionOf, withoutPartition } from '../../core/topic-name.js';
import type { Timer } from '../../ports/clock.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import { reconnectWaits } from './repeat-passing.js';
import type { TopicConsumer } from './topic-consumer.js';
import type { ResolvedWireOptions } from './wire-options.js';

/** Registrations under way at once: a thousand topics must not ask a broker for a thousand ledgers in one moment. */
const MAX_CONCURRENT_JOINS = 50;
/** Topics that left and are still known by name, the newest: their messages may be settled late. */
const MAX_DEPARTED = 1_000;

export interface TopicConsumersParts {
  /** For logs. */
  readonly subject: string;
  /** @param isNewPartition of a topic that other partitions were read of before. */
  readonly make: (topic: string, isNewPartition: boolean) => TopicConsumer;
  /** Whether a topic that does not exist is left out: it was deleted after it was listed. */
  readonly skipsMissing: boolean;
  /** It is attached, later than the first ones. */
  readonly joined: (consumer: TopicConsumer) => void;
  /** It is closed and its topic gone. */
  readonly left: (consumer: TopicConsumer) => void;
}

export class TopicConsumers {
  readonly #parts: TopicConsumersParts;
  readonly #options: ResolvedWireOptions;
  readonly #limit = new ConcurrencyLimit(MAX_CONCURRENT_JOINS);
  readonly #byTopic = new Map<string, TopicConsumer>();
  readonly #departed = new Set<string>();
  /** The topics that there should be; undefined while that is what there is. */
  #wanted: readonly string[] | undefined;
  #following = false;
  #failures = 0;
  #timer: Timer | undefined;
  #closed = false;

  constructor(parts: TopicConsumersParts, options: ResolvedWireOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  get size(): number {
    return this.#byTopic.size;
  }

  get(topic: string): TopicConsumer | undefined {
    return this.#byTopic.get(topic);
  }

  all(): readonly TopicConsumer[] {
    return [...this.values()];
  }

  values(): Iterable<TopicConsumer> {
    return this.#byTopic.values();
  }

  /** Whether a consumer of this topic has left. */
  hasDeparted(topic: string): boolean {
    return this.#departed.has(topic);
  }

  /** The first ones: all or none. @throws TransportError */
  async open(topics: readonly string[]): Promise<void> {
    const joins = topics.map((topic) => this.#join(topic, false));
    const failed = (await Promise.allSettled(joins)).find((join) => join.status === 'rejected');
    if (failed !== undefined) throw failed.reason as Error;
  }

  /** From now on there should be exactly these. Returns at once. */
  follow(topics: readonly string[]): void {
    this.#wanted = topics;
    if (!this.#following) void this.#follow();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await Promise.all(this.all().map((consumer) => consumer.close()));
  }

  async #follow(): Promise<void> {
    this.#following = true;
    this.#timer?.cancel();
    while (this.#wanted !== undefined && !this.#closed) {
      const wanted = this.#wanted;
      this.#wanted = undefined;
      const failed = await this.#change(new Set(wanted));
      if (failed === 0) this.#failures = 0;
      else if ((this.#wanted as readonly string[] | undefined) === undefined) {
        this.#later(wanted);
        break;
      }
    }
    this.#following = false;
  }

  /** Gives how many could not join. */
  async #change(wanted: ReadonlySet<string>): Promise<number> {
    const read = new Set(this.all().map(({ topic }) => withoutPartition(topic)));
    const gone = this.all().filter(({ topic }) => !wanted.has(topic));
    await Promise.all(gone.map((consumer) => this.#leave(consumer)));
    const fresh = [...wanted].filter((topic) => !this.#byTopic.has(topic));
    const joins = fresh.map(async (topic) => {
      const consumer = await this.#join(topic, partitionOf(topic) >= 0 && read.has(withoutPartition(topic)));
      if (consumer !== undefined) this.#parts.joined(consumer);
    });
    const failed = (await Promise.allSettled(joins)).filter((join) => join.status === 'rejected');
    if (failed.length > 0 && !this.#closed) this.#tell(failed.length, failed[0]?.reason);
    return failed.length;
  }

  /** Undefined for a topic that is left out. @throws TransportError */
  #join(topic: string, isNewPartition: boolean): Promise<TopicConsumer | undefined> {
    return this.#limit.run(async () => {
      if (this.#closed) return undefined;
      const consumer = this.#parts.make(topic, isNewPartition);
      this.#byTopic.set(topic, consumer);
      this.#departed.delete(topic);
      try {
        await consumer.open();
        return consumer;
      } catch (error) {
        this.#byTopic.delete(topic);
        await consumer.close();
        if (this.#parts.skipsMissing && error instanceof TransportError && error.code === 'TOPIC_NOT_FOUND') return;
        throw error;
      }
    });
  }

  async #leave(consumer: TopicConsumer): Promise<void> {
    this.#byTopic.delete(consumer.topic);
    this.#departed.add(consumer.topic);
    const [oldest] = this.#departed;
    if (this.#departed.size > MAX_DEPARTED && oldest !== undefined) this.#departed.delete(oldest);
    await consumer.close();
    this.#parts.left(consumer);
  }

  #later(wanted: readonly string[]): void {
    this.#failures += 1;
    const waitMs = reconnectWaits(this.#options)(this.#failures);
    this.#timer = this.#options.clock.setTimer(waitMs, () => this.follow(this.#wanted ?? wanted));
  }

  #tell(count: number, reason: unknown): void {
    const text = `${this.#parts.subject}: ${count} topics could not be attached and are tried again`;
    this.#options.logger?.warn(`${text}, the first because ${toError(reason).message}`);
  }
}
