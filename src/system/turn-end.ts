// The end of the current turn of the event loop: the moment to send together what was asked for piece by piece.

/** Calls `run` once, after everything that can run now, promises included, and after input that has already come. */
export function afterThisTurn(run: () => void): void {
  setImmediate(run);
}
