// Which entries each message has that was joined from chunks: to acknowledge it, or to ask for it again, is to name all of
// them. Kept until the broker has answered the acknowledgement: repeating a lost one must say the same again.
import { EntryMap } from '../core/entry-map.js';
import { comparePositions, samePosition } from '../core/entry-order.js';
import type { EntryPosition, MessageId } from '../core/message-id.js';

/** Of earlier registrations, and of messages that are acknowledged: the newest so many. */
const MAX_REMEMBERED = 1_000;

/** A message that came in several entries. */
export class ChunkedMessage {
  readonly key: string;
  readonly publishTimeMs: number;
  /** All that carried it: a producer that was cut off sends some of them twice. The last chunk is where it is. */
  readonly entries: EntryPosition[];
  readonly first: EntryPosition;
  readonly last: EntryPosition;
  /** Its acknowledgement is on its way: what comes now is not in it. */
  isSent = false;

  constructor(
    parts: Pick<ChunkedMessage, 'key' | 'publishTimeMs' | 'first' | 'last'>,
    entries: readonly EntryPosition[],
  ) {
    this.key = parts.key;
    this.publishTimeMs = parts.publishTimeMs;
    this.first = parts.first;
    this.last = parts.last;
    this.entries = [...entries];
  }

  /** What acknowledges it. */
  entriesToAcknowledge(): readonly EntryPosition[] {
    this.isSent = true;
    return this.entries;
  }
}

export class ChunkedAcks {
  /** By the entry of the last chunk, which is what a message id names. */
  readonly #here = new EntryMap<ChunkedMessage>();
  /** By key, the oldest first. */
  readonly #byKey = new Map<string, ChunkedMessage>();
  /** Publish times of messages that are acknowledged, by key, the oldest first. */
  readonly #acknowledged = new Map<string, number>();

  joined(message: ChunkedMessage): void {
    this.#here.set(message.last, message);
    this.#byKey.delete(message.key);
    this.#byKey.set(message.key, message);
  }

  /** Undefined for a message that came in one entry. What came elsewhere is known by its first and last entry only. */
  get(id: MessageId): ChunkedMessage | undefined {
    const known = this.#here.size === 0 ? undefined : this.#here.get(id);
    if (known !== undefined || id.firstChunk === undefined) return known;
    return new ChunkedMessage({ key: '', publishTimeMs: 0, first: id.firstChunk, last: id }, [id.firstChunk, id]);
  }

  /**
   * Further entries of a message that came as a whole before: its producer did not know that the broker had them.
   * @returns whether the message is acknowledged, and so the entries can go; undefined when it is not known.
   */
  takesMore(key: string, publishTimeMs: number, entries: readonly EntryPosition[]): 'with-it' | 'now' | undefined {
    if (this.#acknowledged.get(key) === publishTimeMs) return 'now';
    const message = this.#byKey.get(key);
    if (message?.publishTimeMs !== publishTimeMs) return undefined;
    if (message.isSent) return 'now';
    for (const entry of entries) {
      if (!message.entries.some((known) => samePosition(known, entry))) message.entries.push(entry);
    }
    return 'with-it';
  }

  /** The broker has answered: these are acknowledged. */
  confirmed(message: ChunkedMessage): void {
    this.#forget(message);
    keepNewest(this.#acknowledged, message.key, message.publishTimeMs);
  }

  /** Everything up to `id` is acknowledged. */
  acknowledgedThrough(id: EntryPosition): void {
    for (const message of this.#here.values()) if (comparePositions(message.last, id) <= 0) this.confirmed(message);
  }

  /** These messages go back to the broker, and come again as a whole. @returns their entries, each once. */
  gaveBack(ids: readonly MessageId[]): readonly EntryPosition[] {
    const entries = new Map<string, EntryPosition>();
    for (const id of ids) {
      const chunked = this.get(id);
      if (chunked !== undefined) this.#forget(chunked);
      for (const entry of chunked?.entries ?? [id]) entries.set(`${entry.ledgerId}:${entry.entryId}`, entry);
    }
    return [...entries.values()];
  }

  /** Everything comes again; what is handled still may be acknowledged all the same. */
  registered(): void {
    for (const message of this.#here.values()) {
      if (this.#byKey.get(message.key) !== message) this.#here.delete(message.last);
    }
    for (const message of this.#byKey.values()) {
      if (this.#byKey.size <= MAX_REMEMBERED) return;
      this.#forget(message);
    }
  }

  #forget(message: ChunkedMessage): void {
    if (this.#here.get(message.last) === message) this.#here.delete(message.last);
    if (this.#byKey.get(message.key) === message) this.#byKey.delete(message.key);
  }
}

function keepNewest<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_REMEMBERED && oldest !== undefined) map.delete(oldest);
}
