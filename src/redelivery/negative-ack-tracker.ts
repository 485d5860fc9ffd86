// Owns all redelivery delays of one subscription: what failed waits here by id until it is due, then its redelivery
// is asked for (PIP-106). One implementation, so that delays are the same on every transport.
import type { Backoff } from '../core/backoff.js';
import { PulseworkError, containRejection, describeValue, toError } from '../core/errors.js';
import type { MessageId } from '../core/message-id.js';
import type { Clock, Timer } from '../ports/clock.js';
import { HeldEntries } from './held-entries.js';
import { DEFAULT_NEGATIVE_ACK_TRACKER, MAX_IDS_PER_TURN, checkOptions } from './negative-ack-options.js';
import type { NegativeAckTrackerOptions } from './negative-ack-options.js';

/** What is negatively acknowledged. `redeliveryCount` is the broker's, 0 on the first delivery (N-09). */
export interface NackedMessage {
  readonly id: MessageId;
  readonly redeliveryCount?: number | undefined;
}

/** One entry that was pending: its id as `redeliver` gets it, and when it was due, epoch milliseconds. */
export interface HeldMessage {
  readonly id: MessageId;
  readonly dueMs: number;
}

/** Above this much room, an empty tracker gives it back. */
const KEPT_CAPACITY = 1_024;

/**
 * Delays redelivery by id. Each entry is pending until due, in flight while its request is made, then gone. All
 * methods return at once. A waiting entry costs about 100 bytes; one timer serves all of them.
 */
export class NegativeAckTracker {
  readonly #clock: Pick<Clock, 'now' | 'setTimer'>;
  readonly #redeliver: (ids: readonly MessageId[]) => Promise<void>;
  readonly #delayMs: number;
  readonly #backoff: Backoff | undefined;
  readonly #random: () => number;
  readonly #maxIdsPerRequest: number;
  readonly #retryRequestMs: number;
  readonly #onRequestFailed: ((error: Error, ids: readonly MessageId[]) => void) | undefined;
  readonly #onBackoffFailed: ((error: Error) => void) | undefined;
  readonly #onReleased: (() => void) | undefined;
  #held = new HeldEntries();
  #timer: Timer | undefined;
  /** When the timer wakes; never later than the first due time. */
  #timerDueMs = Infinity;
  /** The number of the last request. Never reused: an answer that comes late must not touch what was held since. */
  #request = 0;
  #closed = false;

  /** @throws ConfigurationError naming every option that is wrong. */
  constructor(options: NegativeAckTrackerOptions) {
    checkOptions(options);
    const defaults = DEFAULT_NEGATIVE_ACK_TRACKER;
    this.#clock = options.clock;
    this.#redeliver = options.redeliver;
    this.#delayMs = options.delayMs ?? defaults.delayMs;
    this.#backoff = options.backoff;
    this.#random = options.random ?? (() => 0);
    this.#maxIdsPerRequest = options.maxIdsPerRequest ?? defaults.maxIdsPerRequest;
    this.#retryRequestMs = options.retryRequestMs ?? defaults.retryRequestMs;
    this.#onReleased = options.onReleased;
    this.#onRequestFailed = options.onRequestFailed;
    this.#onBackoffFailed = options.onBackoffFailed;
  }

  /** Entries held: pending and in flight. Messages of one producer batch share an entry. */
  get size(): number {
    return this.#held.size;
  }

  /** When the next pending entry is due, epoch milliseconds; undefined when none is pending. */
  get nextDueMs(): number | undefined {
    return this.#held.nextDueMs;
  }

  /** Whether redelivery of this message waits or is being asked for; without a batch index: of any message of the entry. */
  has(id: MessageId): boolean {
    return this.#held.has(id);
  }

  /** Whether redelivery of this message waits for its time: held, and not being asked for right now. */
  isPending(id: MessageId): boolean {
    return this.#held.has(id) && !this.#held.isInFlight(id);
  }

  /** What waits for its time, in no particular order. Takes time in proportion to `size`. */
  pending(): HeldMessage[] {
    return this.#held.pending();
  }

