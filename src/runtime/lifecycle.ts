// The life of a runtime as a table: which state may follow which. An illegal call names the current state.
import { PulseworkError, toError } from '../core/errors.js';

/** `failed`: a start that did not succeed, or a handler that asked to stop. `closed` and `failed` are final. */
export type RuntimeState = 'idle' | 'starting' | 'running' | 'draining' | 'closed' | 'failed';

const NEXT: Readonly<Record<RuntimeState, readonly RuntimeState[]>> = {
  idle: ['starting'],
  starting: ['running', 'failed'],
  running: ['draining'],
  draining: ['closed', 'failed'],
  closed: [],
  failed: [],
};

export class Lifecycle {
  #state: RuntimeState = 'idle';

  get state(): RuntimeState {
    return this.#state;
  }

  /** @throws PulseworkError ILLEGAL_STATE when the table does not allow it. */
  move(to: RuntimeState): void {
    if (!NEXT[this.#state].includes(to)) {
      throw new PulseworkError('ILLEGAL_STATE', `runtime is ${this.#state}; it cannot become ${to}`);
    }
    this.#state = to;
  }

  /** @throws PulseworkError ILLEGAL_STATE unless the current state is one of `needed`. */
  require(call: string, ...needed: readonly RuntimeState[]): void {
    if (needed.includes(this.#state)) return;
    throw new PulseworkError('ILLEGAL_STATE', `runtime is ${this.#state}; ${call} needs ${needed.join(' or ')}`);
  }
}

/** An error that says what could not start already is passed on as it is. */
export function startFailed(what: string, error: unknown): PulseworkError {
  if (error instanceof PulseworkError && error.code === 'START_FAILED') return error;
  return new PulseworkError('START_FAILED', `${what}: ${toError(error).message}`, { cause: error });
}
