// Deliveries that waited for a due time when their connection was lost. Nothing is done for one before the broker has
// sent its copy here: until then it may be somebody else's. Bounded to the newest.
import type { MessageId } from '../core/message-id.js';
import { formatMessageId } from '../core/message-id.js';
import type { DeliveryRecord } from './delivery-record.js';

export interface Sleeper {
  /** Epoch milliseconds. */
  readonly dueMs: number;
  /** What it was, where it was kept in place; undefined where only its id waited. */
  readonly kept: Pick<DeliveryRecord, 'history' | 'probes' | 'pending' | 'givenUp'> | undefined;
}

/** Beyond it the oldest come back as if they had never waited. */
const MAX_SLEEPERS = 10_000;

export class Sleepers {
  readonly #byMessage = new Map<string, Sleeper>();

  add(id: MessageId, sleeper: Sleeper): void {
    this.#byMessage.set(formatMessageId(id), sleeper);
    if (this.#byMessage.size <= MAX_SLEEPERS) return;
    const oldest = this.#byMessage.keys().next();
    if (oldest.done !== true) this.#byMessage.delete(oldest.value);
  }

  /** The copy of `id` is here: it sleeps no longer. */
  wake(id: MessageId): Sleeper | undefined {
    if (this.#byMessage.size === 0) return undefined;
    const key = formatMessageId(id);
    const sleeper = this.#byMessage.get(key);
    this.#byMessage.delete(key);
    return sleeper;
  }

  clear(): void {
    this.#byMessage.clear();
  }
}