  /**
   * Holds `id` until `dueMs` (epoch milliseconds), whatever the backoff says. An entry that is pending keeps the earlier
   * due time (N-23); one that is in flight is pending again, and what becomes of its request no longer matters.
   * After `close()` nothing is held. @throws RangeError when `dueMs` is not finite.
   */
  add(id: MessageId, dueMs: number): void {
    if (!Number.isFinite(dueMs)) throw new RangeError(`dueMs must be epoch milliseconds, got ${describeValue(dueMs)}`);
    if (this.#closed) return;
    this.#held.hold(id, dueMs);
    this.#setTimer();
  }

  /**
   * Holds a message for what the backoff says for its redelivery count, or for `delayMs` without a backoff or a count.
   * An entry that is in flight stays so: the request under way brings the whole entry back, a second one would count
   * as one more redelivery (N-24).
   * @returns when this delay is over, epoch milliseconds; the entry may be due earlier (N-23).
   */
  negativeAcknowledge(message: NackedMessage): number {
    const { id, redeliveryCount } = message;
    if (this.#backoff === undefined || redeliveryCount === undefined) {
      return this.negativeAcknowledgeId(id);
    }
    let dueMs: number;
    try {
      dueMs = dueAfter(this.#clock.now(), this.#backoff(redeliveryCount, this.#random));
    } catch (error) {
      // The message must wait for something: a faulty backoff may not lose it.
      const fixedMs = this.negativeAcknowledgeId(id);
      this.#onBackoffFailed?.(toError(error));
      return fixedMs;
    }
    this.#nack(id, dueMs);
    return dueMs;
  }

  /** Holds an id for `delayMs`; an entry that is in flight stays so. @returns as above. */
  negativeAcknowledgeId(id: MessageId): number {
    const dueMs = this.#clock.now() + this.#delayMs;
    this.#nack(id, dueMs);
    return dueMs;
  }

  /**
   * Cancels redelivery of an acknowledged message: of its own batch index, or of the whole entry when the id has none.
   * Other messages of the batch, and an entry held as a whole, stay (N-27).
   */
  acknowledge(id: MessageId): void {
    this.#held.acknowledge(id);
    this.#afterRemoval();
  }

  /** The same for all messages up to `id` on its partition (N-28). Takes time in proportion to `size`. */
  acknowledgeCumulative(id: MessageId): void {
    this.#held.acknowledgeCumulative(id);
    this.#afterRemoval();
  }

  /**
   * Clears, and gives what was pending: for an owner who waits for the copies that the broker sends after a lost
   * connection, and then decides.
   * @param topic full name: only what is of this topic; requests under way for others go on. @default all topics
   */
  takeAll(topic?: string): HeldMessage[] {
    const pending = this.pending().filter(({ id }) => topic === undefined || id.topic === topic);
    this.clear(topic);
    return pending;
  }

  /**
   * Forgets everything held, in-flight entries too: for when the broker sends all of it again anyway (N-29).
   * @param topic full name: only what is of this topic, in time in proportion to `size`. @default all topics
   */
  clear(topic?: string): void {
    if (topic === undefined) this.#held = new HeldEntries();
    else this.#held.forgetTopic(topic);
    this.#afterRemoval();
  }

  /** Clears, and from now on holds nothing: a closed subscription's messages are back at the broker (N-16). */
  close(): void {
    this.#closed = true;
    this.clear();
  }

  #nack(id: MessageId, dueMs: number): void {
    if (!this.#held.isInFlight(id)) this.add(id, dueMs);
    else this.#held.widen(id);
  }

  /** One timer, set for the first due time. A cancelled entry leaves it as it is: it wakes, finds nothing, moves on. */
  #setTimer(): void {
    const dueMs = this.#held.nextDueMs ?? Infinity;
    if (this.#timerDueMs <= dueMs && dueMs !== Infinity) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDueMs = dueMs;
    if (dueMs === Infinity) return;
    const delayMs = Math.min(Math.max(0, dueMs - this.#clock.now()), Number.MAX_SAFE_INTEGER);
    this.#timer = this.#clock.setTimer(delayMs, () => this.#wake());
  }

  #wake(): void {
    this.#timerDueMs = Infinity;
    const nowMs = this.#clock.now();
    let room = MAX_IDS_PER_TURN;
    while (room > 0) {
      const asked = this.#askForDue(nowMs, Math.min(room, this.#maxIdsPerRequest));
      if (asked === 0) break;
      room -= asked;
    }
    // What is still due waits for a following turn, with a timer of 0 ms.
    this.#setTimer();
  }

  /** Makes one request for up to `limit` due entries. Gives how many there were. */
  #askForDue(nowMs: number, limit: number): number {
    const request = ++this.#request;
    const slots = this.#held.takeDue(nowMs, limit, request);
    if (slots.length === 0) return 0;
    const ids = slots.map((slot) => this.#held.idOf(slot));
    this.#ask(ids).then(
      () => {
        this.#held.release(slots, request);
        this.#afterRemoval();
        this.#onReleased?.();
      },
      (error: unknown) => {
        this.#held.takeBack(slots, request, this.#clock.now() + this.#retryRequestMs);
        this.#setTimer();
        if (!this.#closed) this.#onRequestFailed?.(toError(error), ids);
      },
    );
    return slots.length;
  }

  /** A `redeliver` that throws is one that rejects. */
  async #ask(ids: readonly MessageId[]): Promise<void> {
    await this.#redeliver(ids);
  }

  #afterRemoval(): void {
    if (this.#held.size === 0 && this.#held.capacity > KEPT_CAPACITY) this.#held = new HeldEntries();
    if (this.#held.nextDueMs === undefined) this.#setTimer();
  }
}

/** @throws PulseworkError POLICY_FAILED when `delayMs` is no delay or reaches past the end of time (N-24). */
export function dueAfter(fromMs: number, delayMs: unknown): number {
  const dueMs = typeof delayMs === 'number' && delayMs >= 0 ? fromMs + delayMs : NaN;
  if (dueMs <= Number.MAX_SAFE_INTEGER) return dueMs;
  containRejection(delayMs);
  const rule = 'a backoff must give milliseconds of 0 or more that do not reach past 2^53-1';
  throw new PulseworkError('POLICY_FAILED', `${rule}, got ${describeValue(delayMs)}`);
}
