// Which messages of an entry wait for redelivery: the whole entry, one message of a producer batch, or several.
// The entry comes back as a whole (N-22); the scope says which acknowledgements make that needless (N-27).

/** WHOLE_ENTRY, one batch index, or several in ascending order. A bare number where one will do: it takes no room. */
export type BatchScope = number | readonly number[];

/** Also the batch index of a message that is not in a batch. */
export const WHOLE_ENTRY = -1;

export function scopeOf(batchIndex: number): BatchScope {
  return batchIndex < 0 ? WHOLE_ENTRY : batchIndex;
}

/** Both together. The whole entry takes in every index. */
export function withIndex(scope: BatchScope, batchIndex: number): BatchScope {
  if (batchIndex < 0) return WHOLE_ENTRY;
  if (scopeHas(scope, batchIndex)) return scope;
  const indexes = typeof scope === 'number' ? [scope] : scope;
  const at = indexes.findIndex((index) => index > batchIndex);
  return indexes.toSpliced(at < 0 ? indexes.length : at, 0, batchIndex);
}

/** What is left after message `batchIndex` was acknowledged; undefined when nothing is. The whole entry stays whole. */
export function withoutIndex(scope: BatchScope, batchIndex: number): BatchScope | undefined {
  return left(scope, (index) => index !== batchIndex);
}

/** What is left after all messages up to `batchIndex` were acknowledged; undefined when nothing is. */
export function withoutIndexesUpTo(scope: BatchScope, batchIndex: number): BatchScope | undefined {
  return left(scope, (index) => index > batchIndex);
}

export function scopeHas(scope: BatchScope, batchIndex: number): boolean {
  if (typeof scope === 'number') return scope === WHOLE_ENTRY || scope === batchIndex;
  return scope.includes(batchIndex);
}

function left(scope: BatchScope, stays: (index: number) => boolean): BatchScope | undefined {
  if (scope === WHOLE_ENTRY) return scope;
  if (typeof scope === 'number') return stays(scope) ? scope : undefined;
  const indexes = scope.filter(stays);
  return indexes.length > 1 ? indexes : indexes[0];
}
