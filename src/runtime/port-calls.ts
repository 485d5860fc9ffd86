// Calls to a transport, none of which may hang for ever: after `callTimeoutMs` the result is unknown and the
// caller repeats the call. A late answer is ignored.
import { PulseworkError, toError } from '../core/errors.js';
import type { Clock } from '../ports/clock.js';
import { Deadlines } from './deadlines.js';

export class PortCalls {
  readonly #deadlines: Deadlines;
  readonly #timeoutMs: number;

  #closed = false;

  constructor(clock: Clock, timeoutMs: number) {
    this.#deadlines = new Deadlines(clock, timeoutMs);
    this.#timeoutMs = timeoutMs;
  }

  /** The answer of `call`, or CALL_TIMED_OUT. A `call` that throws at once rejects like one that rejects. */
  run<T>(what: string, call: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(this.#over(what));
    return new Promise<T>((resolve, reject) => {
      const deadline = this.#deadlines.add(() => reject(this.#closed ? this.#over(what) : this.#timedOut(what)));
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

  /** Whether the runtime has closed: nothing reaches the broker any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** No call is made or times out any more: what is still unsettled is back at the broker. */
  close(): void {
    this.#closed = true;
    this.#deadlines.expireAll();
  }

  #over(what: string): PulseworkError {
    return new PulseworkError('ALREADY_CLOSED', `${what}: the runtime is closed`);
  }

  #timedOut(what: string): PulseworkError {
    return new PulseworkError(
      'CALL_TIMED_OUT',
      `${what} gave no answer within ${this.#timeoutMs} ms; whether it happened is unknown`,
    );
  }
}
