// The Key_Shared selector of brokers with `subscriptionKeySharedUseConsistentHashing=false` (K-06): the first consumer has
// all slots, each further one takes the lower half of the largest range.
import { TransportError } from '../core/errors.js';
import type { KeySelector } from './key-selector.js';
import { RANGE_SLOTS, ceilingIndex, rangeSlotOf } from './slots.js';

/** From after the end of the one before to `end`, included. */
interface Range<Owner> {
  readonly end: number;
  readonly owner: Owner;
}

export class SplitRanges<Owner> implements KeySelector<Owner> {
  #ranges: readonly Range<Owner>[] = [];

  slotOf(keyHash: number): number {
    return rangeSlotOf(keyHash);
  }

  add(owner: Owner): void {
    const { index, size } = this.#largest();
    const largest = this.#ranges[index];
    if (largest === undefined) {
      this.#ranges = [{ end: RANGE_SLOTS, owner }];
      return;
    }
    if (size < 2) throw noRangeLeft(this.#ranges.length);
    const lower = { end: largest.end - (size >> 1), owner };
    this.#ranges = this.#ranges.toSpliced(index, 0, lower);
  }

  /** Its range goes to the next one above; that of the last one to the one below. */
  remove(owner: Owner): void {
    const index = this.#ranges.findIndex((range) => range.owner === owner);
    if (index < 0) return;
    const below = this.#ranges[index - 1];
    if (index < this.#ranges.length - 1 || below === undefined) {
      this.#ranges = this.#ranges.toSpliced(index, 1);
    } else {
      this.#ranges = this.#ranges.toSpliced(index - 1, 2, { end: RANGE_SLOTS, owner: below.owner });
    }
  }

  select(slot: number): Owner | undefined {
    return this.#ranges[ceilingIndex(this.#ranges, slot)]?.owner;
  }

  /** Of equal ones the lowest. */
  #largest(): { readonly index: number; readonly size: number } {
    let largest = { index: 0, size: 0 };
    let start = 0;
    for (const [index, { end }] of this.#ranges.entries()) {
      if (end - start > largest.size) largest = { index, size: end - start };
      start = end;
    }
    return largest;
  }
}

function noRangeLeft(consumers: number): TransportError {
  const text = `No more range can assigned to new consumer, assigned consumers ${consumers}`;
  return new TransportError('NOT_ALLOWED', text, { retriable: false });
}
