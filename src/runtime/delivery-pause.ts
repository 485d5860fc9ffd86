// Keeps new messages away while nearly everything fails (K-53): what is here already goes on, and after a delay some
// messages come to try. A reason beside all others why a subscription is paused; off without the option `deliveryPause`.
import { BroadFailure, failedOf } from '../core/broad-failure.js';
import type { Settlement } from '../core/settlement.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { DeliveryPauseHealth } from '../ports/runtime-view.js';
import type { HandlerPlan } from './handler-plan.js';
import type { Pauses } from './pauses.js';

export interface DeliveryPauseParts {
  readonly plan: Pick<HandlerPlan, 'deliveryPause'>;
  readonly pauses: Pauses;
  readonly clock: Clock;
  /** Messages may be taken again. */
  readonly onTaking: () => void;
}

export class DeliveryPause {
  readonly #parts: DeliveryPauseParts;
  readonly #failure: BroadFailure | undefined;
  /** Of the delay while it is open; of the longest wait for results while it is half-open. */
  #timer: Timer | undefined;
  #closed = false;

  constructor(parts: DeliveryPauseParts) {
    this.#parts = parts;
    const { deliveryPause: policy } = parts.plan;
    this.#failure = policy && new BroadFailure(policy);
  }

  /** Undefined without the option. */
  get health(): DeliveryPauseHealth | undefined {
    if (this.#failure === undefined) return undefined;
    const { state, opened, delayMs } = this.#failure;
    return { state, opened, delayMs };
  }

  /**
   * Whether one more message may come, while `inProgress` are ready or running. Half-open, as many may be as results are
   * missing: one that waits for something else (a time, its key) has no result soon and makes room for another.
   */
  mayTake(inProgress: number): boolean {
    const failure = this.#failure;
    if (failure?.state !== 'half-open' || inProgress < failure.missing) return true;
    this.#waitForResults();
    return false;
  }

  /** A settlement was made of what a handler said. */
  settled(settlement: Settlement): void {
    if (this.#failure === undefined || this.#closed) return;
    const failed = failedOf(settlement);
    if (failed !== undefined) this.#change((failure) => failure.add(failed));
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #change(change: (failure: BroadFailure) => void): void {
    const failure = this.#failure;
    if (failure === undefined) return;
    const { state } = failure;
    change(failure);
    if (failure.state !== state) this.#entered(failure);
  }

  #entered({ state, delayMs }: BroadFailure): void {
    const { pauses, clock, onTaking } = this.#parts;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (state === 'open') {
      this.#timer = clock.setTimer(delayMs, () => {
        this.#change((failure) => failure.delayOver());
        onTaking();
      });
    }
    pauses.set('broad-failure', state === 'open');
  }

  /**
   * All that may come to try has come. A run without an end must not keep everything else away: after the longest pause the
   * results that there are decide.
   */
  #waitForResults(): void {
    if (this.#timer !== undefined || this.#closed) return;
    const { plan, clock, onTaking } = this.#parts;
    this.#timer = clock.setTimer(plan.deliveryPause?.maxDelayMs ?? 0, () => {
      this.#timer = undefined;
      this.#change((failure) => failure.judge());
      onTaking();
    });
  }
}
