// One life of the process that a broker lives in: it ends at a call to a store that is chosen beforehand, and then nothing of it goes on.
// Until then a store answers after a while, or fails where it is told to.
import { PulseworkError } from '../../../src/core/errors.js';
import type { Clock, Timer } from '../../../src/ports/clock.js';

/** At which call, counted from 1. */
interface Disturbance {
  readonly at: number;
  /** The call is made, and only its answer is lost. */
  readonly isAfter: boolean;
}

const NEVER = new Promise<never>(() => undefined);

export class ProcessLife {
  readonly #latency: () => number;
  #calls = 0;
  #crash: Disturbance | undefined;
  #faults: Disturbance[] = [];
  #isOver = false;

  /** @param latency microtasks until an answer comes */
  constructor(latency: () => number) {
    this.#latency = latency;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Nothing of it goes on. */
  end(): void {
    this.#isOver = true;
  }

  /** False where it is to crash already. */
  crashAt(call: number, isAfter: boolean): boolean {
    if (this.#crash !== undefined) return false;
    this.#crash = { at: this.#calls + call, isAfter };
    return true;
  }

  failAt(call: number, isAfter: boolean): void {
    this.#faults.push({ at: this.#calls + call, isAfter });
  }

  /** What was to go wrong later does not. */
  calm(): void {
    this.#crash = undefined;
    this.#faults = [];
  }

  /**
   * @param mayHaveHappened whether a call that fails may have been made; false: a failure means that it was not
   * @throws PulseworkError STORE_FAILED, STORE_FULL where it is to fail; what `make` throws
   */
  async call<T>(make: () => Promise<T>, mayHaveHappened = true): Promise<T> {
    if (this.#hasEnded()) return NEVER;
    this.#calls += 1;
    const number = this.#calls;
    if (this.#crash !== undefined && number >= this.#crash.at) return this.#die(make, this.#crash.isAfter);
    const fault = this.#faults.find(({ at }) => at === number);
    const isMade = fault === undefined || (fault.isAfter && mayHaveHappened);
    const made = isMade ? settled(make()) : undefined;
    await microtasks(this.#latency());
    const outcome = await made;
    if (this.#hasEnded()) return NEVER;
    if (fault !== undefined)
      throw new PulseworkError(isMade ? 'STORE_FAILED' : 'STORE_FULL', `call ${number} was to fail`);
    if (outcome === undefined || 'error' in outcome) throw outcome?.error;
    return outcome.value;
  }

  /** What it set goes with it. */
  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      elapsedMs: () => clock.elapsedMs(),
      nextTurn: (run) => {
        clock.nextTurn(() => {
          if (!this.#isOver) run();
        });
      },
      setTimer: (delayMs, run): Timer =>
        clock.setTimer(delayMs, () => {
          if (!this.#isOver) run();
        }),
    };
  }

  #hasEnded(): boolean {
    return this.#isOver;
  }

  async #die(make: () => Promise<unknown>, isAfter: boolean): Promise<never> {
    this.#isOver = true;
    if (isAfter) await make();
    return NEVER;
  }
}

/** Of everybody, in their turn. */
export async function microtasks(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await Promise.resolve();
}

type Settled<T> = { readonly value: T } | { readonly error: unknown };

function settled<T>(promise: Promise<T>): Promise<Settled<T>> {
  return promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}
