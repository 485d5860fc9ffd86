// Tells who calls globals that give something else each time: what has to come out the same in each replay must not.

export interface GlobalUse {
  /** E.g. `Date.now()`. */
  readonly what: string;
  /** What to use in its place, e.g. `flow.now()`. */
  readonly instead: string;
  /** File and line of the caller, where it is known: `order.ts:12`. */
  readonly place: string | undefined;
}

export interface GlobalGuard {
  /**
   * Puts watching functions in the place of the globals; they do what the globals do. @returns what takes them out again, the
   * last one of those who have put them there; calling it again does nothing
   */
  install(): () => void;
  /**
   * Calls `run`, and returns what it returns. While they are installed, uses of the globals in all that `run` starts are
   * reported, then done. Not reported: what installed packages and Node itself do of their own, such as a logger that looks at
   * the time; random values are, also where a package takes them.
   */
  within<T>(report: (use: GlobalUse) => void, run: () => T): T;
}
