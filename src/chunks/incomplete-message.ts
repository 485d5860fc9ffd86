// A message of which some chunks have come. They are kept by their number: what is missing may come later, and what came
// twice is kept once.
import type { EntryPosition } from '../core/message-id.js';
import type { Chunk } from './chunk.js';
import { comparePositions, samePosition } from '../core/entry-order.js';

interface Part {
  readonly entry: EntryPosition;
  readonly payload: Buffer;
}

/** A message of which all chunks have come. */
export interface JoinedChunks {
  readonly payload: Buffer;
  readonly first: EntryPosition;
  readonly last: EntryPosition;
  /** All that carried it, and what is left of earlier attempts to send it. */
  readonly entries: readonly EntryPosition[];
}

export class IncompleteMessage {
  /** What its newest chunk says. */
  #chunk: Chunk;
  readonly #parts = new Map<number, Part>();
  readonly #entries: EntryPosition[] = [];
  #bytes = 0;
  /** When its newest chunk came. */
  touchedMs: number;

  constructor(chunk: Chunk, nowMs: number) {
    this.#chunk = chunk;
    this.touchedMs = nowMs;
  }

  get publishTimeMs(): number {
    return this.#chunk.publishTimeMs;
  }

  get entries(): readonly EntryPosition[] {
    return this.#entries;
  }

  /** For people. */
  get progress(): string {
    return `${this.#parts.size} of ${this.#chunk.count} chunks of its message came`;
  }

  /** @param payload a view: what is kept of it is copied. @returns false when it is more than its message says to be. */
  add(entry: EntryPosition, chunk: Chunk, payload: Uint8Array): boolean {
    if (this.#entries.some((known) => samePosition(known, entry))) return true;
    this.#entries.push(entry);
    const first = this.#parts.get(0)?.entry;
    // From before the first chunk: an earlier attempt, which its producer never ended. It goes with the message.
    if (first !== undefined && comparePositions(entry, first) < 0) return true;
    if (chunk.index === 0 || !this.#isOfSame(chunk)) this.#beginAt(entry);
    this.#chunk = chunk;
    if (this.#parts.has(chunk.index)) return true;
    this.#parts.set(chunk.index, { entry, payload: Buffer.from(payload) });
    this.#bytes += payload.length;
    return this.#bytes <= chunk.totalBytes;
  }

  /** Undefined while chunks are missing, or when they are less than the message says to be: see `isShort`. */
  joined(): JoinedChunks | undefined {
    const { count, totalBytes } = this.#chunk;
    const [first, last] = [this.#parts.get(0), this.#parts.get(count - 1)];
    if (this.#parts.size < count || this.#bytes < totalBytes || first === undefined || last === undefined)
      return undefined;
    const payloads = Array.from({ length: count }, (_, index) => this.#parts.get(index)?.payload ?? Buffer.alloc(0));
    return {
      payload: Buffer.concat(payloads, totalBytes),
      first: first.entry,
      last: last.entry,
      entries: this.#entries,
    };
  }

  /** All chunks came and are less than their message says to be. */
  get isShort(): boolean {
    return this.#parts.size === this.#chunk.count && this.#bytes < this.#chunk.totalBytes;
  }

  #isOfSame({ count, totalBytes }: Chunk): boolean {
    return count === this.#chunk.count && totalBytes === this.#chunk.totalBytes;
  }

  /** A message begins at its first chunk, or where it turns out to be another one: what came before is not of it. */
  #beginAt(entry: EntryPosition): void {
    for (const [index, part] of this.#parts) {
      if (comparePositions(part.entry, entry) > 0) continue;
      this.#parts.delete(index);
      this.#bytes -= part.payload.length;
    }
  }
}
