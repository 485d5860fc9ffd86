// How Key_Shared gives hash slots to consumers: the seam between its dispatcher and the consistent ring, the split of one
// range, and ranges that consumers name themselves.
import { HashRing } from './hash-ring.js';
import { SplitRanges } from './split-ranges.js';
import { StickyRanges } from './sticky-ranges.js';

/** Slots from `start` to `end`, both included; 0 to 65,535. */
export interface SlotRange {
  readonly start: number;
  readonly end: number;
}

/** What a Key_Shared consumer asks for; all consumers of a subscription ask for the same mode and order (K-07). */
export interface KeySharedSettings {
  /** The hash slots it takes; undefined leaves the choice to the broker (AUTO_SPLIT). */
  readonly stickyRanges: readonly SlotRange[] | undefined;
  /** A key that moves to another consumer is not drained first (K-15). */
  readonly allowOutOfOrder: boolean;
}

export interface KeySelector<Owner> {
  slotOf(keyHash: number): number;
  /** @throws TransportError NOT_ALLOWED when there is nothing for it; then nothing has changed. */
  add(owner: Owner): void;
  remove(owner: Owner): void;
  /** Undefined while nobody has the slot. */
  select(slot: number): Owner | undefined;
}

export function keySelectorFor<
  Owner extends { readonly name: string; readonly keyShared: KeySharedSettings | undefined },
>(sticky: boolean, consistentHashing: boolean): KeySelector<Owner> {
  if (sticky) return new StickyRanges((owner) => owner.keyShared?.stickyRanges ?? []);
  return consistentHashing ? new HashRing() : new SplitRanges();
}

/** Why a consumer cannot join those that are connected (K-07), in the words of Pulsar; undefined when it can. */
export function keySharedConflict(
  active: KeySharedSettings | undefined,
  joining: KeySharedSettings | undefined,
): string | undefined {
  if (active === undefined || joining === undefined) return undefined;
  if (modeOf(active) !== modeOf(joining)) {
    return (
      `Subscription is of different type. Active subscription key_shared mode of '${modeOf(active)}' ` +
      `is different than the connecting consumer's key_shared mode '${modeOf(joining)}'.`
    );
  }
  if (active.allowOutOfOrder === joining.allowOutOfOrder) return undefined;
  return active.allowOutOfOrder
    ? 'Subscription is of different type. Active subscription allows out of order delivery while the connecting consumer does not allow it.'
    : 'Subscription is of different type. Active subscription does not allow out of order delivery while the connecting consumer allows it.';
}

function modeOf({ stickyRanges }: KeySharedSettings): 'AUTO_SPLIT' | 'STICKY' {
  return stickyRanges === undefined ? 'AUTO_SPLIT' : 'STICKY';
}
