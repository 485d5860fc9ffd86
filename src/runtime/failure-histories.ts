// How often each message failed in this process: kept over redeliveries until the message is settled, because
// brokers forget their own counts (unload, Exclusive, partly acknowledged batches). Bounded to the newest.
import type { MessageId } from '../core/message-id.js';
import { formatMessageId } from '../core/message-id.js';

export interface FailureHistory {
  readonly failures: number;
  /** Epoch milliseconds of the first failure; undefined before it. */
  readonly firstFailureMs: number | undefined;
  /** Redeliveries that this process asked for although nothing had failed: the broker counted them all the same. */
  readonly uncounted: number;
}

export const NO_FAILURES: FailureHistory = { failures: 0, firstFailureMs: undefined, uncounted: 0 };

/** Beyond it the oldest history is forgotten; the broker's count then speaks alone. */
const MAX_HISTORIES = 10_000;

export class FailureHistories {
  readonly #byMessage = new Map<string, FailureHistory>();

  get(id: MessageId): FailureHistory {
    return this.#byMessage.size === 0 ? NO_FAILURES : (this.#byMessage.get(keyOf(id)) ?? NO_FAILURES);
  }

  remember(id: MessageId, history: FailureHistory): void {
    const key = keyOf(id);
    this.#byMessage.delete(key);
    this.#byMessage.set(key, history);
    if (this.#byMessage.size <= MAX_HISTORIES) return;
    const oldest = this.#byMessage.keys().next();
    if (oldest.done !== true) this.#byMessage.delete(oldest.value);
  }

  forget(id: MessageId): void {
    if (this.#byMessage.size > 0) this.#byMessage.delete(keyOf(id));
  }

  /** Epoch milliseconds of the earliest first failure of what is not settled; undefined when nothing has failed. */
  get oldestFailureMs(): number | undefined {
    let oldestMs = Infinity;
    for (const { firstFailureMs = Infinity } of this.#byMessage.values()) oldestMs = Math.min(oldestMs, firstFailureMs);
    return oldestMs === Infinity ? undefined : oldestMs;
  }

  clear(): void {
    this.#byMessage.clear();
  }
}

/** The history once the broker was asked for the message although nothing had failed. */
export function withUncounted(history: FailureHistory): FailureHistory {
  return { ...history, uncounted: history.uncounted + 1 };
}

/** The history once delivery number `attempt` has failed too. */
export function afterFailure(history: FailureHistory, attempt: number, nowMs: number): FailureHistory {
  return { ...history, failures: attempt, firstFailureMs: history.firstFailureMs ?? nowMs };
}

/** Ledger ids are unique in a cluster, so the text form alone names a message. */
function keyOf(id: MessageId): string {
  return formatMessageId(id);
}
