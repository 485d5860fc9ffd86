// Errors that do what errors should not.

/** An Error whose every property throws when read. */
export function hostileError(): Error {
  const error = new Error('hidden');
  // The stack first: it is made when it is first touched, and that reads the others.
  for (const name of ['stack', 'name', 'message', 'cause']) {
    Object.defineProperty(error, name, {
      get: () => {
        throw new Error(`${name} must not be read`);
      },
    });
  }
  return error;
}

/** An Error that is the cause of its own cause. */
export function cyclicError(): Error {
  const outer = new Error('outer');
  outer.cause = new TypeError('inner', { cause: outer });
  return outer;
}

/** An Error as another process would have it, with this stack below its first line. */
export function errorWithFrames(name: string, message: string, ...frames: readonly string[]): Error {
  const error = new Error(message);
  error.name = name;
  error.stack = [`${name}: ${message}`, ...frames.map((frame) => `    at ${frame}`)].join('\n');
  return error;
}
