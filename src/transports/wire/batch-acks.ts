// Which messages of each batch are still to be acknowledged here. The broker may not keep that (it is a setting, and
// lost when a topic moves), so the last acknowledgement of a batch always goes out for the whole entry.
import { EntryMap } from '../../core/entry-map.js';
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import { AckSet } from './ack-set.js';
import type { MessageIdData } from './protocol/message-metadata.js';

export class BatchAcks {
  readonly #left = new EntryMap<AckSet>();

  /**
   * A batch arrived. @param left what the broker says is left. Returns what is left in truth: an index acknowledged here
   * before is not delivered again.
   */
  arrived(entry: EntryPosition, left: AckSet): AckSet {
    const known = this.#left.get(entry);
    if (known === undefined || known.size !== left.size) {
      this.#left.set(entry, left);
      return left;
    }
    known.intersect(left.words());
    return known;
  }

  /** What to send so that `id` is acknowledged. */
  acknowledge(id: MessageId): MessageIdData {
    const { ledgerId, entryId } = id;
    if (id.batchIndex < 0 || id.batchSize < 1) {
      this.#left.delete(id);
      return { ledgerId, entryId };
    }
    const left = this.#left.get(id) ?? new AckSet(id.batchSize);
    left.clear(id.batchIndex);
    return this.#idData(id, left);
  }

  /** The same for everything up to and including `id`. */
  acknowledgeThrough(id: MessageId): MessageIdData {
    for (const [entry] of this.#left.entries()) {
      const before = entry.ledgerId < id.ledgerId || (entry.ledgerId === id.ledgerId && entry.entryId < id.entryId);
      if (before) this.#left.delete(entry);
    }
    if (id.batchIndex < 0 || id.batchSize < 1) return this.acknowledge(id);
    const left = this.#left.get(id) ?? new AckSet(id.batchSize);
    left.clearThrough(id.batchIndex);
    return this.#idData(id, left);
  }

  clear(): void {
    this.#left.clear();
  }

  #idData(id: MessageId, left: AckSet): MessageIdData {
    const { ledgerId, entryId } = id;
    if (left.isEmpty) {
      this.#left.delete(id);
      return { ledgerId, entryId };
    }
    this.#left.set(id, left);
    return { ledgerId, entryId, ackSet: left.words(), batchSize: id.batchSize };
  }
}
