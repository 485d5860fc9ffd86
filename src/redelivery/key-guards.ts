// Order per key on the client's side of PIP-493. From the moment a message fails until it is acknowledged, what comes
// later on its key must not be handed on: it goes back to the broker, uncounted, and comes again in its place.
import { EntryMap } from '../core/entry-map.js';
import { comparePositions } from '../core/entry-order.js';
import type { ReceivedMessage } from '../core/message.js';
import type { EntryPosition, MessageId } from '../core/message-id.js';
import { orderKeyOf } from '../core/message-key.js';
import { seconds } from '../core/options.js';
import type { Clock } from '../ports/clock.js';
import type { BatchScope } from './batch-scope.js';
import { WHOLE_ENTRY, scopeHas, scopeOf, withIndex, withoutIndex } from './batch-scope.js';

/** How long a guard outlives the delay of its message: the retry may be another consumer's, which nobody tells (K-46). */
const GUARD_AFTER_DELAY_MS = seconds(60);

/** What a guard knows a message by. */
export type KeyedMessage = Pick<ReceivedMessage, 'id' | 'key' | 'orderingKey'>;

/** An entry of which messages failed here and are not known to be acknowledged. */
interface NackedEntry {
  readonly at: EntryPosition;
  readonly guard: Guard;
  open: BatchScope;
}

interface Guard {
  readonly topic: string;
  readonly key: string;
  /** In position order. Empty once one that went back came again, while others have not. */
  readonly nacked: NackedEntry[];
  /** What went back under this guard and has not come again. */
  readonly returned: EntryMap<BatchScope>;
  /** Epoch milliseconds. */
  expiresMs: number;
}

/**
 * Keys of which a message failed and is not known to be acknowledged (K-43 to K-47). One for each subscription, told of
 * each negative acknowledgement, asked just before each message is handed on.
 */
