// Asks back what was handed to the application and was neither acknowledged nor negatively acknowledged in time. It
// holds ids only, in the same way as negative acknowledgements wait for their redelivery.
import type { Backoff } from '../core/backoff.js';
import { toError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import { OptionChecker, seconds } from '../core/options.js';
import type { Clock } from '../ports/clock.js';
import { REQUEST_OPTIONS, checkRequestOptions } from './negative-ack-options.js';
import type { NegativeAckTrackerOptions } from './negative-ack-options.js';
import { NegativeAckTracker, dueAfter } from './negative-ack-tracker.js';
import type { NackedMessage } from './negative-ack-tracker.js';

export interface AckTimeoutTrackerOptions extends Pick<
  NegativeAckTrackerOptions,
  'redeliver' | 'random' | 'maxIdsPerRequest' | 'retryRequestMs' | 'onRequestFailed'
> {
  readonly clock: Pick<Clock, 'elapsedMs' | 'setTimer'>;
  /** Milliseconds that a message may stay unacknowledged, at least 1,000 as in the Java client. */
  readonly timeoutMs: number;
  /** A further wait by redelivery count, ADDED to `timeoutMs`. @default none */
  readonly backoff?: Backoff | undefined;
  /** Told when `backoff` threw or gave no usable delay; nothing was added to `timeoutMs`. @default nobody is told */
  readonly onBackoffFailed?: ((error: Error) => void) | undefined;
}

export const MIN_ACK_TIMEOUT_MS = seconds(1);

/**
 * The time limit per entry: the first message of a producer batch that is handed on starts it, and it ends with
 * the last one that is settled. Kept to the millisecond, never early: other clients round up to their tick. A
 * tracked entry costs about 100 bytes; one timer serves all of them.
 */
export class AckTimeoutTracker {
  readonly #held: NegativeAckTracker;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  readonly #backoff: Backoff | undefined;
  readonly #random: () => number;
  readonly #onBackoffFailed: ((error: Error) => void) | undefined;

  /** @throws ConfigurationError naming every option that is wrong. */
  constructor(options: AckTimeoutTrackerOptions) {
    const check = new OptionChecker('AckTimeoutTracker');
    check.unknownOptions(options, [...REQUEST_OPTIONS, 'timeoutMs']);
    checkRequestOptions(options, check);
    check.required(options, { timeoutMs: 'a duration in milliseconds' });
    check.durationMs('timeoutMs', options.timeoutMs, { minMs: MIN_ACK_TIMEOUT_MS });
    check.throwIfAny();
    const { clock, redeliver, maxIdsPerRequest, retryRequestMs, onRequestFailed } = options;
    // By the time that passes, as the limits of handlers, which it must not overtake.
    const now = (): number => clock.elapsedMs();
    const passing = { now, setTimer: clock.setTimer.bind(clock) };
    this.#held = new NegativeAckTracker({
      clock: passing,
      redeliver,
      maxIdsPerRequest,
      retryRequestMs,
      onRequestFailed,
    });
    this.#now = now;
    this.#timeoutMs = options.timeoutMs;
    this.#backoff = options.backoff;
    this.#random = options.random ?? (() => 0);
    this.#onBackoffFailed = options.onBackoffFailed;
  }

  /** Entries tracked, those that are being asked back included. */
  get size(): number {
    return this.#held.size;
  }

  /** Whether this message is tracked; without a batch index: any message of the entry. */
  has(id: MessageId): boolean {
    return this.#held.has(id);
  }

  /**
   * The message was handed to the application: its time runs from now (A-03: not from its arrival in a queue). One that
   * is tracked gets no further time. After `close()` nothing is tracked.
   */
  add(message: NackedMessage): void {
    if (this.#held.isPending(message.id)) return;
    this.#held.add(message.id, this.#dueMs(message.redeliveryCount));
  }

  /**
   * The message was acknowledged, negatively acknowledged (N-25), or its handler has ended. Other messages of its
   * batch stay; without a batch index the whole entry goes.
   */
  remove(id: MessageId): void {
    this.#held.acknowledge(id);
  }

  /** The same for all messages up to `id` on its partition. Takes time in proportion to `size`. */
  removeThrough(id: MessageId): void {
    this.#held.acknowledgeCumulative(id);
  }

  /** Forgets everything tracked, or what is of one topic: for when the broker sends it again anyway. */
  clear(topic?: string): void {
    this.#held.clear(topic);
  }

  /** Clears, and from now on tracks nothing. */
  close(): void {
    this.#held.close();
  }

  #dueMs(redeliveryCount: number | undefined): number {
    const timeoutAtMs = this.#now() + this.#timeoutMs;
    if (this.#backoff === undefined || redeliveryCount === undefined) return timeoutAtMs;
    try {
      return dueAfter(timeoutAtMs, this.#backoff(redeliveryCount, this.#random));
    } catch (error) {
      this.#onBackoffFailed?.(toError(error));
      return timeoutAtMs;
    }
  }
}
