// Strong references to everything of the addon that is open. Once its JavaScript object is collected, a client closes all
// that was made from it, and a consumer with a `receive()` under way ends the process. What a program drops without
// closing must therefore stay (it leaks until it is closed, which is what an open connection is).

/** How often each is held: two transports may use one client. */
const held = new Map<object, number>();

export function hold(object: object): void {
  held.set(object, (held.get(object) ?? 0) + 1);
}

export function release(object: object): void {
  const count = (held.get(object) ?? 0) - 1;
  if (count > 0) held.set(object, count);
  else held.delete(object);
}

/** By module: there is one in a process, unless a test brings its own. */
const firstClients = new Map<object, object>();

/** The addon reads its log level from the first client of the process, also when that one was closed long ago. */
export function holdFirst(module: object, client: object): void {
  if (!firstClients.has(module)) firstClients.set(module, client);
}
