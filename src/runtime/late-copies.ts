// Entries that were asked back while they ran here. A copy of one may lie in the client behind others for as long as its
// connection lasts, however long ago the message was acknowledged. Bounded to the newest.
import type { MessageId } from '../core/message-id.js';

/** Beyond it the oldest are forgotten: a copy of one that comes later runs again. */
const MAX_ENTRIES = 10_000;

interface Expected {
  readonly topic: string;
  /** Acknowledged whole: whatever comes of it is a copy. */
  readonly ended: boolean;
}

export class LateCopies {
  readonly #byEntry = new Map<string, Expected>();

  /** A copy was asked for. @param ended whether the message has been acknowledged meanwhile. */
  expect(id: MessageId, ended: boolean): void {
    this.#byEntry.set(keyOf(id), { topic: id.topic, ended });
    if (this.#byEntry.size <= MAX_ENTRIES) return;
    const oldest = this.#byEntry.keys().next();
    if (oldest.done !== true) this.#byEntry.delete(oldest.value);
  }

  /** The entry is acknowledged. */
  ended(id: MessageId): void {
    if (this.#byEntry.size > 0 && this.#byEntry.has(keyOf(id))) this.expect(id, true);
  }

  has(id: MessageId): boolean {
    return this.#byEntry.size > 0 && this.#byEntry.get(keyOf(id))?.ended === true;
  }

  /** What lay in the client is gone; what comes now the broker has not been told of. */
  connectionLost(lost: string): void {
    for (const [key, { topic }] of this.#byEntry) if (topic === lost) this.#byEntry.delete(key);
  }

  clear(): void {
    this.#byEntry.clear();
  }
}

/** Ledger ids are unique in a cluster. */
function keyOf({ ledgerId, entryId, partition }: MessageId): string {
  return `${ledgerId}:${entryId}:${partition}`;
}
