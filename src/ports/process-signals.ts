// Signals that the process gets from its system: for what must end in an orderly way when the process is told to.

export interface ProcessSignals {
  /** Names of the signals that can be listened for here, e.g. `SIGTERM`. */
  readonly names: readonly string[];
  /**
   * Calls `run` each time the signal arrives, until the returned function is called, which may be called any number of
   * times. As long as anybody listens, the signal does not end the process. Listening keeps no process alive.
   */
  on(signal: string, run: () => void): () => void;
}
