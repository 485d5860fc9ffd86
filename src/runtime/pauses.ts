// Why a subscription takes no new messages: any number of reasons at a time, each visible. The transport is told when
// the first comes and when the last has gone.
import type { Logger } from '../ports/logger.js';
import type { PauseReason } from '../ports/runtime-view.js';

export class Pauses {
  readonly #reasons = new Set<PauseReason>();
  readonly #handler: string;
  readonly #logger: Logger;
  readonly #target: { pause(): void; resume(): void };

  constructor(handler: string, logger: Logger, target: { pause(): void; resume(): void }) {
    this.#handler = handler;
    this.#logger = logger;
    this.#target = target;
  }

  get any(): boolean {
    return this.#reasons.size > 0;
  }

  has(reason: PauseReason): boolean {
    return this.#reasons.has(reason);
  }

  /** Whether not even what is here already may start: the others only keep new messages away. */
  get stopsRuns(): boolean {
    return this.#reasons.has('operator') || this.#reasons.has('abandoned-runs');
  }

  get reasons(): readonly PauseReason[] {
    return [...this.#reasons];
  }

  /** @returns whether anything changed. */
  set(reason: PauseReason, on: boolean): boolean {
    if (this.#reasons.has(reason) === on) return false;
    if (on) this.#reasons.add(reason);
    else this.#reasons.delete(reason);
    if (on) this.#logger.warn('subscription paused', { handler: this.#handler, reason });
    else this.#logger.info('pause ended', { handler: this.#handler, reason, stillPaused: this.reasons });
    if (on && this.#reasons.size === 1) this.#target.pause();
    if (!on && this.#reasons.size === 0) this.#target.resume();
    return true;
  }
}
