// Over which connection each topic of a subscription is attached: whether a message still belongs to this process. A lost
// connection takes its messages along, and the broker sends them again over the next one, in order.
import type { ReceivedMessage } from '../core/message.js';
import { withoutPartition } from '../core/topic-name.js';
import type { SubscriptionState } from '../ports/transport.js';

interface Attachment {
  readonly connection: number;
  readonly attached: boolean;
  /** Whether its broker keeps the order of a key that failed. */
  readonly keepsOrder: boolean;
  /** Whether nothing is taken from it, because its broker does not, and must (K-50). */
  readonly suspended: boolean;
}

export class TopicConnections {
  /** By full topic name, partitions one by one. */
  readonly #topics = new Map<string, Attachment>();

  /** Full names of the topics that are attached now, without partitions. */
  get attached(): readonly string[] {
    const topics = [...this.#topics].filter(([, { attached }]) => attached);
    return [...new Set(topics.map(([topic]) => withoutPartition(topic)))];
  }

  /** Full names of the topics (partitions one by one) from which nothing is taken. */
  get suspended(): readonly string[] {
    return [...this.#topics].filter(([, { attached, suspended }]) => attached && suspended).map(([topic]) => topic);
  }

  set({ topic, connection, state, orderedNegativeAck = false }: SubscriptionState): void {
    const suspended = state === 'suspended';
    this.#topics.set(topic, { connection, attached: true, keepsOrder: orderedNegativeAck, suspended });
  }

  /** False when it was not attached. */
  lose(topic: string): boolean {
    const known = this.#topics.get(topic);
    if (known?.attached !== true) return false;
    this.#topics.set(topic, { ...known, attached: false });
    return true;
  }

  /** Whether the connection that a message came over is still there. */
  has({ id, connection }: ReceivedMessage): boolean {
    const known = this.#topics.get(id.topic);
    return known?.attached === true && known.connection === connection;
  }

  /** Whether it came over a connection that is still there, to a broker that keeps the order of a key that failed. */
  keepsOrder(message: ReceivedMessage): boolean {
    return this.has(message) && this.#topics.get(message.id.topic)?.keepsOrder === true;
  }

  /**
   * Whether its connection was lost while it was on its way here: the broker sends it again, after those that come before it.
   * Taken now, it would pass them.
   */
  isOutdated({ id, connection }: ReceivedMessage): boolean {
    const known = this.#topics.get(id.topic);
    if (known === undefined) return false;
    return known.attached ? connection < known.connection : connection <= known.connection;
  }
}
