// Joins chunks to messages, within limits: what is incomplete costs memory, and may stay incomplete for ever when its
// producer died. What is given up is not acknowledged: it stays at the broker, told, and comes again.
import type { EntryPosition } from '../core/message-id.js';
import type { Clock, Timer } from '../ports/clock.js';
import type { Chunk, ChunkLimits } from './chunk.js';
import type { ChunkedAcks } from './chunked-acks.js';
import { comparePositions, samePosition } from '../core/entry-order.js';
import { IncompleteMessage } from './incomplete-message.js';
import type { JoinedChunks } from './incomplete-message.js';

/** How often a message that was given up is asked for again once its last chunk came after all. */
const MAX_ASKED = 3;
/** Messages given up, the newest so many; of the entries of each only ids are kept. */
const MAX_GIVEN_UP = 1_000;

export type ChunkVerdict =
  | { readonly kind: 'kept' }
  /** @param askedBack how many of its redeliveries were asked for here: they were no failures. */
  | { readonly kind: 'joined'; readonly message: JoinedChunks; readonly askedBack: number }
  /** Of a message that is acknowledged. */
  | { readonly kind: 'needless' }
  | { readonly kind: 'ask-back'; readonly entries: readonly EntryPosition[] }
  | { readonly kind: 'unreadable'; readonly reason: string };

export interface ChunkJoinerParts {
  readonly limits: ChunkLimits;
  readonly acks: ChunkedAcks;
  readonly clock: Clock;
  /** Whether the broker may send more now; while it may not, nobody is to blame that no chunk comes. */
  readonly mayArrive: () => boolean;
  /** Entries that are not waited for any more and stay at the broker. */
  readonly gaveUp: (entries: readonly EntryPosition[], reason: string) => void;
  /**
   * Where keys move between consumers: gives entries back to the broker, uncounted. A key that moves goes to its new consumer
   * once nothing of it is here, so the other chunks may be waiting for just these. They come again, here or there.
   */
  readonly giveBack?: ((entries: readonly EntryPosition[]) => void) | undefined;
  /** Entries that nobody needs: they can be acknowledged. */
  readonly needless: (entries: readonly EntryPosition[]) => void;
}

interface GivenUp {
  entries: readonly EntryPosition[];
  asked: number;
}

export class ChunkJoiner {
  readonly #parts: ChunkJoinerParts;
  /** By key of the message; the one that waits longest for a chunk first. */
  readonly #incomplete = new Map<string, IncompleteMessage>();
  readonly #givenUp = new Map<string, GivenUp>();
  #timer: Timer | undefined;

  constructor(parts: ChunkJoinerParts) {
    this.#parts = parts;
  }

  /** @param payload a view: what is kept of it is copied. */
  add(entry: EntryPosition, chunk: Chunk, payload: Uint8Array): ChunkVerdict {
    const known = this.#incomplete.get(chunk.key);
    const elsewhere = known === undefined && chunk.index > 0 ? this.#lateChunk(entry, chunk) : undefined;
    if (elsewhere !== undefined) return elsewhere;
    const nowMs = this.#parts.clock.now();
    const message = known ?? new IncompleteMessage(chunk, nowMs);
    const fits = message.add(entry, chunk, payload);
    message.touchedMs = nowMs;
    this.#incomplete.delete(chunk.key);
    if (!fits || message.isShort) {
      const reason = `its chunks are ${fits ? 'less' : 'more'} than the ${chunk.totalBytes} bytes that they say to be`;
      return { kind: 'unreadable', reason };
    }
    const joined = message.joined();
    if (joined !== undefined) return this.#complete(chunk.key, joined);
    this.#incomplete.set(chunk.key, message);
    this.#makeRoom();
    this.#watch();
    return { kind: 'kept' };
  }

  /** Everything comes again, or goes to another consumer. */
  reset(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#incomplete.clear();
    for (const [key, { asked }] of this.#givenUp) {
      if (asked === 0) this.#givenUp.delete(key);
      else this.#givenUp.set(key, { entries: [], asked });
    }
  }