export class KeyGuards {
  readonly #clock: Clock;
  /** By topic, then by key. */
  readonly #topics = new Map<string, Map<string, Guard>>();
  readonly #entries = new EntryMap<NackedEntry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keys that are guarded now; those that have expired count until something of them arrives. */
  get size(): number {
    let size = 0;
    for (const guards of this.#topics.values()) size += guards.size;
    return size;
  }

  /**
   * `message` failed and will be asked back after `delayMs`: its key is guarded; with `Infinity` no time ends that.
   * @returns false where it does not take part: it has no key, or was cut into chunks (K-43).
   */
  add(message: KeyedMessage, delayMs: number): boolean {
    const { id } = message;
    const key = guardKeyOf(message);
    if (key === undefined) return false;
    const guard = this.#guardOf(id.topic, key);
    guard.expiresMs = Math.max(guard.expiresMs, this.#clock.now() + delayMs + GUARD_AFTER_DELAY_MS);
    const known = this.#entries.get(id);
    if (known === undefined) this.#insert(guard, id);
    else known.open = withIndex(known.open, id.batchIndex);
    return true;
  }

  /**
   * Asked just before `message` is handed on: true when it must go back instead, because an earlier one of its key failed
   * here (K-44). Messages of the failed entry itself, earlier ones and the retry are handed on.
   */
  turnsBack(message: KeyedMessage): boolean {
    if (this.#topics.size === 0) return false;
    const { id } = message;
    const key = orderKeyOf(message);
    const guard = key === undefined ? undefined : this.#topics.get(id.topic)?.get(key);
    if (guard === undefined) return false;
    const returned = guard.returned.get(id);
    if (returned !== undefined && scopeHas(returned, id.batchIndex)) {
      this.#returnedCameAgain(guard, id);
      return false;
    }
    const earliest = guard.nacked[0]?.at ?? earliestOf(guard.returned);
    if (earliest === undefined || !isLater(id, earliest)) return false;
    if (guard.expiresMs <= this.#clock.now()) {
      this.#end(guard);
      return false;
    }
    rememberReturned(guard, id);
    return true;
  }

  /** `message` goes back with an earlier one of its key that failed: nothing later is handed on before it has come again. */
  wentBack(message: KeyedMessage): void {
    const key = orderKeyOf(message);
    const guard = key === undefined ? undefined : this.#topics.get(message.id.topic)?.get(key);
    if (guard !== undefined) rememberReturned(guard, message.id);
  }

  /** An id with a batch index acknowledges that message alone. */
  acknowledged(id: MessageId): void {
    const nacked = this.#entries.get(id);
    if (nacked === undefined) return;
    const left = id.batchIndex < 0 ? undefined : withoutIndex(nacked.open, id.batchIndex);
    if (left === undefined) this.#resolve(nacked);
    else nacked.open = left;
  }

  /** The entry came again, and of its messages only these: the others have been acknowledged (K-47). */
  cameAgain(entry: EntryPosition, unacknowledged: readonly number[]): void {
    const nacked = this.#entries.get(entry);
    if (nacked === undefined || nacked.open === WHOLE_ENTRY) return;
    const left = unacknowledged.filter((index) => scopeHas(nacked.open, index));
    if (left.length === 0) this.#resolve(nacked);
    else nacked.open = left.reduce<BatchScope>((scope, index) => withIndex(scope, index), left[0] ?? WHOLE_ENTRY);
  }

  /** Everything unacknowledged of the topic comes again, in order: nothing is kept back any more. */
  connectionLost(topic: string): void {
    for (const guard of this.#topics.get(topic)?.values() ?? []) this.#end(guard);
  }

  clear(): void {
    this.#topics.clear();
    this.#entries.clear();
  }

  #guardOf(topic: string, key: string): Guard {
    const guards = this.#topics.get(topic) ?? new Map<string, Guard>();
    this.#topics.set(topic, guards);
    const known = guards.get(key);
    if (known !== undefined) return known;
    const made = { topic, key, nacked: [], returned: new EntryMap<BatchScope>(), expiresMs: 0 };
    guards.set(key, made);
    return made;
  }

  #insert(guard: Guard, { ledgerId, entryId, partition, batchIndex }: MessageId): void {
    const nacked = { at: { ledgerId, entryId, partition }, guard, open: scopeOf(batchIndex) };
    const later = guard.nacked.findIndex(({ at }) => isLater(at, nacked.at));
    guard.nacked.splice(later < 0 ? guard.nacked.length : later, 0, nacked);
    // What went back before it failed may be on its way already: that it comes again says nothing of this one.
    for (const [at] of guard.returned.entries()) if (isLater(at, nacked.at)) guard.returned.delete(at);
    this.#entries.set(nacked.at, nacked);
  }

  #resolve(nacked: NackedEntry): void {
    const { guard } = nacked;
    this.#entries.delete(nacked.at);
    guard.nacked.splice(guard.nacked.indexOf(nacked), 1);
    // What went back is on its way: what lies in a queue here since before, and is later than that, would pass.
    if (guard.nacked.length === 0 && guard.returned.size === 0) this.#end(guard);
  }

  /**
   * The broker sends it although it was told: what failed before it has been acknowledged elsewhere, or nobody waits for it.
   * What else went back is on its way: what is later than that still goes back, or it would pass.
   */
  #returnedCameAgain(guard: Guard, entry: EntryPosition): void {
    const before = guard.nacked.filter(({ at }) => isLater(entry, at));
    for (const { at } of before) this.#entries.delete(at);
    guard.nacked.splice(0, before.length);
    for (const [at] of guard.returned.entries()) if (!isLater(at, entry)) guard.returned.delete(at);
    if (guard.nacked.length === 0 && guard.returned.size === 0) this.#end(guard);
  }

  #end({ topic, key, nacked }: Guard): void {
    for (const { at } of nacked) this.#entries.delete(at);
    const guards = this.#topics.get(topic);
    guards?.delete(key);
    if (guards?.size === 0) this.#topics.delete(topic);
  }
}

function rememberReturned({ returned }: Guard, id: MessageId): void {
  const known = returned.get(id);
  returned.set(id, known === undefined ? scopeOf(id.batchIndex) : withIndex(known, id.batchIndex));
}

function earliestOf(entries: EntryMap<BatchScope>): EntryPosition | undefined {
  const [first, ...others] = entries.entries().map(([at]) => at);
  return first && others.reduce((least, at) => (isLater(least, at) ? at : least), first);
}

/** The key that `message` guards when it fails; undefined where it takes no part: without a key, or cut into chunks (K-43). */
export function guardKeyOf(message: KeyedMessage): string | undefined {
  return message.id.firstChunk === undefined ? orderKeyOf(message) : undefined;
}

/** Strictly, by entry: messages of one entry come and go together. */
function isLater(a: EntryPosition, b: EntryPosition): boolean {
  return comparePositions(a, b) > 0;
}
