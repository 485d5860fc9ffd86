// Keeps something attached to brokers: attaches, and attaches again with backoff whenever it was lost. One attempt at a
// time, whatever comes meanwhile, so that quick repeated losses neither leak nor double anything.
import { TransportError } from '../../core/errors.js';
import type { Timer } from '../../ports/clock.js';
import { isFinal, reconnectWaits, repeatPassing } from './repeat-passing.js';
import type { ResolvedWireOptions } from './wire-options.js';

export interface AttachmentParts {
  /** For logs, e.g. `producer of persistent://…`. */
  readonly subject: string;
  /** One attempt. What it began must be undone when it throws. */
  attach(): Promise<void>;
  /** Whether trying again is pointless once it had been attached before. `failed` is called then. */
  givesUp(error: unknown): boolean;
  failed(error: unknown): void;
}

export class Attachment {
  readonly #parts: AttachmentParts;
  readonly #options: ResolvedWireOptions;
  readonly #waits: (failures: number) => number;
  #attempting = false;
  /** It was lost while an attempt was under way: that attempt may or may not have noticed. */
  #lostMeanwhile = false;
  #failures = 0;
  /** The wait before the attempt that succeeded last, and when it succeeded. */
  #waitedMs = 0;
  #attachedAtMs = 0;
  #timer: Timer | undefined;
  #closed = false;

  constructor(parts: AttachmentParts, options: ResolvedWireOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#waits = reconnectWaits(options);
  }

  /**
   * The first time. What fails for a passing reason is repeated until `operationTimeoutMs` is over; that the place is
   * taken (CONSUMER_BUSY, PRODUCER_BUSY) is told at once. @throws TransportError of the last attempt.
   */
  open(): Promise<void> {
    const givesUp = (error: unknown): boolean => this.#closed || isFinal(error) || isTaken(error);
    return repeatPassing(() => this.#attempt(), this.#options, givesUp);
  }

  /** Says that what was attached is attached no more; it is attached again, after a wait. */
  lost(): void {
    if (this.#attempting) this.#lostMeanwhile = true;
    else this.#reschedule();
  }

  /** Something came of it (a receipt, a message): when it is lost now, that is a first failure. */
  worked(): void {
    this.#failures = 0;
    this.#waitedMs = 0;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  async #attempt(): Promise<void> {
    this.#attempting = true;
    this.#lostMeanwhile = false;
    try {
      await this.#parts.attach();
      this.#attachedAtMs = this.#options.clock.now();
    } finally {
      this.#attempting = false;
    }
    if (this.#wasLost()) this.#reschedule();
  }

  #wasLost(): boolean {
    return this.#lostMeanwhile;
  }

  /**
   * What was lost again sooner than it had been waited for, and of no use, counts as a failed attempt: a broker that takes whoever comes
   * and sends them away, say because it cannot write, must not be asked without end.
   */
  #reschedule(): void {
    const lastedMs = this.#options.clock.now() - this.#attachedAtMs;
    if (lastedMs >= this.#waitedMs) this.#failures = 0;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#timer?.cancel();
    this.#waitedMs = this.#nextWaitMs();
    this.#timer = this.#options.clock.setTimer(this.#waitedMs, () => void this.#again());
  }

  async #again(): Promise<void> {
    try {
      await this.#attempt();
    } catch (error) {
      if (this.#closed) return;
      const givesUp = this.#parts.givesUp(error);
      this.#options.logger?.warn(`${this.#parts.subject}: could not be attached again`, { error, givesUp });
      if (givesUp) this.#parts.failed(error);
      else this.#schedule();
    }
  }

  #nextWaitMs(): number {
    this.#failures += 1;
    return this.#waits(this.#failures);
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof TransportError && (error.code === 'CONSUMER_BUSY' || error.code === 'PRODUCER_BUSY');
}