  /** Not the first one, and nothing of its message is here. */
  #lateChunk(entry: EntryPosition, chunk: Chunk): ChunkVerdict | undefined {
    const givenUp = this.#givenUp.get(chunk.key);
    if (givenUp !== undefined && givenUp.entries.length > 0) return this.#comesTooLate(givenUp, entry, chunk);
    const place = this.#parts.acks.takesMore(chunk.key, chunk.publishTimeMs, [entry]);
    return place === undefined ? undefined : { kind: place === 'now' ? 'needless' : 'kept' };
  }

  /** With the last chunk the broker has all of them: together they may be joined after all. */
  #comesTooLate(givenUp: GivenUp, entry: EntryPosition, chunk: Chunk): ChunkVerdict {
    givenUp.entries = union(givenUp.entries, [entry]);
    if (chunk.index < chunk.count - 1 || givenUp.asked >= MAX_ASKED) return { kind: 'kept' };
    givenUp.asked += 1;
    return { kind: 'ask-back', entries: givenUp.entries };
  }

  #complete(key: string, joined: JoinedChunks): ChunkVerdict {
    const { entries = [], asked = 0 } = this.#givenUp.get(key) ?? {};
    this.#givenUp.delete(key);
    const before = entries.filter((entry) => comparePositions(entry, joined.last) < 0);
    return { kind: 'joined', message: { ...joined, entries: union(joined.entries, before) }, askedBack: asked };
  }

  #makeRoom(): void {
    const { maxIncomplete } = this.#parts.limits;
    for (const [key, message] of this.#incomplete) {
      if (this.#incomplete.size <= maxIncomplete) return;
      this.#giveUp(key, message, `and more than ${maxIncomplete} messages are incomplete`);
    }
  }

  #watch(): void {
    const { limits, clock } = this.#parts;
    const [oldest] = this.#incomplete.values();
    if (this.#timer !== undefined || oldest === undefined || limits.expireMs === Infinity) return;
    const delayMs = Math.max(0, oldest.touchedMs + limits.expireMs - clock.now());
    this.#timer = clock.setTimer(delayMs, () => this.#expire());
  }

  #expire(): void {
    this.#timer = undefined;
    const { limits, clock, mayArrive } = this.#parts;
    const nowMs = clock.now();
    const counts = mayArrive();
    for (const [key, message] of this.#incomplete) {
      if (!counts) message.touchedMs = nowMs;
      if (message.touchedMs + limits.expireMs > nowMs) continue;
      this.#giveUp(key, message, `and no further one within ${limits.expireMs} ms`);
      this.#sendBack(key);
    }
    this.#watch();
  }

  #sendBack(key: string): void {
    const givenUp = this.#givenUp.get(key);
    const { giveBack } = this.#parts;
    if (giveBack === undefined || givenUp === undefined) return;
    const { entries } = givenUp;
    givenUp.entries = [];
    giveBack(entries);
  }

  #giveUp(key: string, message: IncompleteMessage, reason: string): void {
    this.#incomplete.delete(key);
    const { entries, publishTimeMs, progress } = message;
    // The beginning of a message that came as a whole before: a producer sends it again that was cut off.
    const place = this.#parts.acks.takesMore(key, publishTimeMs, entries);
    if (place === 'now') this.#parts.needless(entries);
    if (place !== undefined) return;
    const earlier = this.#givenUp.get(key);
    this.#givenUp.delete(key);
    this.#givenUp.set(key, { entries: union(earlier?.entries ?? [], entries), asked: earlier?.asked ?? 0 });
    const [oldest] = this.#givenUp.keys();
    if (this.#givenUp.size > MAX_GIVEN_UP && oldest !== undefined) this.#givenUp.delete(oldest);
    this.#parts.gaveUp(entries, `${progress}, ${reason}`);
  }
}

function union(some: readonly EntryPosition[], more: readonly EntryPosition[]): readonly EntryPosition[] {
  return [...some, ...more.filter((entry) => !some.some((known) => samePosition(known, entry)))];
}
