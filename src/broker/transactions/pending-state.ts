// What is pending on one subscription, without any waiting: which acknowledgement conflicts with which (T-10 to T-12), and
// what may not be sent (T-15). An acknowledgement is reserved while it is being recorded: others conflict with it, but it
// takes effect only when it is recorded.
import { AckSet } from '../ack-set.js';
import type { Cursor } from '../cursor.js';
import type { MessagePlace } from '../topic-subscription.js';
import * as errors from './pending-ack-errors.js';
import type { AckSubject, EntryId } from './pending-ack-errors.js';
import type { EntryPart } from './pending-positions.js';
import { PendingPositions } from './pending-positions.js';

/** What the rules ask of the subscription and its topic. */
export interface PendingFacts {
  readonly topic: string;
  readonly subscription: string;
  readonly cursor: Pick<Cursor, 'isAcked' | 'unackedOf' | 'markDelete'>;
  /** The messages of the batch at the position; 0 when the entry is no batch, or is gone. */
  batchSizeAt(position: number): number;
  /** Of an entry that is gone, one that no entry has. */
  idOf(position: number): EntryId;
}

interface CumulativeAck {
  readonly transaction: string;
  /** Undefined until one is recorded. */
  pending: MessagePlace | undefined;
  /** The furthest one that is being recorded or was. */
  reserved: MessagePlace;
  /** How many are being recorded. */
  recording: number;
}

/** What a transaction has acknowledged here. */
export interface PendingOfTransaction {
  readonly parts: readonly EntryPart[];
  readonly cumulative: MessagePlace | undefined;
}

export class PendingState {
  readonly #facts: PendingFacts;
  readonly #pending = new PendingPositions();
  readonly #reserved = new PendingPositions();
  #cumulative: CumulativeAck | undefined;

  constructor(facts: PendingFacts) {
    this.#facts = facts;
  }

