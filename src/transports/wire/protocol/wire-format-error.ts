// What is wrong with bytes that came from outside. Internal: a connection turns it into its reason for closing, a
// subscription into a refused entry. Kept apart from other errors so that a bug of ours is never taken for bad input.

export class WireFormatError extends Error {
  override readonly name = 'WireFormatError';
}
