// Which messages of each batch are still to be acknowledged here. The broker may not keep that (it is a setting, and
// lost when a topic moves), so the last acknowledgement of a batch goes out for the whole entry where all of it was made
// here, and a batch is forgotten only when the broker has answered it: repeating a lost one must say the same again.
import { comparePositions } from '../../core/entry-order.js';
import { PulseworkError } from '../../core/errors.js';
import { EntryMap } from '../../core/entry-map.js';
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import { formatMessageId } from '../../core/message-id.js';
import { AckSet, MAX_BATCH_SIZE } from './ack-set.js';
import type { MessageIdData } from './protocol/message-metadata.js';

/** Batches known in part that are not here: given back, or delivered to another consumer. The newest so many. */
const MAX_ELSEWHERE = 1_000;

/** A batch of which this consumer has acknowledged, or may acknowledge, a part. */
export class BatchEntry {
  readonly position: EntryPosition;
  /** What may be handed on. What the broker holds back may be in a transaction that is aborted later: then it comes again. */
  left: AckSet;
  /** What was not acknowledged here, whoever else may have: of nothing else is the broker told. */
  readonly own: AckSet;

  constructor(position: EntryPosition, left: AckSet) {
    this.position = position;
    this.left = left;
    this.own = new AckSet(left.size);
  }

  acknowledge(index: number): void {
    this.left.clear(index);
    this.own.clear(index);
  }

  acknowledgeThrough(index: number): void {
    this.left.clearThrough(index);
    this.own.clearThrough(index);
  }

  /** What to send now, so that the broker knows all that is acknowledged: later ones say more than earlier ones. */
  idData(): MessageIdData {
    const { ledgerId, entryId } = this.position;
    if (this.own.isEmpty) return { ledgerId, entryId };
    return { ledgerId, entryId, ackSet: this.own.words(), batchSize: this.own.size };
  }
}

/** What an acknowledgement names: an entry, or a batch whose state at the time of sending counts. */
export type AckItem = MessageIdData | BatchEntry;

export function idDataOf(item: AckItem): MessageIdData {
  return item instanceof BatchEntry ? item.idData() : item;
}

export class BatchAcks {
  readonly #here = new EntryMap<BatchEntry>();
  /** By position as text, the oldest first. */
  readonly #elsewhere = new Map<string, BatchEntry>();

  /**
   * A batch arrived. @param left what the broker says is left. @param gone what nobody will ever acknowledge. Gives what may be
   * handed on: an index acknowledged here before is not.
   */
  arrived(position: EntryPosition, left: AckSet, gone?: AckSet): BatchEntry {
    let entry = this.#find(position);
    if (entry?.left.size === left.size) {
      left.intersect(entry.own.words());
      entry.left = left;
    } else entry = new BatchEntry(position, left);
    if (gone !== undefined) entry.own.subtract(gone);
    this.#elsewhere.delete(textOf(position));
    this.#here.set(position, entry);
    return entry;
  }

  /** @throws PulseworkError MESSAGE_ID_INVALID for a message of a batch whose size is neither given nor known. */
  check(id: MessageId): void {
    if (id.batchIndex < 0 || this.#find(id) !== undefined) return;
    if (id.batchSize > id.batchIndex && id.batchSize <= MAX_BATCH_SIZE) return;
    const rule = `message id ${formatMessageId(id)} names a message of a batch: its batchSize must be given, got ${id.batchSize}`;
    throw new PulseworkError('MESSAGE_ID_INVALID', rule);
  }

  /** Of the batch that a message is in; `id` has passed `check`. */
  sizeOf(id: MessageId): number {
    return this.#find(id)?.left.size ?? id.batchSize;
  }

  /** What is not acknowledged of the batch that `position` holds, as brokers write it; undefined where it is not known. */
  leftOf(position: EntryPosition): readonly bigint[] | undefined {
    return this.#find(position)?.left.words();
  }

  /** What to send so that `id` is acknowledged; it has passed `check`. */
  acknowledge(id: MessageId): AckItem {
    if (id.batchIndex < 0) return this.#whole(id);
    const entry = this.#known(id);
    entry.acknowledge(id.batchIndex);
    return entry;
  }

  /**
   * The same for everything up to and including `id`, each item a command of its own. In the middle of a batch the entry
   * before comes first: a broker that does not keep indexes ignores the command that has them.
   */
  acknowledgeThrough(id: MessageId): readonly AckItem[] {
    for (const entry of this.#here.values())
      if (comparePositions(entry.position, id) < 0) this.#here.delete(entry.position);
    if (id.batchIndex < 0) return [this.#whole(id)];
    const entry = this.#known(id);
    entry.acknowledgeThrough(id.batchIndex);
    if (entry.own.isEmpty) return [entry];
    return [{ ledgerId: id.ledgerId, entryId: id.entryId - 1 }, entry];
  }

  /** The broker has answered `items`. */
  confirmed(items: Iterable<AckItem>): void {
    for (const item of items) if (item instanceof BatchEntry && item.left.isEmpty) this.#forget(item);
  }

  /** The entry goes back to the broker and may come to another consumer. */
  gaveBack(position: EntryPosition): void {
    const entry = this.#here.get(position);
    if (entry === undefined) return;
    this.#here.delete(position);
    if (entry.own.count < entry.own.size) this.#keepElsewhere(entry);
  }

  gaveBackAll(): void {
    for (const { position } of this.#here.values()) this.gaveBack(position);
  }

  clear(): void {
    this.#here.clear();
    this.#elsewhere.clear();
  }

  #find(position: EntryPosition): BatchEntry | undefined {
    return this.#here.get(position) ?? (this.#elsewhere.size === 0 ? undefined : this.#elsewhere.get(textOf(position)));
  }

  #known(id: MessageId): BatchEntry {
    const { ledgerId, entryId, partition } = id;
    return (
      this.#find(id) ?? this.#keepElsewhere(new BatchEntry({ ledgerId, entryId, partition }, new AckSet(id.batchSize)))
    );
  }

  #keepElsewhere(entry: BatchEntry): BatchEntry {
    this.#elsewhere.set(textOf(entry.position), entry);
    const [oldest] = this.#elsewhere.keys();
    if (this.#elsewhere.size > MAX_ELSEWHERE && oldest !== undefined) this.#elsewhere.delete(oldest);
    return entry;
  }

  #whole(id: MessageId): MessageIdData {
    const { ledgerId, entryId } = id;
    return { ledgerId, entryId };
  }

  #forget(entry: BatchEntry): void {
    if (this.#here.get(entry.position) === entry) this.#here.delete(entry.position);
    if (this.#elsewhere.get(textOf(entry.position)) === entry) this.#elsewhere.delete(textOf(entry.position));
  }
}

function textOf({ ledgerId, entryId, partition }: EntryPosition): string {
  return `${ledgerId}:${entryId}:${partition}`;
}
