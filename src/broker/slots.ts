// The 65,536 slots of the selectors that go by ranges. The consistent ring has one fewer (K-03).
import { firstIndex } from './bisect.js';

export const RANGE_SLOTS = 65_536;

/** The slot of a key hash; 0 would mean "not set", so its keys have slot 1. */
export function rangeSlotOf(keyHash: number): number {
  return keyHash % RANGE_SLOTS || 1;
}

/** The index of the first one that ends at or after `slot`. @param ends ascending */
export function ceilingIndex(ends: readonly { readonly end: number }[], slot: number): number {
  return firstIndex(ends.length, (i) => (ends[i]?.end ?? Infinity) >= slot);
}
