// Keeps this process from ending while something in it waits without a socket or a timer of its own.

/** Longer than any wait of a caller: it only has to exist. */
const IDLE_MS = 2 ** 31 - 1;

/** Until the returned function is called, Node does not exit for lack of work. */
export function keepAlive(): () => void {
  const handle = setInterval(() => undefined, IDLE_MS);
  return () => clearInterval(handle);
}
