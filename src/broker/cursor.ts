// What a subscription has acknowledged: everything up to the mark-delete position, single positions beyond it, and
// single messages of producer batches (S-25, A-11). Positions count the entries of a topic from 0 over all ledgers.
import { AckSet } from './ack-set.js';
import { passedPositions } from './passed-positions.js';
import { PositionSet } from './position-set.js';

/** `again`: it was acknowledged before. `partial`: other messages of the entry are not yet. `whole`: the entry is done. */
export type AckEffect = 'again' | 'partial' | 'whole';

export class Cursor {
  #markDelete: number;
  /** Where the last seek went; -1 for nowhere. */
  #target = -1;
  readonly #beyond = new PositionSet();
  readonly #batches = new Map<number, AckSet>();

  /** @param markDelete the last position that counts as acknowledged; -1 for none. */
  constructor(markDelete: number) {
    this.#markDelete = markDelete;
  }

  /** Everything up to and including this position is acknowledged. */
  get markDelete(): number {
    return this.#markDelete;
  }

  /** How many positions beyond the mark-delete position are acknowledged. */
  get ackedBeyond(): number {
    return this.#beyond.size;
  }

  /** The position whose ledger it is in: after a seek that of the target, which is not acknowledged. */
  get place(): number {
    return Math.max(this.#markDelete, this.#target);
  }

  isAcked(position: number): boolean {
    return position <= this.#markDelete || this.#beyond.has(position);
  }

  /** The first position at or after `from` that is not acknowledged. */
  nextUnacked(from: number): number {
    return this.#beyond.nextMissing(Math.max(from, this.#markDelete + 1));
  }

  /** The unacknowledged messages of a batch; undefined when none of it was acknowledged yet. */
  unackedOf(position: number): AckSet | undefined {
    return this.#batches.size === 0 ? undefined : this.#batches.get(position);
  }

  acknowledge(position: number): AckEffect {
    if (this.isAcked(position)) return 'again';
    if (this.#batches.size > 0) this.#batches.delete(position);
    if (position === this.#markDelete + 1) this.#moveTo(this.#beyond.nextMissing(position + 1) - 1);
    else this.#beyond.add(position);
    return 'whole';
  }

  acknowledgeIndex(position: number, index: number, batchSize: number): AckEffect {
    if (this.isAcked(position)) return 'again';
    const unacked = this.#ackSet(position, batchSize);
    if (!unacked.acknowledge(index)) return 'again';
    return unacked.count === 0 ? this.acknowledge(position) : 'partial';
  }

  /** Everything up to and including `position`. False when it was acknowledged before. */
  acknowledgeUpTo(position: number): boolean {
    if (position <= this.#markDelete) return false;
    this.#moveTo(this.#beyond.nextMissing(position + 1) - 1);
    return true;
  }

  /** Starts over: everything up to `markDelete` counts as acknowledged, nothing beyond it (S-28). */
  reset(markDelete: number): void {
    this.#markDelete = markDelete;
    this.#target = markDelete + 1;
    this.#beyond.clear();
    this.#batches.clear();
  }

  /** Of batches that are done in part, every message counts as unacknowledged again. */
  forgetParts(): void {
    this.#batches.clear();
  }

  #ackSet(position: number, batchSize: number): AckSet {
    const known = this.#batches.get(position);
    if (known !== undefined) return known;
    const made = new AckSet(batchSize);
    this.#batches.set(position, made);
    return made;
  }

  #moveTo(markDelete: number): void {
    const from = this.#markDelete + 1;
    if (this.#beyond.size > 0) this.#beyond.removeRange(from, markDelete);
    if (this.#batches.size > 0)
      for (const position of passedPositions(this.#batches, from, markDelete)) this.#batches.delete(position);
    this.#markDelete = markDelete;
  }
}
