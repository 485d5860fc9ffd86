// One call of an `around*` hook, seen from both sides: what the hook got from `next` and what it made of it.
import { describeValue, isError } from '../../core/errors.js';
import { errorMessage, errorName } from '../../core/failure-report.js';

/** How a call ended. */
export type Ended = { readonly value: unknown } | { readonly error: unknown };

export class WatchedCall {
  readonly #hook: string;
  readonly #problem: (sentence: string) => void;
  #calls = 0;
  #given: Ended | undefined;
  #over = false;

  constructor(hook: string, problem: (sentence: string) => void) {
    this.#hook = hook;
    this.#problem = problem;
  }

  /** What the hook gets as its `next`. */
  next<T>(call: () => T): T {
    if (this.#over) this.#problem(`${this.#hook} calls next() after it has ended`);
    else if (this.#calls > 0) this.#problem(`${this.#hook} calls next() more than once`);
    this.#calls += 1;
    try {
      const result = call();
      if (!(result instanceof Promise)) this.#given = { value: result };
      return result instanceof Promise ? (this.#seen(result) as T) : result;
    } catch (error) {
      this.#given = { error };
      throw error;
    }
  }

  /**
   * The hook has ended.
   * @param excused whether it may end without the run: its signal has aborted, or it replaces on purpose.
   */
  ended(returned: Ended, excused: boolean): void {
    this.#over = true;
    const given = this.#given;
    if (this.#calls === 0 && excused) return;
    if (this.#calls === 0) {
      const how = 'error' in returned ? `, by throwing ${shown(returned.error)}` : '';
      return this.#problem(`${this.#hook} ends without calling next()${how}`);
    }
    if (given === undefined) return this.#problem(`${this.#hook} does not wait for what next() promises`);
    if (excused) return;
    if ('error' in given) return this.#compareError(given.error, returned);
    if ('error' in returned) this.#problem(`${this.#hook} throws although next() succeeded: ${shown(returned.error)}`);
    else if (returned.value !== given.value)
      this.#problem(
        `${this.#hook} does not return what next() gave: ${shown(returned.value)} in place of ${shown(given.value)}`,
      );
  }

  #compareError(error: unknown, returned: Ended): void {
    if (!('error' in returned)) this.#problem(`${this.#hook} swallows the error of next()`);
    else if (returned.error !== error)
      this.#problem(`${this.#hook} throws another error than next() did: ${shown(returned.error)}`);
  }

  async #watch(result: Promise<unknown>): Promise<unknown> {
    try {
      const value = await result;
      this.#given = { value };
      return value;
    } catch (error) {
      this.#given = { error };
      throw error;
    }
  }

  /** A hook that does not wait must not end the process by an error that nobody handles. */
  #seen(result: Promise<unknown>): Promise<unknown> {
    const seen = this.#watch(result);
    seen.catch(() => undefined);
    return seen;
  }
}

export function shown(value: unknown): string {
  if (isError(value)) return `${errorName(value)}: ${errorMessage(value)}`;
  const { kind } = (typeof value === 'object' && value !== null ? value : {}) as { readonly kind?: unknown };
  return typeof kind === 'string' ? `the outcome ${kind}` : describeValue(value);
}
