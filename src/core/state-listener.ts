// Who listens to the states of a subscription: the same for every transport. Until somebody does, nobody is told.
import { PulseworkError, describeValue } from './errors.js';

export class StateListener<State> {
  #report: (state: State) => void = () => undefined;

  /** Takes the place of the one before, and is told what the states are now. @throws PulseworkError CONFIGURATION_INVALID */
  listen(report: (state: State) => void, states: Iterable<State>): void {
    if (typeof (report as unknown) !== 'function') {
      throw new PulseworkError('CONFIGURATION_INVALID', `onState needs a function, got ${describeValue(report)}`);
    }
    this.#report = report;
    for (const state of states) report(state);
  }

  /** What the listener throws is not the connection's fault: it surfaces as an uncaught error, and the connection goes on. */
  tell(state: State): void {
    try {
      this.#report(state);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
