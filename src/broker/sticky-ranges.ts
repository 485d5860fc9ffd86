// The Key_Shared selector of the STICKY mode (G-09): consumers name the slots they take. Slots that nobody took wait.
import { TransportError, describeValue } from '../core/errors.js';
import type { KeySelector, SlotRange } from './key-selector.js';
import { RANGE_SLOTS, ceilingIndex, rangeSlotOf } from './slots.js';

interface OwnedRange<Owner> extends SlotRange {
  readonly owner: Owner;
}

export class StickyRanges<Owner extends { readonly name: string }> implements KeySelector<Owner> {
  readonly #rangesOf: (owner: Owner) => readonly SlotRange[];
  /** Ascending, without overlap. */
  #ranges: readonly OwnedRange<Owner>[] = [];

  constructor(rangesOf: (owner: Owner) => readonly SlotRange[]) {
    this.#rangesOf = rangesOf;
  }

  slotOf(keyHash: number): number {
    return rangeSlotOf(keyHash);
  }

  add(owner: Owner): void {
    const ranges = this.#rangesOf(owner);
    for (const range of ranges) {
      const first = this.#ranges[ceilingIndex(this.#ranges, range.start)];
      if (first === undefined || first.start > range.end) continue;
      const text = `${rangeText(range)} of consumer "${owner.name}" overlaps with ${rangeText(first)} of "${first.owner.name}"`;
      throw new TransportError('NOT_ALLOWED', `Range conflict with consumer: ${text}`, { retriable: false });
    }
    const all = [...this.#ranges, ...ranges.map((range) => ({ ...range, owner }))];
    this.#ranges = all.toSorted((a, b) => a.start - b.start);
  }

  remove(owner: Owner): void {
    this.#ranges = this.#ranges.filter((range) => range.owner !== owner);
  }

  select(slot: number): Owner | undefined {
    const range = this.#ranges[ceilingIndex(this.#ranges, slot)];
    return range !== undefined && range.start <= slot ? range.owner : undefined;
  }
}

/** What is wrong with ranges that a consumer asks for. */
export function stickyRangeProblems(ranges: unknown): string[] {
  if (!Array.isArray(ranges) || ranges.length === 0) {
    return [`"stickyRanges" must be a list of at least one { start, end }, got ${describeValue(ranges)}`];
  }
  const problems = ranges
    .filter((range) => !isSlotRange(range))
    .map((range) => `"stickyRanges" must lie within 0 to ${RANGE_SLOTS - 1} with start up to end, got ${shown(range)}`);
  if (problems.length > 0) return problems;
  const sorted = (ranges as SlotRange[]).toSorted((a, b) => a.start - b.start);
  return sorted
    .slice(1)
    .filter((range, i) => range.start <= (sorted[i]?.end ?? -1))
    .map((range) => `"stickyRanges" must not overlap, got ${rangeText(range)} beside one that reaches into it`);
}

function isSlotRange(range: unknown): range is SlotRange {
  if (typeof range !== 'object' || range === null) return false;
  const { start, end } = range as Record<keyof SlotRange, unknown>;
  const isSlot = (slot: unknown): slot is number =>
    Number.isSafeInteger(slot) && Number(slot) >= 0 && Number(slot) < RANGE_SLOTS;
  return isSlot(start) && isSlot(end) && start <= end;
}

function shown(range: unknown): string {
  if (typeof range !== 'object' || range === null) return describeValue(range);
  const { start, end } = range as Record<keyof SlotRange, unknown>;
  return `{ start: ${describeValue(start)}, end: ${describeValue(end)} }`;
}

function rangeText({ start, end }: SlotRange): string {
  return `[${start}, ${end}]`;
}
