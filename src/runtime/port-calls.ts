// Calls to a transport, none of which may hang for ever: after `callTimeoutMs` the result is unknown and the
// caller repeats the call. A late answer is ignored.
import { PulseworkError, toError } from '../core/errors.js';
import type { Clock } from '../ports/clock.js';
import { Deadlines } from './deadlines.js';

export class PortCalls {
  readonly #deadlines: Deadlines;
  readonly #timeoutMs: number;

  constructor(clock: Clock, timeoutMs: number) {
    this.#deadlines = new Deadlines(clock, timeoutMs);
    this.#timeoutMs = timeoutMs;
  }

  /** The answer of `call`, or CALL_TIMED_OUT. A `call` that throws at once rejects like one that rejects. */
  run<T>(what: string, call: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const deadline = this.#deadlines.add(() => reject(this.#timedOut(what)));
      const answered = (settle: () => void): void => {
        deadline.remove();
        settle();
      };
      try {
        call().then(
          (value) => answered(() => resolve(value)),
          (error: unknown) => answered(() => reject(toError(error))),
        );
      } catch (error) {
        answered(() => reject(toError(error)));
      }
    });
  }

  /** No call times out any more: what still runs is abandoned by its caller. */
  close(): void {
    this.#deadlines.clear();
  }

  #timedOut(what: string): PulseworkError {
    return new PulseworkError(
      'CALL_TIMED_OUT',
      `${what} gave no answer within ${this.#timeoutMs} ms; whether it happened is unknown`,
    );
  }
}
