// What was done outside, in the order in which it was done: the services of all stories write here, and say in which step.

export interface Effect {
  /** The idempotency key of the step's work that did it; undefined outside of any. */
  readonly key: string | undefined;
  readonly what: string;
}

export class Ledger {
  readonly effects: Effect[] = [];
  #key: string | undefined;

  /** Runs the work of a step up to its first await: services do what they do at once. */
  within<T>(key: string, work: () => T): T {
    this.#key = key;
    try {
      return work();
    } finally {
      this.#key = undefined;
    }
  }

  did(what: string): void {
    this.effects.push({ key: this.#key, what });
  }
}
