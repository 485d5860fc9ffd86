// The client's own ids of messages that were received by one consumer and are not settled. They are small and keep what a
// serialized id loses: the state of the batch, without which acknowledging one message would acknowledge them all.
import type { EntryPosition, MessageId } from '../../core/message-id.js';
import type { OfficialMessageId } from './official-client.js';

/** Batch entries of which nothing is unsettled are kept, so that acknowledging again is no error; the newest. */
const MAX_QUIET_BATCHES = 1_000;

interface Entry {
  /** Whether anything of it came over the connection that there is now. */
  isFresh: boolean;
  /** By batch index, -1 for a message that is alone. */
  readonly ids: Map<number, OfficialMessageId>;
  /** Received, neither acknowledged nor handed back. */
  readonly unsettled: Set<number>;
}

export class UnsettledIds {
  readonly #entries = new Map<string, Entry>();
  readonly #quietBatches = new Set<string>();

  static keyOf({ ledgerId, entryId }: EntryPosition): string {
    return `${ledgerId}:${entryId}`;
  }

  /** Entries with something unsettled, and quiet batches. */
  get size(): number {
    return this.#entries.size;
  }

  received(id: MessageId, official: OfficialMessageId): void {
    const key = UnsettledIds.keyOf(id);
    let entry = this.#entries.get(key);
    if (entry === undefined) this.#entries.set(key, (entry = { isFresh: true, ids: new Map(), unsettled: new Set() }));
    entry.isFresh = true;
    entry.ids.set(id.batchIndex, official);
    entry.unsettled.add(id.batchIndex);
    this.#quietBatches.delete(key);
  }

  /** Of exactly this message. */
  find(id: MessageId): OfficialMessageId | undefined {
    return this.#entries.get(UnsettledIds.keyOf(id))?.ids.get(id.batchIndex);
  }

  /** Of any message of its entry that is unsettled here: what to ask the entry back with. */
  unsettledOf(position: EntryPosition): OfficialMessageId | undefined {
    const entry = this.#entries.get(UnsettledIds.keyOf(position));
    const [index] = entry?.unsettled ?? [];
    return index === undefined ? undefined : entry?.ids.get(index);
  }

  /** One that is unsettled, with the key of its entry; undefined when nothing is. */
  any(): readonly [key: string, id: OfficialMessageId] | undefined {
    for (const [key, { ids, unsettled }] of this.#entries) {
      const [index] = unsettled;
      const id = index === undefined ? undefined : ids.get(index);
      if (id !== undefined) return [key, id];
    }
    return undefined;
  }

  /** @returns whether nothing of its entry is unsettled any more. */
  acknowledged(id: MessageId): boolean {
    const key = UnsettledIds.keyOf(id);
    const entry = this.#entries.get(key);
    if (entry === undefined) return true;
    // Without an index the whole entry is meant.
    if (id.batchIndex < 0) entry.unsettled.clear();
    else entry.unsettled.delete(id.batchIndex);
    this.#rest(key, entry);
    return entry.unsettled.size === 0;
  }

  acknowledgedUpTo(id: MessageId): void {
    for (const [key, entry] of [...this.#entries]) {
      const [ledgerId = 0, entryId = 0] = key.split(':').map(Number);
      const distance = ledgerId - id.ledgerId || entryId - id.entryId;
      if (distance > 0) continue;
      for (const index of [...entry.unsettled])
        if (distance < 0 || id.batchIndex < 0 || index <= id.batchIndex) entry.unsettled.delete(index);
      this.#rest(key, entry);
    }
  }

  /** The entry was handed back: its messages come again, here or elsewhere. */
  handedBack(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.unsettled.clear();
    this.#rest(key, entry);
  }

  /**
   * Everything unsettled comes again, here or at another consumer. What runs now may still be acknowledged over the next
   * connection; what has not come again when that one is lost too is somebody else's, and would stay here for good.
   */
  connectionLost(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.isFresh) entry.isFresh = false;
      else this.#forget(key);
    }
  }

  /** Everything was handed back. */
  clear(): void {
    this.#entries.clear();
    this.#quietBatches.clear();
  }

  #rest(key: string, entry: Entry): void {
    if (entry.unsettled.size > 0) return;
    if (entry.ids.has(-1)) return this.#forget(key);
    this.#quietBatches.add(key);
    if (this.#quietBatches.size <= MAX_QUIET_BATCHES) return;
    const [oldest = ''] = this.#quietBatches;
    this.#forget(oldest);
  }

  #forget(key: string): void {
    this.#quietBatches.delete(key);
    this.#entries.delete(key);
  }
}
