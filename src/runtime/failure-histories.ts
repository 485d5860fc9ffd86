// How often each message failed in this process: kept over redeliveries until the message is settled, because
// brokers forget their own counts (unload, Exclusive, partly acknowledged batches). A message may be settled elsewhere
// without a word to this process, so a history says nothing of now; bounded to the newest.
import { EntryMap } from '../core/entry-map.js';
import type { EntryPosition, MessageId } from '../core/message-id.js';

export interface FailureHistory {
  readonly failures: number;
  /** Epoch milliseconds of the first failure; undefined before it. */
  readonly firstFailureMs: number | undefined;
  /** Redeliveries that this process asked for although nothing had failed: the broker counted them all the same. */
  readonly uncounted: number;
}

export const NO_FAILURES: FailureHistory = { failures: 0, firstFailureMs: undefined, uncounted: 0 };

/** Of 10,000 the older half is forgotten; the broker's count then speaks alone. */
const MAX_PER_GENERATION = 5_000;

export class FailureHistories {
  /** Two generations, so that forgetting needs no order of age. */
  #current = new EntryMap<FailureHistory>();
  #previous = new EntryMap<FailureHistory>();

  get(id: MessageId): FailureHistory {
    if (this.#isEmpty) return NO_FAILURES;
    const key = keyOf(id);
    return this.#current.get(key) ?? this.#previous.get(key) ?? NO_FAILURES;
  }

  remember(id: MessageId, history: FailureHistory): void {
    if (this.#current.size >= MAX_PER_GENERATION) {
      this.#previous = this.#current;
      this.#current = new EntryMap<FailureHistory>();
    }
    this.#current.set(keyOf(id), history);
  }

  forget(id: MessageId): void {
    if (this.#isEmpty) return;
    const key = keyOf(id);
    this.#current.delete(key);
    this.#previous.delete(key);
  }

  clear(): void {
    this.#current.clear();
    this.#previous.clear();
  }

  get #isEmpty(): boolean {
    return this.#current.size === 0 && this.#previous.size === 0;
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

/** More messages than a batch, or partitions than a topic, can have. */
const MAX_BATCH = 2 ** 24;

/** A position for each message of a batch. */
function keyOf({ ledgerId, entryId, partition, batchIndex }: MessageId): EntryPosition {
  return { ledgerId, entryId, partition: (partition + 1) * MAX_BATCH + batchIndex + 1 };
}
