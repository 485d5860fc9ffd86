// The signals of this process. Node calls every listener; the signal's own effect returns with the last one's end.
import { constants } from 'node:os';
import type { ProcessSignals } from '../ports/process-signals.js';

/** No process can listen for these; Node throws. */
const NOT_CATCHABLE: readonly string[] = ['SIGKILL', 'SIGSTOP'];

export const systemProcessSignals: ProcessSignals = {
  // Node takes any other name for an event of its own, which never comes.
  names: Object.keys(constants.signals).filter((name) => !NOT_CATCHABLE.includes(name)),
  on(signal, run) {
    // The listener is given the signal; `run` takes nothing.
    const listener = (): void => run();
    process.on(signal, listener);
    return () => void process.off(signal, listener);
  },
};