  /** Those that have something pending. */
  get transactions(): readonly string[] {
    const all = new Set(this.#pending.transactions);
    if (this.#cumulative?.pending !== undefined) all.add(this.#cumulative.transaction);
    return [...all];
  }

  has(transaction: string): boolean {
    const cumulative = this.#cumulative;
    return (
      this.#pending.has(transaction) || (cumulative?.transaction === transaction && cumulative.pending !== undefined)
    );
  }

  /** Whether no message of the entry may be sent: acknowledged in a transaction, or else altogether. */
  withholds(position: number): boolean {
    if (!this.#isTouched(position)) return false;
    const { cursor } = this.#facts;
    const batchSize = this.#facts.batchSizeAt(position);
    const unacked = cursor.unackedOf(position);
    // Of an entry that is no batch everything is pending as soon as something is.
    for (let index = 0; index < batchSize; index++)
      if (unacked?.has(index) !== false && !this.#isPendingAt(position, index)) return false;
    return true;
  }

  /** The messages of the batch that may be sent; undefined for all. */
  unackedOf(position: number): AckSet | undefined {
    const unacked = this.#facts.cursor.unackedOf(position);
    if (!this.#isTouched(position)) return unacked;
    const batchSize = this.#facts.batchSizeAt(position);
    const sendable = new AckSet(batchSize);
    for (let index = 0; index < batchSize; index++)
      if (unacked?.has(index) === false || this.#isPendingAt(position, index)) sendable.acknowledge(index);
    return sendable;
  }

  /** All of them or none (T-11). @throws TransportError TRANSACTION_CONFLICT for the first that cannot be (T-10). */
  reserve(transaction: string, parts: readonly EntryPart[]): void {
    for (const part of parts) this.#check(transaction, part);
    for (const part of parts) this.#reserved.add(transaction, part);
  }

  /** Pending from now on, unless acknowledged without the transaction meanwhile (T-14). */
  confirm(transaction: string, parts: readonly EntryPart[]): void {
    this.release(parts);
    for (const part of parts) {
      const left = this.#unacked(part);
      if (left !== undefined) this.#pending.add(transaction, left);
    }
  }

  /** It was not recorded. */
  release(parts: readonly EntryPart[]): void {
    for (const part of parts) this.#reserved.remove(part);
  }

  /** @throws TransportError TRANSACTION_CONFLICT (T-12). */
  reserveUpTo(transaction: string, place: MessagePlace): void {
    this.#checkUpTo(transaction, place);
    const current = this.#cumulative;
    if (current === undefined) {
      this.#cumulative = { transaction, pending: undefined, reserved: place, recording: 1 };
    } else {
      current.reserved = place;
      current.recording += 1;
    }
  }

  confirmUpTo(transaction: string, place: MessagePlace): void {
    const current = this.#cumulative;
    if (current?.transaction !== transaction) return;
    current.recording -= 1;
    if (current.pending === undefined || isBehind(place, current.pending)) current.pending = place;
  }

  releaseUpTo(transaction: string): void {
    const current = this.#cumulative;
    if (current?.transaction !== transaction) return;
    current.recording -= 1;
    if (current.recording > 0) return;
    if (current.pending === undefined) this.#cumulative = undefined;
    else current.reserved = current.pending;
  }

  /** What was recorded earlier is pending again, but for what conflicts: that was told to nobody as done (T-13). */
  restore(transaction: string, parts: readonly EntryPart[]): void {
    for (const part of parts) {
      const left = this.#unacked(part);
      if (left !== undefined && !this.#pending.overlaps(left)) this.#pending.add(transaction, left);
    }
  }

  restoreUpTo(transaction: string, place: MessagePlace): void {
    const current = this.#cumulative;
    if (place.position <= this.#facts.cursor.markDelete) return;
    if (current === undefined) this.#cumulative = { transaction, pending: place, reserved: place, recording: 0 };
    else if (current.transaction === transaction && (!current.pending || isBehind(place, current.pending)))
      current.pending = current.reserved = place;
  }

  /** Acknowledged without a transaction: it leaves what is pending (T-14). @param batchIndex -1 for the whole entry. */
  acknowledged(position: number, batchIndex: number): void {
    if (this.#pending.size === 0) return;
    const isWhole = batchIndex < 0 || this.#facts.cursor.isAcked(position);
    this.#pending.remove({ position, indexes: isWhole ? undefined : [batchIndex] });
  }

  /** The same of everything in `from` to `to`, both included. */
  acknowledgedRange(from: number, to: number): void {
    this.#pending.removeRange(from, to);
  }

  /** Takes out everything that the transaction has; nothing of it may be reserved. */
  take(transaction: string): PendingOfTransaction {
    const cumulative = this.#cumulative?.transaction === transaction ? this.#cumulative.pending : undefined;
    if (cumulative !== undefined) this.#cumulative = undefined;
    return { parts: this.#pending.take(transaction), cumulative };
  }

  #check(transaction: string, part: EntryPart): void {
    const { topic, subscription, cursor } = this.#facts;
    const subject = { topic, subscription, transaction };
    const unacked = cursor.unackedOf(part.position);
    const isAcked = cursor.isAcked(part.position) || part.indexes?.some((index) => unacked?.has(index) === false);
    if (isAcked === true) throw errors.acknowledgedBefore(subject, this.#facts.idOf(part.position));
    if (this.#pending.overlaps(part) || this.#reserved.overlaps(part))
      throw errors.alreadyPending(subject, this.#facts.idOf(part.position), part.indexes !== undefined);
  }

  #checkUpTo(transaction: string, place: MessagePlace): void {
    const { topic, subscription, cursor } = this.#facts;
    const subject: AckSubject = { topic, subscription, transaction };
    const id = this.#facts.idOf(place.position);
    if (place.position <= cursor.markDelete)
      throw errors.behindMarkDelete(subject, id, this.#facts.idOf(cursor.markDelete));
    const current = this.#cumulative;
    if (current === undefined || (current.transaction === transaction && isBehind(place, current.reserved))) return;
    throw errors.behindCumulative(subject, id, this.#facts.idOf(current.reserved.position));
  }

  /** What of it the cursor has not acknowledged; undefined for nothing. */
  #unacked(part: EntryPart): EntryPart | undefined {
    const { cursor } = this.#facts;
    if (cursor.isAcked(part.position)) return undefined;
    const unacked = cursor.unackedOf(part.position);
    if (part.indexes === undefined || unacked === undefined) return part;
    const indexes = part.indexes.filter((index) => unacked.has(index));
    return indexes.length === 0 ? undefined : { position: part.position, indexes };
  }

  #isTouched(position: number): boolean {
    const upTo = this.#cumulative?.pending;
    if (upTo !== undefined && position <= upTo.position) return true;
    return this.#pending.size > 0 && this.#pending.at(position) !== undefined;
  }

  #isPendingAt(position: number, batchIndex: number): boolean {
    const upTo = this.#cumulative?.pending;
    if (upTo !== undefined && !isBehind({ position, batchIndex }, upTo)) return true;
    const pending = this.#pending.at(position);
    return pending === 'whole' || pending?.has(batchIndex) === true;
  }
}

/** Whether `place` comes after `other`. The whole entry, -1, ends after its messages. */
function isBehind(place: MessagePlace, other: MessagePlace): boolean {
  if (place.position !== other.position) return place.position > other.position;
  return endIndex(place) > endIndex(other);
}

function endIndex({ batchIndex }: MessagePlace): number {
  return batchIndex < 0 ? Infinity : batchIndex;
}
