// Turns on a connection that has one transaction at a time: who asked first is first, and who does not want to wait any longer leaves the
// line.
import { endsWithin } from '../../core/ends-within.js';
import type { Clock } from '../../ports/clock.js';

export class Turns {
  readonly #clock: Clock;
  /** Ends with the turns of all that asked. */
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns what ends the turn; undefined when it has not come within `waitMs` */
  async take(waitMs: number): Promise<(() => void) | undefined> {
    const before = this.#last;
    let end!: () => void;
    this.#last = new Promise((resolve) => (end = resolve));
    if (await endsWithin(this.#clock, before, waitMs)) return end;
    void before.then(end);
    return undefined;
  }
}
